//! A pool with a keeper: an actor of its own that looks after it.
//!
//! Some decisions belong to the pool itself: whether to grow at noon, when to stop because a
//! licence runs out, which commands its operators may give. A worker cannot make them: it is one of
//! many, and busy at exactly that time. A separate actor can, but it would have to be started
//! before the pool and stopped after it, receive its events, and end it when it fails. So a pool
//! may have an actor that belongs to it:
//!
//! ```text
//! operators ──calls──▶ keeper ──add, remove, resize, enable, stop──▶ pool
//!                        ▲                                            │
//!                        └───── worker up, down · saturated · stopped ┘
//! senders ───────────────────────────messages──────────────────────▶ workers
//! ```
//!
//! [`PoolBuilder::keeper`](crate::PoolBuilder::keeper) creates it, and gives it the
//! [`PoolAdmin`](crate::PoolAdmin) of the pool. It is an ordinary actor that [stands
//! alone](crate::Pool::one): it answers calls, at once or later, publishes values, and has timers,
//! monitors and links. It has a mailbox of its own, so it answers even while the pool is saturated
//! and all handlers are stuck.
//!
//! * **It starts first.** No worker is started before its [`started`](crate::Actor::started) hook
//!   has returned, unless the hook adds one. The hook may resize the pool, and set its capacity,
//!   its limits and its advisor; an error fails the spawn.
//! * **It is notified.** Each [`PoolNotice`] is an urgent message to it, so notices come in order,
//!   and before the commands that wait in its mailbox; one of these follows after 64 in a row.
//! * **It ends last.** Once the pool has ended, it gets [`PoolNotice::Stopped`], handles the
//!   messages that have been sent to it, and ends.
//!
//! | end of | consequence |
//! |---|---|
//! | the pool, for any reason | the keeper has five seconds to end; then its handler is dropped at its next await |
//! | the keeper: [`exit`](crate::Context::exit) with an error, a panic, a signal, or by itself | the pool ends after the messages in hand, for the same reason |
//! | the keeper: [`exit`](crate::Context::exit) with an error, a panic, a signal, its own wish | the pool ends after the messages in hand, for the same reason |
//! | the last address of the pool | the pool drains and stops, like any other; addresses of the keeper do not keep it running |
//!
//! An error of the keeper's handler is a result, as for any actor: its caller gets it, and the
//! keeper continues. If the pool should end because of it, the handler also passes it to `exit`:
//!
//! ```
//! # use greenroom::{ExitReason, keeper::PoolNotice, prelude::*};
//! # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
//! # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
//! /// Closes the office when there is no licence any more.
//! struct Guard;
//! # struct Renew; impl From<PoolNotice> for Renew { fn from(_: PoolNotice) -> Self { Self } }
//!
//! impl Actor for Guard {
//!     # type Message = Renew; type Reply = ();
//!     type Error = String;
//!
//!     async fn handle(&mut self, _: Renew, cx: &mut Context<Self>) -> Result<(), String> {
//!         let error = "no licence".to_owned();
//!         cx.exit(ExitReason::failed(error.clone()));
//!         Err(error)
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (office, _guard) = Pool::new(|_slot| Clerk).keeper(|_office| Guard).spawn().await?;
//! assert_eq!(office.erase().ended().await.to_string(), "failed: no licence");
//! # Ok(()) }
//! ```
//!
//! # Price
//! The keeper costs one actor and one more task, and nothing for each message: the pool reports
//! only rare events, under a lock that it shares only with that task. If the mailbox of the keeper
//! is full, at most 256 notices wait for room; then the oldest are dropped and counted
//! ([`PoolNotice::Lagged`]). The pool never waits.

mod builder;
pub(super) mod notice;
pub(super) mod notices;

pub use self::{builder::KeptBuilder, notice::PoolNotice};
