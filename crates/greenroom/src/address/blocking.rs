//! Senders outside of the runtime: threads that have to wait, but cannot await.

use crate::{Address, CallError, SendError};

impl<M: Send, R: Send, E: Send> Address<M, R, E> {
    /// Like [`send`](Self::send), for a thread outside of the runtime: it blocks the thread while
    /// the pool is full.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> {
    /// # Ok(page) } }
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Clerk).spawn().await?;
    /// let address = pool.address();
    /// let thread = std::thread::spawn(move || {
    ///     address.blocking_send(7)?;
    ///     Ok::<_, greenroom::SendError<u8>>(address.blocking_call(8))
    /// });
    /// # let thread = tokio::task::spawn_blocking(move || thread.join()).await?;
    /// assert_eq!(thread.unwrap()?, Ok(8));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `send`.
    ///
    /// # Panics
    /// In async code, a handler for instance, on any runtime: it would block a thread that others
    /// need. There, await `send`, or go through [`spawn_blocking`](tokio::task::spawn_blocking), in
    /// which this may be called.
    #[track_caller]
    pub fn blocking_send(&self, message: M) -> Result<(), SendError<M>> {
        self.runtime().block_on(self.send(message))
    }

    /// Like [`call`](Self::call), for a thread outside of the runtime: it blocks the thread until
    /// there is a reply. Something else has to drive the pool's runtime until then, even a runtime
    /// with a single thread.
    ///
    /// # Errors
    /// Those of `call`.
    ///
    /// # Panics
    /// Those of [`blocking_send`](Self::blocking_send).
    #[track_caller]
    pub fn blocking_call(&self, message: M) -> Result<R, CallError<E, M>> {
        self.runtime().block_on(self.call(message))
    }
}
