//! Starting a keeper together with its pool, and ending both.
//!
//! ```text
//! the pool is made ─▶ the keeper starts ─▶ workers start ─▶ each hears of the other's end
//!                            │ fails            │ none does
//!                            └──────────────────┴──▶ spawn returns the error, nothing is left running
//! ```

use std::{
    convert::Infallible,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::{discard::discard, lock::user_code_follows};
use tokio::time::{Instant, timeout_at};

use super::{notice::PoolNotice, notices::Notices};
use crate::{
    Actor, Address, AddressOf, AnyAddress, Envelope, ExitReason, Pool, PoolAdmin, PoolBuilder,
    SpawnError, Stop,
    any_address::Erased,
    on_drop::OnDrop,
    pool::frame::{
        AnyCore,
        exit::stop_because,
        rest::{rest_slots, wake_slots},
        start::{abort_on_drop, start, start_all},
    },
};

/// How long a keeper may take to end after its pool, including its message in hand. After that its
/// handler is dropped at its next await.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Makes the keeper of a pool with these actors.
type MakeKeeper<A, B> = Box<dyn FnOnce(PoolAdmin<A>) -> B + Send>;

/// Turns the keeper's address into the one that urgent messages go to. It exists only if both have
/// the same message type.
type Diversion<A, B> = fn(&AddressOf<B>) -> AddressOf<A>;

/// A pool with a keeper that is being set up. Nothing runs before [`spawn`](Self::spawn).
#[must_use = "a builder does nothing until it is spawned"]
pub struct KeptBuilder<A: Actor, B: Actor, K = Infallible> {
    builder: PoolBuilder<A, K>,
    make: MakeKeeper<A, B>,
    /// Present if urgent messages go to the keeper.
    urgent: Option<Diversion<A, B>>,
}

impl<A, B, K> KeptBuilder<A, B, K>
where
    A: Actor,
    B: Actor<Message: From<PoolNotice>>,
    K: Hash + Eq + Send + Sync + 'static,
{
    pub(in crate::pool) fn new(builder: PoolBuilder<A, K>, make: MakeKeeper<A, B>) -> Self {
        Self { builder, make, urgent: None }
    }

    /// Gives urgent messages that are sent to the pool's address to the keeper, never to a worker.
    /// Without this, workers handle them. For a keeper with the same message type as the workers.
    ///
    /// The address of a single worker is not the pool's: an urgent message sent there is for the
    /// worker.
    ///
    /// ```
    /// # use greenroom::{Envelope, keeper::PoolNotice, prelude::*};
    /// # struct Page; impl From<PoolNotice> for Page { fn from(_: PoolNotice) -> Self { Self } }
    /// # struct Clerk; impl Actor for Clerk { type Message = Page; type Error = std::fmt::Error;
    /// # type Reply = &'static str;
    /// # async fn handle(&mut self, _: Page, _: &mut Context<Self>) -> Result<Self::Reply, Self::Error> { Ok("a clerk") } }
    /// # struct Boss; impl Actor for Boss { type Message = Page; type Reply = &'static str; type Error = std::fmt::Error;
    /// # async fn handle(&mut self, _: Page, _: &mut Context<Self>) -> Result<Self::Reply, Self::Error> { Ok("the boss") } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let office = Pool::new(|_slot| Clerk).keeper(|_office| Boss);
    /// let (office, _boss) = office.keeper_takes_urgent().spawn().await?;
    /// assert_eq!(office.call(Page).await?, "a clerk");
    /// assert_eq!(office.call_with(Page, Envelope::urgent()).await?, "the boss");
    /// # Ok(()) }
    /// ```
    pub fn keeper_takes_urgent(mut self) -> Self
    where
        B: Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>,
    {
        self.urgent = Some(Address::clone);
        self
    }

    /// Starts the keeper, then the workers, as [`PoolBuilder::spawn`] does. Returns the pool and
    /// the keeper, which is a pool of one. A stop of the pool returns before the keeper has ended.
    ///
    /// # Errors
    /// [`SpawnError::KeeperFailed`] if the keeper's [`started`](Actor::started) hook has failed or
    /// panicked; otherwise like `PoolBuilder::spawn`. Nothing is left running then.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing running.
    pub async fn spawn(self) -> Result<(Pool<A>, Pool<B>), SpawnError> {
        let Self { builder, make, urgent } = self;
        let core = builder.into_core()?;
        // First, and so dropped last: `started` may make addresses of the pool, and dropping the
        // last address stops the pool.
        let spawned = Pool::spawned(core.clone());
        let pool = core.erased();
        let unstarted = abort_on_drop(&pool);
        rest_slots(&*core);
        let notices = core.frame.controllers.notices.get_or_init(Arc::default).clone();
        let name = &core.frame.config.name;
        let kept = Pool::one(make(PoolAdmin::new(core.clone()))).name(format!("{name}-keeper"));
        let kept = kept.into_core()?;
        let keeper = Pool::spawned(kept.clone());
        // The pool holds the keeper's address, and the keeper holds the pool: both would keep each
        // other alive.
        // It does not end its message in hand first: that may take any length of time.
        let vtable = keeper.vtable();
        let doomed = OnDrop::new(move || vtable.clone().stop_behind(Stop::within(Duration::ZERO)));
        if let Some(urgent) = urgent {
            let _ = core.urgent.set(urgent(&keeper));
        }
        start_all(&kept.erased()).await.map_err(|error| match error {
            SpawnError::NoWorkerStarted { reason, .. } => {
                SpawnError::KeeperFailed { pool: name.to_string(), reason }
            }
            error => error,
        })?;
        start(&pool, &wake_slots(&*core)).await?;
        unstarted.defuse();
        doomed.defuse();
        let (any, address) = (core.clone().any(), keeper.address());
        let reason = ExitReason::failed("the runtime of its keeper has ended");
        let ends_with_keeper = StopOnDrop { pool: Arc::downgrade(&pool), reason };
        keeper.runtime().spawn(attend(ends_with_keeper, any, address, notices));
        Ok((spawned, keeper))
    }
}

/// Stops the pool when the task that attends to its keeper ends. That may be with the keeper's
/// runtime, while the pool has threads of its own.
struct StopOnDrop {
    pool: Weak<dyn AnyCore>,
    reason: ExitReason,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let pool = self.pool.upgrade();
        // Pairs with nothing: the stop of an ended pool finds nothing to do.
        if let Some(pool) = pool.filter(|pool| !pool.frame().lifecycle.ended.load(Ordering::SeqCst))
        {
            stop_because(&pool, self.reason.clone());
        }
    }
}

