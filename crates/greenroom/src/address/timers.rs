//! Messages to an actor later, or periodically.

use std::time::Duration;

use super::Address;
use crate::timer::Timer;

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Address<M, R, E> {
    /// Sends a message after this long. If the mailbox is then full, the message waits in line like
    /// that of any sender, in its own task, which holds the address until then. If the actor is
    /// gone, it is dropped.
    ///
    /// May be called from any thread: the timer runs on the pool's runtime.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// # struct Clerk; impl Actor for Clerk { type Message = &'static str; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: &'static str, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let clerk = Pool::new(|_slot| Clerk).workers(1).spawn().await?;
    /// let timer = clerk.send_after("time is up", Duration::from_secs(30));
    /// assert!(timer.cancel(), "it was still pending");
    /// # Ok(()) }
    /// ```
    pub fn send_after(&self, message: M, delay: Duration) -> Timer {
        Timer::once(self, message, delay)
    }

    /// Sends copies of a message, the first one after one period. See
    /// [`send_every_with`](Self::send_every_with).
    pub fn send_every(&self, message: M, period: Duration) -> Timer
    where
        M: Clone,
    {
        self.send_every_with(move || message.clone(), period)
    }

    /// Sends the messages that `make` returns, the first one after one period (of at least a
    /// millisecond). A tick that finds the mailbox full is skipped, and so are ticks that the
    /// runtime was too late for: they are [counted](Timer::skipped), never sent in a burst. The
    /// interval does not drift.
    ///
    /// `make` runs on the task that serves all timers of the runtime: it must not block. A panic
    /// in it ends the timer.
    pub fn send_every_with(
        &self,
        make: impl FnMut() -> M + Send + 'static,
        period: Duration,
    ) -> Timer {
        Timer::every(self, make, period)
    }
}
