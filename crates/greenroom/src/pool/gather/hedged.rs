//! A second attempt for a call that takes too long.

use std::{fmt, future::Future, pin::pin, sync::Arc, time::Duration};

use super::{
    attempt::{call_with_token, or_cancel, try_call_with_token},
    hedge_budget::{HedgeBudget, Purse},
};
use crate::{Address, CallError, CancellationToken};

/// How long the first attempt is waited for, unless said otherwise.
const DEFAULT_AFTER: Duration = Duration::from_millis(100);

/// The address of a pool whose slow calls are sent a second time; the first reply counts.
///
/// If one answer in a hundred is slow for reasons of its worker (a pause, a cold cache, a slow
/// peer), another worker most likely is not. A second attempt after the 95th percentile of the
/// usual time cuts the tail at the price of a twentieth more load (Dean and Barroso, "The Tail at
/// Scale", Communications of the ACM 56(2), 2013).
///
/// ```text
/// call ──▶ first attempt ───────────── after ──────────────────▶ slow          token cancelled
///                                        └──▶ second attempt ──▶ reply ──▶ caller
/// ```
///
/// * The second attempt is sent when `after` has passed, the [budget](HedgeBudget) has a hedge
///   left, and the pool has room at once: a hedge never waits in line.
/// * The first reply ends the call. If one attempt fails, the other decides; if both fail, the
///   error is that of the one that failed first. A first attempt that fails before `after` is not
///   repeated: hedges are not retries.
/// * The attempt that is no longer needed is abandoned: if it has not been started it is skipped,
///   otherwise its cancellation token is cancelled. Its handler goes on unless it checks the token.
///
/// So a message may be handled twice: hedge only messages that may be. Each call makes one
/// clone of its message; wrap a message that is costly to copy in an `Arc<M>`. To ask several
/// workers from the start, see [`Gathering::first_answer`](super::Gathering::first_answer). A
/// clone shares the budget.
///
/// ```
/// # use greenroom::{prelude::*, gather::{HedgeBudget, Hedged}};
/// # use std::time::Duration;
/// # struct Lookup; impl Actor for Lookup { type Message = u32; type Reply = u32; type Error = String;
/// # async fn handle(&mut self, key: u32, _: &mut Context<Self>) -> Result<u32, String> { Ok(key) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Lookup).workers(8).spawn().await?;
/// let lookups = Hedged::new(pool.address())
///     .after(Duration::from_millis(30))
///     .budget(HedgeBudget::one_in(20));
/// assert_eq!(lookups.call(7).await, Ok(7));
/// # Ok(()) }
/// ```
pub struct Hedged<M, R, E> {
    address: Address<M, R, E>,
    after: Duration,
    purse: Arc<Purse>,
}

impl<M, R, E> Hedged<M, R, E> {
    /// Hedges the calls to a pool, which should have more than one worker. It keeps the pool
    /// alive, as an address does.
    pub fn new(address: Address<M, R, E>) -> Self {
        let purse = Arc::new(Purse::new(HedgeBudget::default()));
        Self { address, after: DEFAULT_AFTER, purse }
    }

    /// How long the first attempt is waited for before a second one is sent; 100 ms unless said
    /// otherwise. About the 95th percentile of the time that a call takes: much less wastes work,
    /// much more saves no time.
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// How many calls may be sent a second time; one in 20, with a burst of 10, unless said
    /// otherwise. Clones that were made before keep theirs.
    pub fn budget(mut self, budget: HedgeBudget) -> Self {
        self.purse = Arc::new(Purse::new(budget));
        self
    }

    /// Sends a message, a second time if the reply is late, and waits for the first reply.
    ///
    /// # Errors
    /// If there is no reply: how the attempt ended that failed first.
    ///
    /// # Panics
    /// As [`Address::call`], and when the clone of the message panics; nothing has been sent then.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the attempts.
    pub async fn call(&self, message: M) -> Result<R, CallError<E>>
    where
        M: Clone,
    {
        self.purse.save();
        let spare = message.clone();
        let first = |token| call_with_token(&self.address, message, token);
        let second = |token| self.spend(|| try_call_with_token(&self.address, spare, token));
        hedge(self.after, first, second).await
    }

    /// Sends a second attempt, if the budget has one; free if there was no room.
    fn spend<T>(&self, send: impl FnOnce() -> Option<T>) -> Option<T> {
        if !self.purse.spend() {
            return None;
        }
        let sent = send();
        if sent.is_none() {
            self.purse.give_back();
        }
        sent
    }
}

/// Runs the first attempt and, after a while, the second one beside it, if there is one. Each gets
/// a token, which is cancelled when the attempt is dropped unanswered.
async fn hedge<T, X, First, Second>(
    after: Duration,
    first: impl FnOnce(CancellationToken) -> First,
    second: impl FnOnce(CancellationToken) -> Option<Second>,
) -> Result<T, X>
where
    First: Future<Output = Result<T, X>>,
    Second: Future<Output = Result<T, X>>,
{
    let token = CancellationToken::new();
    let mut first = pin!(or_cancel(token.clone(), first(token)));
    tokio::select! {
        biased;
        answer = &mut first => return answer,
        () = tokio::time::sleep(after) => {}
    }
    let token = CancellationToken::new();
    match second(token.clone()) {
        Some(second) => either(first, pin!(or_cancel(token, second))).await,
        None => first.await,
    }
}

/// The first success, or the first error if there is none.
async fn either<T, X>(
    mut one: impl Future<Output = Result<T, X>> + Unpin,
    mut other: impl Future<Output = Result<T, X>> + Unpin,
) -> Result<T, X> {
    tokio::select! {
        biased;
        answer = &mut one => match answer {
            Ok(reply) => Ok(reply),
            Err(error) => other.await.or(Err(error)),
        },
        answer = &mut other => match answer {
            Ok(reply) => Ok(reply),
            Err(error) => one.await.or(Err(error)),
        },
    }
}

impl<M, R, E> Clone for Hedged<M, R, E> {
    fn clone(&self) -> Self {
        Self { address: self.address.clone(), after: self.after, purse: self.purse.clone() }
    }
}

impl<M, R, E> fmt::Debug for Hedged<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Hedged");
        out.field("after", &self.after).field("purse", &self.purse).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