/// Sends a keeper the notices of its pool. When one of the two has ended, ends the other.
async fn attend<M, R, E>(
    mut ends_with_keeper: StopOnDrop,
    pool: AnyAddress,
    address: Address<M, R, E>,
    notices: Arc<Notices>,
) where
    M: From<PoolNotice> + Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    let keeper = address.erase();
    let mut telling = pin!(tell(&address, &notices));
    let reason = tokio::select! {
        biased;
        reason = keeper.ended() => {
            ends_with_keeper.reason = reason;
            return;
        }
        reason = pool.ended() => reason,
        // It continues until it has reported the end.
        () = &mut telling => return,
    };
    notices.put(PoolNotice::Stopped { reason });
    let deadline = Instant::now() + LAST_WORDS;
    let _ = timeout_at(deadline, telling).await;
    let left = deadline.saturating_duration_since(Instant::now());
    let _ = keeper.stop(Stop::within(left)).await;
}

/// Sends notices to a keeper, up to the one of the pool's end.
async fn tell<M, R, E>(keeper: &Address<M, R, E>, notices: &Notices)
where
    M: From<PoolNotice>,
{
    while let Some(notice) = notices.next().await {
        let is_last = matches!(notice, PoolNotice::Stopped { .. });
        if let Some(message) = as_message(notice) {
            // Refused by a keeper that is about to end together with its pool.
            discard(keeper.send_with(message, Envelope::urgent()).await);
        }
        if is_last {
            return;
        }
    }
}

/// A notice as a message of the keeper. The conversion is user code: a panic there loses only this
/// notice.
fn as_message<M: From<PoolNotice>>(notice: PoolNotice) -> Option<M> {
    user_code_follows();
    let message = catch_unwind(AssertUnwindSafe(|| M::from(notice)));
    let lost = |panic| {
        discard(panic);
        tracing::error!("a keeper misses a notice of its pool: its `From<PoolNotice>` panicked");
    };
    message.map_err(lost).ok()
}

impl_debug!([A: Actor, B: Actor, K] KeptBuilder<A, B, K>, |_|);
