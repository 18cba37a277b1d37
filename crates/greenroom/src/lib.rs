#![cfg_attr(docsrs, feature(doc_cfg))]
//! Actor pools: one address in front of many supervised workers.
//!
//! A single actor handles one message at a time, which keeps its state simple and makes it a
//! bottleneck. A [`Pool`] is one address in front of many: it bounds, distributes, supervises,
//! restarts and counts.
//!
//! ```
//! use greenroom::prelude::*;
//!
//! struct Renderer;
//!
//! impl Actor for Renderer {
//!     type Message = String;
//!     type Reply = usize;
//!     type Error = std::convert::Infallible;
//!
//!     async fn handle(&mut self, page: String, _cx: &mut Context<Self>) -> Result<usize, Self::Error> {
//!         Ok(page.len())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::new(|_slot| Renderer).workers(8).mailbox(100).spawn().await?;
//! assert_eq!(pool.call("a page".to_owned()).await?, 6); // a typed reply or a typed error, never a hang
//! pool.send("another".to_owned()).await?; // waits while the pool is full
//! let report = pool.stop(Stop::within(std::time::Duration::from_secs(30))).await;
//! assert!(report.left_over.is_empty());
//! # Ok(()) }
//! ```
//!
//! # Overview
//! The names that most programs use are here; the others are in the modules.
//!
//! | for | there is |
//! |---|---|
//! | many workers, one address, order per key | [`Pool`], [`PoolBuilder`], [`Address`], and the module [`pool`] |
//! | keys: their states, which are parked | [`Pool::keys`], and the module [`keys`] |
//! | several messages at once for one handler | [`PoolBuilder::batches`], and the module [`batch`] |
//! | failures | [`FailureTable`], [`Backoff`], [`Restarts`], [`DeadLetter`], and the module [`failure`] |
//! | dead letters that are kept, and replayed | [`Pool::dead_letters`], [`DeadLetters`] |
//! | a reply that is given later, a message that stays whole | [`Delivery`], [`ReplyPort`], [`Answer`] |
//! | parts that depend on one another, started, restarted and stopped in order | [`Supervisor`], and the module [`supervisor`] |
//! | messages with keys, from a configuration or a preset | [`EventPool`], and the module [`event_pool`] |
//! | events for many subscribers | [`Topic`], and the module [`topic`] |
//! | notifications of everything that happens in pools | [`PoolEvents`], [`PoolEvent`], and the module [`pool_events`] |
//! | the figures of a pool | [`Pool::stats`], [`PoolStats`], and the module [`stats`] |
//! | values that a worker publishes, readable while it is stuck | [`PoolAdmin::inspect`], and the module [`inspect`] |
//! | why an actor has ended, and where it panicked | [`ExitReason`], and the module [`panic_location`] |
//! | a message later, or again and again | [`Address::send_after`], [`Address::send_every`], and the module [`timer`] |
//! | finding an actor by its name | [`Registry`] |
//! | holding actors of different kinds, or without keeping them alive | [`Recipient`], [`AnyAddress`], [`WeakAddress`] |
//! | something around every message: a limit, a span, a count | [`Layer`], and the module [`layer`] |
//! | one end for many actors | [`System`], and the module [`system`] |
//! | all workers at once, the first answer of several, parts of a request | the module [`gather`] |
//! | an actor that looks after a pool: sizes it, answers for it, gets its events | [`PoolBuilder::keeper`], and the module [`keeper`] |
//! | servers and streams | the module [`service`] |
//! | which worker gets a message | the module [`policy`] |
//! | limits and sizes, decided for a pool that obeys them or for a caller that acts | [`limits`], [`autoscale`] |
//! | a fair part for each tenant, with caps and rates | the module [`shares`] |
//! | advice on a pool's settings while it runs | the module [`advisor`] |
//! | tests | tokio's paused clock, which pools and timers use; [`PoolBuilder::seed`], for repeatable random choices |
//! | the promises, and the tests that hold them | the module [`statements`] |
//!
//! # Cargo features
//! | feature | contents | default |
//! |---|---|---|
//! | `gather` | the module [`gather`]: broadcast and split-join; with `topic`, [`Topic::subscribe_each`] | yes |
//! | `supervision` | the module [`supervisor`], and [`PoolBuilder::supervised`] | yes |
//! | `topic` | the module [`topic`] | yes |
//! | `tower` | the module [`service`]: pools as tower services and as sinks of futures | yes |
//! | `config` | [`EventPool`]s from YAML and TOML | |

#[macro_use]
mod plain;

mod actor;
mod address;
mod any_address;
mod call_error;
mod cancellation;
mod chance;
mod class;
mod context;
mod control;
mod dead_letter;
pub mod dead_letters;
mod delivery;
mod envelope;
mod error;
mod event;
pub mod event_pool;
mod exit_reason;
pub mod failure;
pub mod inspect;
pub mod layer;
mod life;
mod on_drop;
pub mod panic_location;
pub mod pool;
pub mod pool_events;
pub mod registry;
mod reply;
mod restart_policy;
mod size;
mod step_aside;
#[cfg(feature = "supervision")]
pub mod supervisor;
pub mod system;
pub mod timer;
#[cfg(feature = "topic")]
pub mod topic;

pub use actor::{Actor, Answer};
pub use address::Recipient;
pub use any_address::AnyAddress;
pub use call_error::CallError;
pub use cancellation::CancellationToken;
pub use class::Class;
pub use context::{Context, address::AddressOf};
pub use dead_letter::{DeadLetter, DeadLetterReason};
pub use dead_letters::DeadLetters;
pub use delivery::{Delivery, ForwardError};
pub use envelope::Envelope;
pub use error::{NotAccepted, SendError, SpawnError, TrySendError};
pub use event_pool::EventPool;
pub use exit_reason::ExitReason;
pub use failure::{Backoff, FailureAction, FailurePolicy, FailureTable, FinalAction, Rule};
pub use layer::Layer;
pub use life::OnExit;
#[cfg(feature = "gather")]
#[doc(inline)]
pub use pool::gather;
#[cfg(feature = "tower")]
#[doc(inline)]
pub use pool::service;
pub use pool::{
    Address, Change, Overflow, Pool, PoolAdmin, PoolBuilder, PoolStats, Restarts, Stop, StopReport,
    WeakAddress,
};
#[doc(inline)]
pub use pool::{advisor, autoscale, batch, keeper, keys, limits, policy, shares, stats};
pub use pool_events::{PoolEvent, PoolEvents};
pub use registry::Registry;
pub use reply::ReplyPort;
pub use restart_policy::RestartPolicy;
pub use step_aside::step_aside;
#[cfg(feature = "supervision")]
pub use supervisor::Supervisor;
pub use system::System;
pub use timer::Timer;
#[cfg(feature = "topic")]
pub use topic::Topic;

/// The usual imports: an actor, its pool, the metadata of a message, and how a call can end.
pub mod prelude {
    #[cfg(feature = "topic")]
    pub use crate::Topic;
    pub use crate::{Actor, Answer, CallError, Context, Delivery, Envelope, Pool, Registry, Stop};
}

#[doc = include_str!("../STATEMENTS.md")]
pub mod statements {}

/// The library's example in README.md, compiled and run with the other doctests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

#[cfg(doctest)]
mod guide;
