//! A bell that rouses the clock of a pool, and costs a load when the clock is awake.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// True while the clock has nothing to watch and no timer to wait for.
    asleep: AtomicBool,
    notify: Notify,
}

impl Bell {
    /// Rouses the clock if it is asleep. Call it after raising the count of awake workers: of that (sequentially
    /// consistent) write and this load, and of the clock's write of `asleep` and its look at the count, one sees the
    /// other. True when the clock was asleep.
    pub(crate) fn ring(&self) -> bool {
        let asleep =
            self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::AcqRel);
        if asleep {
            self.notify.notify_one();
        }
        asleep
    }

    /// Rouses the clock from whatever it waits for: a timer may have become the earliest.
    pub(crate) fn ring_loud(&self) {
        self.asleep.store(false, Ordering::Release);
        self.notify.notify_one();
    }

    /// From now on the bell must be rung. The caller looks once more for a reason to stay awake, then waits.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(crate) async fn rung(&self) {
        self.notify.notified().await;
    }
}
