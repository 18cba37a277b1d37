//! A pool with an actor of its own, which looks after it: the coordinator.
//!
//! Some decisions are the pool's own: to grow at noon, to stop when a licence runs out, which
//! commands its operators may give. A worker cannot make them: it is one of many, and its mailbox
//! is full just then. An actor beside the pool can, but it would have to be started before the pool
//! and stopped after it, hear its events, and end it when it fails. So a pool may have an actor
//! that belongs to it:
//!
//! ```text
//! operators ──commands──▶ coordinator ──add, remove, resize, enable, stop──▶ pool
//!                              ▲                                              │
//!                              └──── worker up, down · saturated · stopped ───┘
//! senders ──────────────────────────────────messages─────────────────────────▶ workers
//! ```
//!
//! The coordinator has messages of its own type (commands) and a mailbox of its own, so a command
//! is answered while the pool is saturated and all handlers are stuck. The pool's events reach it
//! as [`PoolNotice`]s, in order, before waiting commands. It starts before the first worker, and
//! ends after the last one.
//!
//! | what ends | what follows |
//! |---|---|
//! | the pool, however that comes | the coordinator hears [`PoolNotice::Stopped`], and ends; it is given five seconds |
//! | the coordinator: an error, a panic, a signal, its own wish | the pool ends after the messages in hand, for the same reason |
//! | the last address of the pool | the pool drains and stops, as any other; addresses of the coordinator do not hold it |
//!
//! # Price
//! The price: one actor with two tasks, and nothing for each message: the pool reports only rare
//! events, under a lock that it shares with the coordinator alone. At most 256 notices wait; then
//! the oldest are dropped and counted ([`PoolNotice::Lagged`]), and the pool never waits.

use std::{
    error::Error,
    future::{Future, ready},
};

mod builder;
mod coordinated;
pub(super) mod coordination;
mod driver;
mod notice;
mod notice_queue;
mod setup;

pub(crate) use self::coordination::Coordination;
pub use self::{
    builder::CoordinatedBuilder, coordinated::CoordinatedPool, notice::PoolNotice, setup::Setup,
};
use crate::{Actor, Answer, AnyAddress, Context, Delivery, ExitReason, PoolAdmin};

/// The actor of a pool whose workers are `A`: it is told commands, and what happens in the pool.
///
/// ```
/// # use std::convert::Infallible;
/// use greenroom::{PoolAdmin, coordinator::Coordinator, prelude::*};
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
///
/// /// Hires as many clerks as it is told to, and answers how many there are then.
/// struct Boss;
///
/// impl Coordinator<Clerk> for Boss {
///     type Command = usize;
///     type Reply = usize;
///     type Error = greenroom::pool::AdminError;
///
///     async fn command(
///         &mut self,
///         clerks: usize,
///         pool: &PoolAdmin<Clerk>,
///         _cx: &mut Context<Self>,
///     ) -> Result<usize, Self::Error> {
///         Ok(pool.add(clerks)?.size())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).coordinator(Boss).spawn().await?;
/// assert_eq!(pool.commands().call(3).await?, 5);
/// assert_eq!(pool.call(7).await, Ok(7)); // messages go to the workers
/// # Ok(()) }
/// ```
pub trait Coordinator<A: Actor>: Sized + Send + 'static {
    /// What it is told.
    type Command: Send + 'static;
    /// What a call of it is answered with.
    type Reply: Send + 'static;
    /// Its error type. Both its caller and the end of the pool need the error: one that cannot be
    /// cloned goes into an `Arc`.
    type Error: Clone + Into<Box<dyn Error + Send + Sync>> + Send + 'static;

    /// Called once, before there is a worker. May set options of the pool. It runs in the task that
    /// spawns the pool.
    ///
    /// # Errors
    /// The pool is not started, and [`spawn`](CoordinatedBuilder::spawn) returns the error.
    fn started(
        &mut self,
        setup: &mut Setup<A>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = setup;
        ready(Ok(()))
    }

    /// Handles one command.
    ///
    /// # Errors
    /// The caller gets the error, then the pool ends because of it.
    fn command(
        &mut self,
        command: Self::Command,
        pool: &PoolAdmin<A>,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Self::Reply, Self::Error>> + Send;

    /// Handles one command with what came with it: for a coordinator that answers later
    /// ([`Delivery::take_reply_port`]).
    ///
    /// # Errors
    /// As [`command`](Self::command).
    fn receive(
        &mut self,
        delivery: &mut Delivery<Self::Command, Self::Reply, Self::Error>,
        pool: &PoolAdmin<A>,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Answer<Self::Reply>, Self::Error>> + Send {
        async move { self.command(delivery.take(), pool, cx).await.map(Answer::Reply) }
    }

    /// Hears what has happened in the pool, before the commands that wait.
    ///
    /// # Errors
    /// The pool ends because of the error.
    fn notice(
        &mut self,
        notice: PoolNotice,
        pool: &PoolAdmin<A>,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (notice, pool, cx);
        ready(Ok(()))
    }

    /// Hears of the end of another actor that it monitors.
    ///
    /// # Errors
    /// The pool ends because of the error.
    fn down(
        &mut self,
        who: &AnyAddress,
        reason: &ExitReason,
        pool: &PoolAdmin<A>,
        cx: &mut Context<Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (who, reason, pool, cx);
        ready(Ok(()))
    }
}
