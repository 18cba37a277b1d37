//! One request in parts, one answer from the parts' results.

use std::{sync::Arc, time::Duration};

use super::{
    fold::{Join, Part, fold},
    live_workers::live_workers,
    partial::{PartialPolicy, SplitJoinError},
};
use crate::{Address, CallError, pool::Worker};

/// From the request, the part's index and the number of live workers to the part.
type Split<M> = dyn Fn(&M, usize, usize) -> Option<M> + Send + Sync;
type Init<S> = dyn Fn() -> S + Send + Sync;

/// How a request is split among workers, and how their results are joined.
///
/// ```text
/// request ──split──▶ part 0 ──▶ worker ──▶ result 0 ─┐
///            │                                       ├─ join(join(init(), 0, result 0), 1, result 1) ──▶ answer
///            └─────▶ part 1 ──▶ worker ──▶ result 1 ─┘
/// ```
///
/// `split(request, index, of)` makes the part for worker `index` of `of` live ones, or `None` for
/// no part; the default is a copy for each. `join(state, index, result)` sees the results in the
/// order of the index, whichever arrives first, so the answer is the same each time; a result that
/// arrives early is kept until its turn comes. `init` makes a new state for each request: nothing
/// carries over from one to the next.
///
/// All three run in the caller. If one of them panics, the panic unwinds there: nothing has been
/// sent after a panic of `split` or `init`, and the pending parts are abandoned after a panic of
/// `join`.
///
/// ```
/// # use greenroom::{prelude::*, gather::SplitJoin};
/// struct Summer;
///
/// impl Actor for Summer {
///     type Message = Vec<u64>;
///     type Reply = u64;
///     type Error = std::convert::Infallible;
///
///     async fn handle(&mut self, part: Vec<u64>, _cx: &mut Context<Self>) -> Result<u64, Self::Error> {
///         Ok(part.iter().sum())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Summer).workers(2).spawn().await?;
/// let share = |all: &Vec<u64>, index: usize, of: usize| {
///     let part: Vec<u64> = all.iter().skip(index).step_by(of).copied().collect();
///     (!part.is_empty()).then_some(part)
/// };
/// let sums = SplitJoin::with_split(share, || 0, |sum, _index, part| sum + part.unwrap_or(0));
/// assert_eq!(pool.split_join(sums).call((1..=100).collect()).await?, 5050);
/// # Ok(()) }
/// ```
#[must_use = "settings do nothing by themselves"]
pub struct SplitJoin<M, R, E, S> {
    split: Arc<Split<M>>,
    init: Arc<Init<S>>,
    join: Arc<Join<R, E, S>>,
    policy: PartialPolicy,
    within: Option<Duration>,
}

impl<M, R, E, S> SplitJoin<M, R, E, S> {
    /// Gives each live worker a copy of the request. Wrap a request that is costly to
    /// copy in an `Arc<M>`.
    pub fn new(
        init: impl Fn() -> S + Send + Sync + 'static,
        join: impl Fn(S, usize, Result<R, CallError<E>>) -> S + Send + Sync + 'static,
    ) -> Self
    where
        M: Clone,
    {
        Self::with_split(|request: &M, _index, _of| Some(request.clone()), init, join)
    }

    /// Gives each live worker the part that `split` makes for it.
    pub fn with_split(
        split: impl Fn(&M, usize, usize) -> Option<M> + Send + Sync + 'static,
        init: impl Fn() -> S + Send + Sync + 'static,
        join: impl Fn(S, usize, Result<R, CallError<E>>) -> S + Send + Sync + 'static,
    ) -> Self {
        let (split, init, join) = (Arc::new(split), Arc::new(init), Arc::new(join));
        Self { split, init, join, policy: PartialPolicy::default(), within: None }
    }

    /// The treatment of a request with a part that has no reply; [`PartialPolicy::Error`] by
    /// default.
    pub fn partial(mut self, policy: PartialPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Waits for the parts at most this long, counted from the first poll of a call. Without a
    /// limit by default.
    pub fn within(mut self, deadline: Duration) -> Self {
        self.within = Some(deadline);
        self
    }

    pub(crate) fn among(self, address: Address<M, R, E>) -> SplitJoinAddress<M, R, E, S> {
        SplitJoinAddress { address, settings: self }
    }
}

/// The address of workers that answer a request together; made by
/// [`Pool::split_join`](crate::Pool::split_join). A clone is the same address.
pub struct SplitJoinAddress<M, R, E, S> {
    address: Address<M, R, E>,
    settings: SplitJoin<M, R, E, S>,
}

impl<M, R, E, S> SplitJoinAddress<M, R, E, S>
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    /// Splits the request among the live workers, all at once, and joins their results.
    /// Each part is one accepted message of the pool. If no worker gets a part, the answer
    /// is the value of `init`.
    ///
    /// # Errors
    /// If no worker is alive, or if a part has no reply, unless the policy is
    /// [`PartialPolicy::Partial`].
    ///
    /// # Panics
    /// If one of the functions of [`SplitJoin`] or a key function of a pool panics.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the parts.
    pub async fn call(&self, request: M) -> Result<S, SplitJoinError<E>> {
        let members = live_workers(&self.address);
        if members.is_empty() {
            return Err(SplitJoinError::NoWorkers);
        }
        let SplitJoin { init, join, policy, within, .. } = &self.settings;
        let parts = self.parts(members, request);
        fold(parts, init(), &**join, *policy, *within).await
    }

    fn parts(&self, members: Vec<Worker<M, R, E>>, request: M) -> Vec<Part<M, R, E>> {
        let of = members.len();
        let part =
            |(index, member)| Some((index, member, (self.settings.split)(&request, index, of)?));
        members.into_iter().enumerate().filter_map(part).collect()
    }
}

impl_clone!([M, R, E, S] SplitJoin<M, R, E, S>: split, init, join, policy, within);

impl_clone!([M, R, E, S] SplitJoinAddress<M, R, E, S>: address, settings);

impl_debug!([M, R, E, S] SplitJoin<M, R, E, S>, |this| policy: this.policy, within: this.within);

impl_debug!([M, R, E, S] SplitJoinAddress<M, R, E, S>, |this| settings: this.settings,
    workers: live_workers(&this.address));
