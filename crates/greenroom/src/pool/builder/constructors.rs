//! Creating a pool's builder, from a factory or an actor.

use std::{fmt, sync::Arc};

use super::PoolBuilder;
use crate::Actor;
use crate::pool::{Pool, worker::Factory};

impl<A: Actor> Pool<A> {
    /// Sets up a pool whose workers are built by `factory`, called once per start with the index of
    /// the slot. It runs on the runtime's blocking pool, so it may block. A worker that panics is
    /// built again, three times a minute at most; then its slot is disabled
    /// ([`PoolBuilder::restarts`]).
    #[expect(clippy::new_ret_no_self, reason = "a pool is started by its builder")]
    pub fn new(factory: impl Fn(usize) -> A + Send + Sync + 'static) -> PoolBuilder<A> {
        PoolBuilder::new(Factory::new(Arc::new(move |slot| Ok(factory(slot)))))
    }

    /// Like [`new`](Self::new), for a factory that may fail. A failed restart is retried forever,
    /// with backoff; a slot is never lost.
    pub fn try_new<E: fmt::Display>(
        factory: impl Fn(usize) -> Result<A, E> + Send + Sync + 'static,
    ) -> PoolBuilder<A> {
        PoolBuilder::new(Factory::new(Arc::new(move |slot| {
            factory(slot).map_err(|error| error.to_string())
        })))
    }

    /// Sets up an actor that stands alone: a pool of this one worker, which ends when the actor
    /// does. The actor cannot be built again, so a panic is its end; its queued messages are
    /// returned by the stop, and callers get [`CallError::Stopped`](crate::CallError::Stopped).
    ///
    /// ```
    /// # use greenroom::{ExitReason, prelude::*};
    /// struct Countdown(u32);
    ///
    /// impl Actor for Countdown {
    ///     type Message = ();
    ///     type Reply = u32;
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(&mut self, (): (), cx: &mut Context<Self>) -> Result<u32, Self::Error> {
    ///         self.0 -= 1;
    ///         if self.0 == 0 {
    ///             cx.stop();
    ///         }
    ///         Ok(self.0)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let countdown = Pool::one(Countdown(2)).spawn().await?;
    /// assert_eq!((countdown.call(()).await?, countdown.call(()).await?), (1, 0));
    /// assert!(matches!(countdown.erase().ended().await, ExitReason::Normal));
    /// # Ok(()) }
    /// ```
    pub fn one(actor: A) -> PoolBuilder<A> {
        let actor = parking_lot::Mutex::new(Some(actor));
        let take = move |_slot| actor.lock().take().ok_or_else(|| "it was built once".to_owned());
        PoolBuilder::new(Factory::new(Arc::new(take))).single()
    }
}
