//! What a pool knows of its coordinator, and tells it.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{PoolNotice, notice_queue::NoticeQueue};
use crate::{
    Actor, AddressOf, AnyAddress, ExitReason, Stop,
    life::{self, Alive, Signal},
};

/// How long a coordinator may take to be told of the end of its pool, including its message in
/// hand. Then it is dropped at its next await.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Under a flood every message finds no room; a coordinator needs to be told only
/// a few times a second.
const SATURATED_EVERY: Duration = Duration::from_millis(100);

/// The coordinator, as the pool sees it.
pub(crate) struct Coordination<A: Actor> {
    pub(in crate::pool) coordinator: AnyAddress,
    /// The pool, as the party that signals.
    pub(super) notifier: AnyAddress,
    pub(super) notices: Arc<NoticeQueue>,
    /// The destination of urgent messages, if it is not the workers.
    pub(in crate::pool) urgent: Option<AddressOf<A>>,
    /// The coordinator's address, which keeps it running as long as there is a pool.
    pub(super) _alive: Box<dyn Any + Send + Sync>,
    pub(in crate::pool) saturated: Saturated,
}

impl<A: Actor> Coordination<A> {
    pub(in crate::pool) fn notify(&self, notice: PoolNotice) {
        if self.notices.put(notice) {
            let (who, reason) = (self.notifier.clone(), ExitReason::Normal);
            self.coordinator.signal(Signal::Down { who, reason });
        }
    }

    /// The pool has ended: the coordinator is told and ends too, without a notice of its own.
    pub(in crate::pool) fn say_good_bye(
        &self,
        reason: ExitReason,
        runtime: &tokio::runtime::Handle,
    ) {
        life::demonitor(&self.notifier, &self.coordinator);
        if self.coordinator.exit_reason().is_none() {
            self.notify(PoolNotice::Stopped { reason });
            runtime.spawn(see_off(self.coordinator.clone()));
        }
    }
}

/// Waits for the end of a coordinator that was told of the end of its pool, and stops it if
/// that takes too long.
async fn see_off(coordinator: AnyAddress) {
    if tokio::time::timeout(LAST_WORDS, coordinator.ended()).await.is_err() {
        let _ = coordinator.stop(Stop::within(Duration::ZERO)).await;
    }
}

/// When a pool that has no room may say so next.
pub(in crate::pool) struct Saturated {
    since: Instant,
    /// In milliseconds since then.
    due: AtomicU64,
}

impl Saturated {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, due: AtomicU64::new(0) }
    }

    /// True for one of the callers that ask within the same interval.
    pub(in crate::pool) fn may_say(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.since).as_millis() as u64;
        let due = self.due.load(Ordering::Relaxed);
        let next = now + SATURATED_EVERY.as_millis() as u64;
        now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
