//! Calls to all live workers.

use super::BroadcastAddress;
use crate::{Envelope, pool::gather::gathering::Gathering};

impl<M: Clone + Send + 'static, R: Send + 'static, E: Send + 'static> BroadcastAddress<M, R, E> {
    /// A call to live workers. Its method decides how long it waits: [`all`](Gathering::all),
    /// [`first`](Gathering::first), [`quorum`](Gathering::quorum),
    /// [`first_answer`](Gathering::first_answer).
    pub fn call(&self, message: M) -> Gathering<'_, M, R, E> {
        Gathering::new(self, message, Envelope::new())
    }

    /// Like [`call`](Self::call), with an envelope: each copy has its class, deadline, sender and
    /// trace. Its timeout ends each call separately, with
    /// [`CallError::TimedOut`](crate::CallError::TimedOut); [`within`](Gathering::within) ends the
    /// wait for all. Each call has its own cancellation token, which is cancelled with the
    /// envelope's as well.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Cache; impl Actor for Cache { type Message = &'static str; type Reply = usize; type Error = ();
    /// # async fn handle(&mut self, key: &'static str, _: &mut Context<Self>) -> Result<usize, ()> { Ok(key.len()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let caches = Pool::new(|_slot| Cache).workers(1).spawn().await?;
    /// let sizes = caches.broadcast().call_with("size", Envelope::urgent()).all().await?;
    /// assert_eq!(sizes.successes().collect::<Vec<_>>(), [(0, &4)]);
    /// # Ok(()) }
    /// ```
    pub fn call_with(&self, message: M, envelope: Envelope) -> Gathering<'_, M, R, E> {
        Gathering::new(self, message, envelope)
    }
}
