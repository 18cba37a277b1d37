//! How far an attempt comes: a layer may answer in the handler's place.

use std::sync::atomic::{AtomicBool, Ordering};

/// How far an attempt has come.
#[derive(Debug, Default)]
pub(super) struct Passage {
    handed_over: AtomicBool,
    answered: AtomicBool,
}

impl Passage {
    /// The event is in its handler's hands.
    pub(super) fn hand_over(&self) {
        self.handed_over.store(true, Ordering::Release);
    }

    pub(super) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }

    /// Its handler has answered: itself, unless that is one in layers, too, and they did.
    pub(super) fn answered(&self, by_itself: bool) {
        self.answered.store(by_itself, Ordering::Release);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }
}
