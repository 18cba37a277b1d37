//! One message, a copy to each worker.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{
    live_workers::live_workers,
    sent::{NoneAccepted, Sent, SentOutcomes},
    together::Together,
};
use crate::{Address, Envelope, SendError, pool::Worker};

mod call;

/// The address of all live workers of a pool at once: each gets a copy of every message.
///
/// The live workers are looked up for each message. Copies are made by `Clone` before the first one
/// is sent; wrap a message that is costly to copy in an `Arc<M>`. Each copy is one accepted message
/// of the pool. A clone is the same address.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Cache; impl Actor for Cache { type Message = &'static str; type Reply = usize; type Error = String;
/// # async fn handle(&mut self, key: &'static str, _: &mut Context<Self>) -> Result<usize, String> { Ok(key.len()) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Cache).workers(2).spawn().await?;
/// pool.ready(2, std::time::Duration::from_secs(5)).await?;
/// let caches = pool.broadcast();
/// assert!(caches.send("invalidate").await?.is_complete());
///
/// let answers = caches.call("size").all().await?;
/// assert_eq!(answers.successes().map(|(_, size)| size).sum::<usize>(), 8);
/// # Ok(()) }
/// ```
pub struct BroadcastAddress<M, R, E> {
    /// The address of the pool.
    pub(crate) address: Address<M, R, E>,
    /// Counts the calls that go to some of the workers, so that these take turns.
    turns: Arc<AtomicUsize>,
}

impl<M, R, E> BroadcastAddress<M, R, E> {
    pub(crate) fn new(address: Address<M, R, E>) -> Self {
        Self { address, turns: Arc::default() }
    }

    /// The running workers, each with its own address. Workers that are being started are not
    /// included, but are in [`PoolAdmin::workers`](crate::PoolAdmin#who-is-in-which-list).
    pub fn workers(&self) -> Vec<Worker<M, R, E>> {
        live_workers(&self.address)
    }
}

type Addressed<M, R, E> = (Vec<Worker<M, R, E>>, Vec<M>);

impl<M: Clone + Send + 'static, R: Send + 'static, E: Send + 'static> BroadcastAddress<M, R, E> {
    /// Gives each live worker a copy, waiting for room at all of them at once. If the pool does not
    /// let its senders wait, a full worker treats its copy according to its pool's
    /// [`Overflow`](crate::Overflow).
    ///
    /// # Errors
    /// The message, if no worker has accepted a copy.
    ///
    /// # Panics
    /// If a clone or a key function of a pool panics. If a clone panics, nothing has been sent.
    ///
    /// # Cancel safety
    /// If the future is dropped, each copy has either been queued or is dropped.
    pub async fn send(&self, message: M) -> Result<Sent, NoneAccepted<M>> {
        let (members, copies) = self.copies(message)?;
        let sends = members.iter().zip(copies).map(|(member, copy)| member.address().send(copy));
        all_sent(&members, sends).await
    }

    /// Like [`send`](Self::send), with an envelope: each copy has its class, deadline, sender,
    /// trace and token, and waits for room no longer than its timeout.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// # struct Cache; impl Actor for Cache { type Message = &'static str; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: &'static str, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let caches = Pool::new(|_slot| Cache).workers(1).spawn().await?;
    /// let first = Envelope::urgent().deadline(Duration::from_secs(1));
    /// assert!(caches.broadcast().send_with("invalidate", first).await?.is_complete());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `send`.
    ///
    /// # Panics
    /// Those of `send`.
    ///
    /// # Cancel safety
    /// That of `send`.
    pub async fn send_with(&self, message: M, envelope: Envelope) -> Result<Sent, NoneAccepted<M>> {
        let (members, copies) = self.copies(message)?;
        let sends = members
            .iter()
            .zip(copies)
            .map(|(member, copy)| Box::pin(member.address().send_with(copy, envelope.clone())));
        all_sent(&members, sends).await
    }

    /// Gives a copy to each live worker that has room for it now.
    ///
    /// # Errors
    /// The message, if no worker has accepted a copy.
    ///
    /// # Panics
    /// Those of [`send`](Self::send).
    pub fn try_send(&self, message: M) -> Result<Sent, NoneAccepted<M>> {
        self.try_send_with(message, Envelope::new())
    }

    /// Like [`try_send`](Self::try_send), with an envelope for each copy.
    ///
    /// # Errors
    /// Those of `try_send`.
    ///
    /// # Panics
    /// Those of [`send`](Self::send).
    pub fn try_send_with(&self, message: M, envelope: Envelope) -> Result<Sent, NoneAccepted<M>> {
        let (members, copies) = self.copies(message)?;
        let mut outcomes = SentOutcomes::new();
        for (member, copy) in members.iter().zip(copies) {
            outcomes.add(member.slot(), member.address().try_send_with(copy, envelope.clone()));
        }
        outcomes.sent()
    }

    /// The live workers, and a copy for each.
    fn copies(&self, message: M) -> Result<Addressed<M, R, E>, NoneAccepted<M>> {
        let members = self.workers();
        if members.is_empty() {
            return Err(NoneAccepted::no_workers(message));
        }
        let copies = copies(message, members.len());
        Ok((members, copies))
    }

    /// At most this many of the live workers, in the order of their slots. They take turns.
    pub(super) fn some(&self, most: usize) -> Vec<Worker<M, R, E>> {
        let mut members = self.workers();
        if most < members.len() {
            let turn = self.turns.fetch_add(1, Ordering::Relaxed) % members.len();
            members.rotate_left(turn);
            members.truncate(most);
            members.sort_unstable_by_key(Worker::slot);
        }
        members
    }
}

/// Waits until each of these workers has accepted its copy, or has not.
async fn all_sent<M, R, E, F>(
    members: &[Worker<M, R, E>],
    sends: impl Iterator<Item = F>,
) -> Result<Sent, NoneAccepted<M>>
where
    F: Future<Output = Result<(), SendError<M>>> + Unpin,
{
    let (mut outcomes, mut sends) = (SentOutcomes::new(), Together::new(sends));
    while let Some((index, sent)) = sends.next().await {
        outcomes.add(members[index].slot(), sent);
    }
    outcomes.sent()
}

impl_clone!([M, R, E] BroadcastAddress<M, R, E>: address, turns);

impl_debug!([M, R, E] BroadcastAddress<M, R, E>, |this| workers: this.workers());

/// All of them are made before the first is sent, so that a clone that panics has sent nothing.
pub(super) fn copies<M: Clone>(message: M, count: usize) -> Vec<M> {
    std::iter::repeat_n(message, count).collect()
}
