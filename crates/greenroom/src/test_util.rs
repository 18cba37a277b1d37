//! Building blocks for tests of actors and pools. Behind the feature
//! `test-util`, for `[dev-dependencies]`.
//!
//! | for | there is |
//! |---|---|
//! | workers that do as they are told | [`Scripted`], with a [`Behavior`] for each message |
//! | what they have seen | [`Log`] |
//! | time that passes when no task has anything to do | [`clock`]: tokio's paused clock, which pools and timers go by |
//! | chance that repeats itself | [`PoolBuilder::seed`](crate::PoolBuilder::seed), [`Random::seeded`](crate::policy::Random::seeded) |
//!
//! ```
//! use greenroom::{prelude::*, test_util::{Behavior, Scripted}};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = Scripted::new(|number: &u64| match number {
//!     0 => Behavior::panic("on purpose"),
//!     1 => Behavior::fail("no").after(Duration::from_secs(60)),
//!     _ => Behavior::reply(*number),
//! });
//! let log = worker.log();
//! let pool = Pool::new(move |_slot| worker.clone()).workers(1).seed(7).spawn().await?;
//! assert!(pool.call(0).await.is_err());
//! assert_eq!(pool.call(5).await, Ok(5));
//! assert_eq!(log.seen().len(), 2);
//! # Ok(()) }
//! ```

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use crate::{Actor, Answer, Context, Delivery, ExitReason};

/// Time for tests: stands still while a task has something to do, and jumps to the next timer when
/// none has. Start a test with `#[tokio::test(start_paused = true)]`.
pub mod clock {
    pub use tokio::time::{advance, pause, resume};
}

/// What a scripted worker does with a message.
#[derive(Debug)]
pub struct Behavior<R, E> {
    /// How long it sleeps before.
    after: Duration,
    /// It leaves the message in its delivery.
    looks: bool,
    what: What<R, E>,
}

#[derive(Debug)]
enum What<R, E> {
    Reply(R),
    Fail(E),
    Panic(String),
    Never,
    DropPort,
    Exit(ExitReason),
}

impl<R, E> Behavior<R, E> {
    fn new(what: What<R, E>) -> Self {
        Self { after: Duration::ZERO, looks: false, what }
    }

    /// Replies.
    pub fn reply(reply: R) -> Self {
        Self::new(What::Reply(reply))
    }

    /// Returns an error.
    pub fn fail(error: E) -> Self {
        Self::new(What::Fail(error))
    }

    /// Panics with this text.
    pub fn panic(text: impl Into<String>) -> Self {
        Self::new(What::Panic(text.into()))
    }

    /// Never returns; it can be dropped.
    pub fn never() -> Self {
        Self::new(What::Never)
    }

    /// Drops its reply port unanswered.
    pub fn drop_port() -> Self {
        Self::new(What::DropPort)
    }

    /// Ends the worker after this message, for this reason. A caller gets no reply.
    pub fn exit(reason: ExitReason) -> Self {
        Self::new(What::Exit(reason))
    }

    /// Sleeps before it does so.
    pub fn after(self, time: Duration) -> Self {
        Self { after: time, ..self }
    }

    /// Only looks at the message: it is still in its delivery afterwards.
    pub fn looking(self) -> Self {
        Self { looks: true, ..self }
    }
}

/// One message that a scripted worker was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// By the worker in this slot.
    pub slot: usize,
    /// Which attempt it was, from 1.
    pub attempt: u32,
}

/// What scripted workers have seen, all that came of one.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    seen: Mutex<Vec<Seen>>,
    starts: AtomicUsize,
    in_hand: AtomicUsize,
    most_in_hand: AtomicUsize,
}

impl Log {
    /// The messages that were given to workers, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().clone()
    }

    /// How often a worker was started.
    pub fn starts(&self) -> usize {
        // Pairs with nothing: a count by itself, which guards no other data.
        self.0.starts.load(Ordering::SeqCst)
    }

    /// Messages in the hands of workers now.
    pub fn in_hand(&self) -> usize {
        // Pairs with nothing: a count by itself, which guards no other data.
        self.0.in_hand.load(Ordering::SeqCst)
    }

    /// The most that there were at once.
    pub fn most_in_hand(&self) -> usize {
        // Pairs with nothing: a count by itself, which guards no other data.
        self.0.most_in_hand.load(Ordering::SeqCst)
    }

    fn begin(&self, seen: Seen) -> InHandGuard<'_> {
        self.0.seen.lock().push(seen);
        // Pairs with nothing: additions to one counter have an order anyway.
        let now = self.0.in_hand.fetch_add(1, Ordering::SeqCst) + 1;
        // Pairs with nothing: the highest count wins, in any order.
        self.0.most_in_hand.fetch_max(now, Ordering::SeqCst);
        InHandGuard(&self.0)
    }
}

/// A message is in hand until this is dropped, also in a panic.
struct InHandGuard<'a>(&'a Notes);

impl Drop for InHandGuard<'_> {
    fn drop(&mut self) {
        // Pairs with nothing: a count by itself, which guards no other data.
        self.0.in_hand.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Decides how a message is handled.
type Script<M, R, E> = dyn Fn(&M) -> Behavior<R, E> + Send + Sync;

/// A worker that follows a script for each message. Clones follow the same script and
/// write into the same log.
pub struct Scripted<M, R, E> {
    script: Arc<Script<M, R, E>>,
    log: Log,
}

impl<M, R, E> Scripted<M, R, E> {
    /// A worker with this script.
    pub fn new(script: impl Fn(&M) -> Behavior<R, E> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), log: Log::default() }
    }

    /// The log that it and its clones write.
    pub fn log(&self) -> Log {
        self.log.clone()
    }
}

impl<M, R, E> Clone for Scripted<M, R, E> {
    fn clone(&self) -> Self {
        Self { script: self.script.clone(), log: self.log.clone() }
    }
}

impl<M, R, E> fmt::Debug for Scripted<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("log", &self.log).finish_non_exhaustive()
    }
}

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Actor for Scripted<M, R, E> {
    type Message = M;
    type Reply = R;
    type Error = E;

    async fn started(&mut self, _cx: &mut Context<Self>) -> Result<(), E> {
        // Pairs with nothing: a count by itself, which guards no other data.
        self.log.0.starts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Deliveries are received whole.
    async fn handle(&mut self, message: M, _cx: &mut Context<Self>) -> Result<R, E> {
        drop(message);
        std::future::pending().await
    }

    #[expect(clippy::panic, reason = "the script says so")]
    async fn receive(
        &mut self,
        delivery: &mut Delivery<M, R, E>,
        cx: &mut Context<Self>,
    ) -> Result<Answer<R>, E> {
        let seen = Seen { slot: cx.slot(), attempt: delivery.attempt() };
        let _in_hand = self.log.begin(seen);
        let Some(message) = delivery.message() else { return Ok(Answer::Deferred) };
        let Behavior { after, looks, what } = (self.script)(message);
        if !looks {
            drop(delivery.take());
        }
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        match what {
            What::Reply(reply) => Ok(Answer::Reply(reply)),
            What::Fail(error) => Err(error),
            What::Panic(text) => panic!("{text}"),
            What::Never => std::future::pending().await,
            What::DropPort => {
                drop(delivery.take_reply_port());
                Ok(Answer::Deferred)
            }
            What::Exit(reason) => {
                cx.exit(reason);
                Ok(Answer::Deferred)
            }
        }
    }
}
