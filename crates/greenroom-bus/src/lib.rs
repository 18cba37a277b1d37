#![cfg_attr(docsrs, feature(doc_cfg))]

//! An event-consumer runtime on [`greenroom`] pools.
//!
//! Events come from a [`Source`](source::Source), are handled by named pools of workers, and are
//! passed on to a [`Sink`](sink::Sink). Each event taken carries one [settlement]: it is
//! acknowledged once, or refused once, and the engine's report adds up.

#[macro_use]
mod spelled;

mod byte_order_mark;
pub mod dead_letter;
pub mod engine;
pub mod event;
mod excerpt;
pub mod handler;
pub mod http;
pub mod kind;
pub mod layer;
pub mod metrics;
pub mod name;
pub mod outage;
pub mod pattern;
pub mod printable;
pub mod record;
pub mod router;
pub mod settlement;
pub mod sink;
pub mod source;
pub mod stand_in;
pub mod store;
pub mod trace;
pub mod wait;
pub mod watermark;

use std::{future::Future, pin::Pin};

pub use event::codec;

/// A boxed future that can move between threads, as returned by the object-safe contracts of this
/// crate.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
