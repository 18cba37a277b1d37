//! The parts of a pool that are the same for all types, as far as they are looked at.

use std::{any::Any, sync::Arc, time::Duration};

use greenroom_queue::{
    lanes::LaneId,
    per_slot::PerSlot,
    permits::{Permits, Queues},
    stamp::Stamp,
    sync::{AtomicUsize, Handle, Mutex},
    wake::Wake,
    watchdog_handle::WatchdogHandle,
};

use super::{
    core::PoolConfig,
    lifecycle::Lifecycle,
    membership::{slot_state::SlotState, starts::Starts},
    pool_payload::{Entries, Queued},
    stats::counters::PoolCounters,
};
use crate::{Actor, PoolEvent};

#[path = "../../crates/greenroom/src/pool/frame/end.rs"]
pub(crate) mod end;
#[path = "../../crates/greenroom/src/pool/frame/gate.rs"]
pub(crate) mod gate;

/// Nobody is told that the pool is full, or drained.
pub(crate) mod notify {
    use super::AnyCore;

    pub(crate) fn look_now_and_then(_pool: &dyn AnyCore) {}

    pub(crate) fn notify_if_drained(_pool: &dyn AnyCore) {}
}

pub(crate) struct Frame {
    pub(crate) config: PoolConfig,
    pub(crate) membership: Membership,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) clock: Clock,
    pub(crate) telemetry: Telemetry,
    pub(crate) env: Env,
}

impl Frame {
    /// No pool has limits here.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn is_limited(&self) -> bool {
        false
    }

    /// Nor shares.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn is_shared(&self) -> bool {
        false
    }

    /// Nobody listens.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn notify(&self, _what: PoolEvent) {}
}

/// As the product's, without what is played.
pub(crate) trait AnyCore: Queues {
    fn frame(&self) -> &Frame;
    fn permits(&self) -> &Permits;
    fn wake(&self) -> &Wake;
    fn set_shut(&self, shut: bool);
    fn tell_shut(&self, for_good: bool);
    fn dead_letter_queued(&self);
    fn give_back_queued(&self);
}

pub(crate) struct Membership {
    pub(crate) slots: PerSlot<Arc<SlotState>>,
    pub(crate) live: AtomicUsize,
    pub(crate) starts: Starts,
}

pub(crate) struct Telemetry {
    pub(crate) counters: PoolCounters,
    pub(crate) coarse: Coarse,
    pub(crate) full: Full,
}

pub(crate) struct Env {
    pub(crate) runtime: Handle,
}

/// Nobody listens for a full pool.
pub(crate) struct Full;

impl Full {
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn is_full(&self) -> bool {
        false
    }
}

/// A clock that stands still, and that the watchdog looks after.
pub(crate) struct Coarse;

impl Coarse {
    pub(crate) fn set(&self) {}

    pub(crate) fn shown(&self) -> u64 {
        0
    }

    pub(crate) fn real(&self) -> u64 {
        0
    }

    pub(crate) fn stamp(&self, _number: u64, _is_late: bool) -> Stamp {
        Stamp::default()
    }

    pub(crate) fn is_watched(&self) -> bool {
        true
    }

    pub(crate) fn coarse_stamp(&self) -> Stamp {
        Stamp::default()
    }

    /// No message is measured.
    pub(crate) fn unmeasured_from(&self, _number: u64) -> u64 {
        u64::MAX
    }
}

/// What is parked, until the model lets it come due.
pub(crate) struct Clock {
    pub(crate) watchdog: WatchdogHandle,
    pub(crate) lanes: Mutex<Vec<(usize, LaneId)>>,
    pub(crate) messages: Mutex<Vec<(usize, Parked)>>,
    pub(crate) mail: Mutex<Vec<(usize, Parked)>>,
}

/// An entry of the pool's queues.
pub(crate) struct Parked(Box<dyn Any + Send>);

impl Parked {
    /// As it was parked. Always present.
    pub(crate) fn own<A: Actor, K: 'static>(self) -> Option<Queued<A, K>> {
        self.0.downcast().ok().map(|entry| *entry)
    }
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            watchdog: WatchdogHandle::none(),
            lanes: Mutex::new(Vec::new()),
            messages: Mutex::new(Vec::new()),
            mail: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn park_lane(&self, index: usize, id: LaneId, _after: Duration) {
        self.lanes.lock().push((index, id));
    }

    pub(crate) fn park_message<E: Any + Send>(&self, index: usize, entry: E, _after: Duration) {
        self.messages.lock().push((index, Parked(Box::new(entry))));
    }

    pub(crate) fn park_mail<E: Any + Send>(&self, slot: usize, entry: E, _after: Duration) {
        self.mail.lock().push((slot, Parked(Box::new(entry))));
    }

    pub(crate) fn forget_lane(&self, index: usize, id: LaneId) {
        self.lanes.lock().retain(|lane| *lane != (index, id));
    }

    /// The model looks by itself whether the pool has ended.
    #[expect(clippy::unused_self, reason = "as in the product")]
    fn notify(&self) {}

    pub(crate) fn drain<A: Actor, K: 'static>(&self) -> Entries<A, K> {
        self.lanes.lock().clear();
        let mut entries = Entries::<A, K>::new();
        for parked in [&self.messages, &self.mail] {
            for (_, entry) in std::mem::take(&mut *parked.lock()) {
                if let Some(entry) = entry.own::<A, K>() {
                    entries.push_back(entry);
                }
            }
        }
        entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.lock().is_empty()
            && self.messages.lock().is_empty()
            && self.mail.lock().is_empty()
    }
}
