//! Lines that an earlier run has done.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::watermark::Positions;

/// Says which lines to skip, and counts them.
pub(super) struct Skip {
    done: Positions,
    skipped: Arc<AtomicU64>,
}

impl Skip {
    pub(super) fn new(done: Positions, skipped: Arc<AtomicU64>) -> Self {
        Self { done, skipped }
    }

    pub(super) fn skips(&self, line: u64) -> bool {
        let is_done = self.done.is_done(line);
        if is_done {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        is_done
    }
}
