//! A call to several workers, and the answers that it waits for.

use std::time::Duration;

use super::{
    broadcast::{BroadcastAddress, copies},
    gathered::{FirstReply, GatherError, Gathered},
    round::Round,
};
use crate::{Envelope, pool::Worker};

/// A call to live workers that has not been sent yet; made by [`BroadcastAddress::call`].
///
/// | method | resolves | at the deadline |
/// |---|---|---|
/// | [`all`](Self::all) | when each has answered | with the answers so far |
/// | [`first`](Self::first), [`first_answer`](Self::first_answer) | with a reply, or all errors | [`GatherError::TimedOut`] |
/// | [`quorum`](Self::quorum) | with that many replies, or when they cannot be reached | [`GatherError::QuorumMissed`] |
///
/// Answers that have arrived by a deadline are also in the errors.
///
/// Calls that are no longer needed are abandoned, and so are all calls when the future is dropped:
/// a message that has not been started is skipped, and a started one continues, with its
/// cancellation token cancelled.
#[must_use = "nothing is sent before it is said what to wait for"]
pub struct Gathering<'a, M, R, E> {
    address: &'a BroadcastAddress<M, R, E>,
    message: M,
    /// The metadata of each copy.
    envelope: Envelope,
    within: Option<Duration>,
}

impl<'a, M: Clone + Send + 'static, R: Send + 'static, E: Send + 'static> Gathering<'a, M, R, E> {
    pub(super) fn new(
        address: &'a BroadcastAddress<M, R, E>,
        message: M,
        envelope: Envelope,
    ) -> Self {
        Self { address, message, envelope, within: None }
    }

    /// Waits at most this long, counted from the first poll. Without a limit by default.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }

    /// Waits for the answer of each live worker, a reply or an error.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Shard; impl Actor for Shard { type Message = u32; type Reply = u32; type Error = String;
    /// # async fn handle(&mut self, by: u32, _: &mut Context<Self>) -> Result<u32, String> { Ok(by) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let shards = Pool::new(|_slot| Shard).workers(2).spawn().await?.broadcast();
    /// let counts = shards.call(7).within(std::time::Duration::from_secs(1)).all().await?;
    /// assert!(counts.is_complete(), "slots {:?} are late", counts.unanswered());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// If no worker is alive.
    ///
    /// # Panics
    /// Those of [`BroadcastAddress::send`].
    ///
    /// # Cancel safety
    /// Dropping the future abandons the calls.
    pub async fn all(self) -> Result<Gathered<R, E>, GatherError<R, E>> {
        let members = self.address.workers();
        let mut round = start(members, self.message, &self.envelope, self.within)?;
        round.run(|_| false).await;
        Ok(round.gathered())
    }

    /// Asks all live workers and waits for the first reply. An error counts only if there is no
    /// reply at all.
    ///
    /// # Errors
    /// If no worker is alive, if all have failed, or at the deadline.
    ///
    /// # Panics
    /// Those of [`BroadcastAddress::send`].
    ///
    /// # Cancel safety
    /// Dropping the future abandons the calls.
    pub async fn first(self) -> Result<FirstReply<R>, GatherError<R, E>> {
        self.first_answer(usize::MAX).await
    }

    /// Like [`first`](Self::first), but asks only this many of the live workers: at least one, and
    /// at most all. They take turns. The price is that many times the work.
    ///
    /// # Errors
    /// Those of [`first`](Self::first).
    ///
    /// # Panics
    /// Those of [`BroadcastAddress::send`].
    ///
    /// # Cancel safety
    /// Dropping the future abandons the calls.
    pub async fn first_answer(self, workers: usize) -> Result<FirstReply<R>, GatherError<R, E>> {
        let members = self.address.some(workers.max(1));
        let mut round = start(members, self.message, &self.envelope, self.within)?;
        round.run(|round| round.successes() > 0).await;
        round.gathered().into_first()
    }

    /// Asks all live workers and waits for this many replies (at least one). Fails as soon as too
    /// many workers have failed to reach that.
    ///
    /// # Errors
    /// If fewer workers are alive, if too many have failed, or at the deadline.
    ///
    /// # Panics
    /// Those of [`BroadcastAddress::send`].
    ///
    /// # Cancel safety
    /// Dropping the future abandons the calls.
    pub async fn quorum(self, replies: usize) -> Result<Gathered<R, E>, GatherError<R, E>> {
        let (wanted, members) = (replies.max(1), self.address.workers());
        let live = members.len();
        if (1..wanted).contains(&live) {
            return Err(GatherError::TooFewWorkers { wanted, live });
        }
        let mut round = start(members, self.message, &self.envelope, self.within)?;
        let decided = |round: &Round<R, E>| {
            round.successes() >= wanted || round.failures() > live.saturating_sub(wanted)
        };
        round.run(decided).await;
        let got = round.successes();
        let results = round.gathered();
        match got >= wanted {
            true => Ok(results),
            false => Err(GatherError::QuorumMissed { wanted, got, results }),
        }
    }
}

fn start<M, R, E>(
    members: Vec<Worker<M, R, E>>,
    message: M,
    envelope: &Envelope,
    within: Option<Duration>,
) -> Result<Round<R, E>, GatherError<R, E>>
where
    M: Clone + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    if members.is_empty() {
        return Err(GatherError::NoWorkers);
    }
    let copies = copies(message, members.len());
    Ok(Round::new(members.into_iter().zip(copies), envelope, within))
}

impl_debug!([M, R, E] Gathering<'_, M, R, E>, |this| within: this.within);
