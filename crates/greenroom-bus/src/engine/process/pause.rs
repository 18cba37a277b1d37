//! A pause gate: a paused pool or handler starts nothing more until it is resumed.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::wait::wait_until;

/// Of a pool or a handler. While it is off, asking costs one load.
#[derive(Debug, Default)]
pub(crate) struct PauseGate {
    on: AtomicBool,
    /// Told when it is opened.
    released: Notify,
}

impl PauseGate {
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// True if that changed anything.
    pub(crate) fn set(&self, on: bool) -> bool {
        let was = self.on.swap(on, Ordering::AcqRel);
        if !on {
            self.released.notify_waiters();
        }
        was != on
    }

    /// Waits until it is off.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn lifted(&self) {
        wait_until(&self.released, || (!self.is_on()).then_some(())).await;
    }
}
