//! The controllers of a pool: its advisor, its keeper, its supervisor.

pub(crate) mod advising;
pub(crate) mod advisor;
pub(crate) mod autoscale;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use greenroom_queue::lock::Mutex;
use tokio::time::{Instant, timeout_at};

use super::{
    keeper::{notice::PoolNotice, notices::Notices},
    lifecycle::Lifecycle,
    membership::restart::Escalation,
};
use crate::{ExitReason, pool::controllers::advising::Advising};

/// The controllers of a pool: its advisor, its keeper, its supervisor.
#[derive(Default)]
pub(crate) struct Controllers {
    /// The latest advice and its advisor, if the pool is advised.
    pub(crate) advising: Mutex<Advising>,
    /// The notices for its keeper, if it has one. Set before the keeper starts.
    pub(crate) notices: OnceLock<Arc<Notices>>,
    /// Notified of a worker's end when its restart budget is used up, if the pool leaves that to
    /// others.
    pub(crate) escalation: Mutex<Option<Escalation>>,
    /// Whether it has a supervisor: slots whose budget is used up then rest, and queued messages
    /// are kept.
    pub(crate) supervised: AtomicBool,
}

impl Controllers {
    /// A worker handles messages. Not under a lock.
    pub(crate) fn notify_up(&self, slot: usize) {
        if let Some(notices) = self.notices.get() {
            notices.put(PoolNotice::WorkerUp { slot });
        }
    }

    /// A worker that was up is down. Not under a lock.
    pub(crate) fn notify_down(&self, slot: usize, reason: &ExitReason) {
        if let Some(notices) = self.notices.get() {
            notices.put(PoolNotice::WorkerDown { slot, reason: reason.clone() });
        }
    }

    /// A message has found no room.
    #[cold]
    pub(crate) fn notify_saturated(&self) {
        if let Some(notices) = self.notices.get() {
            notices.put_saturated(Instant::now());
        }
    }

    /// Notifies the supervisor, unless it was notified since it started the pool.
    pub(crate) fn notify_supervisor(&self, reason: &ExitReason) {
        let supervisor = self.escalation.lock().take();
        if let Some(tell) = supervisor {
            tell(reason.clone());
        }
    }
}

/// Waits until a pool has ended (true), or this moment has come.
async fn ends_by(lifecycle: &Lifecycle, at: Instant) -> bool {
    // After a stale `false` the caller looks at the pool once more, and its next call sees the end.
    timeout_at(at, lifecycle.ends()).await.is_ok() || lifecycle.ended.load(Ordering::Relaxed)
}
