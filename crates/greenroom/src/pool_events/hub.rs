//! The state that the handles of a hub share.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

use super::{
    counts::{Counters, PoolEventCounts},
    event::{PoolEvent, PoolEventRecord},
};
use crate::event::buffer::EventBuffer;

/// The notices on their way to one receiver.
pub(super) type Listener = EventBuffer<Arc<PoolEventRecord>>;

/// Held by its handles; receivers hold it weakly, and are notified when it is gone.
pub(super) struct EventHub {
    /// Notices that are kept for a slow receiver.
    capacity: usize,
    counters: Counters,
    /// The length of `listeners`: without listeners, nothing is locked. Written under their lock.
    listening: AtomicUsize,
    /// Copied on a change while a notice is being sent. Runs no user code: a removed listener is
    /// dropped after the lock.
    listeners: Mutex<Arc<Vec<Arc<Listener>>>>,
}

impl EventHub {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            counters: Counters::default(),
            listening: AtomicUsize::new(0),
            listeners: Mutex::default(),
        }
    }

    pub(super) fn counts(&self) -> PoolEventCounts {
        self.counters.read()
    }

    pub(super) fn emit(&self, pool: &Arc<str>, what: PoolEvent) {
        self.counters.count(what.kind());
        match self.listening.load(Ordering::Acquire) {
            0 => discard(what),
            _ => self.hand_out(pool, what),
        }
    }

    fn hand_out(&self, pool: &Arc<str>, what: PoolEvent) {
        let notice = Arc::new(PoolEventRecord { pool: pool.clone(), at: SystemTime::now(), what });
        let listeners = self.listeners.lock().clone();
        for listener in listeners.iter() {
            contained(|| listener.offer(notice.clone()));
        }
        // This may be the last reference to the notice, or to a listener that has unsubscribed.
        discard((notice, listeners));
    }

    pub(super) fn add(&self) -> Arc<Listener> {
        let listener = Arc::new(Listener::new(self.capacity));
        let mut listeners = self.listeners.lock();
        Arc::make_mut(&mut listeners).push(listener.clone());
        self.listening.store(listeners.len(), Ordering::Release);
        listener
    }

    pub(super) fn remove(&self, gone: &Arc<Listener>) {
        // The caller holds it too, so nothing is dropped under the lock.
        let mut listeners = self.listeners.lock();
        Arc::make_mut(&mut listeners).retain(|listener| !Arc::ptr_eq(listener, gone));
        self.listening.store(listeners.len(), Ordering::Release);
    }
}

impl Drop for EventHub {
    fn drop(&mut self) {
        let listeners = std::mem::take(self.listeners.get_mut());
        listeners.iter().for_each(|listener| contained(|| listener.end()));
        discard(listeners);
    }
}

/// Runs foreign code: loggers, wakers, the `Display` of an error. The emitter is in the middle of
/// its work, which their panic must not stop.
pub(super) fn contained(run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        discard(panic);
    }
}
