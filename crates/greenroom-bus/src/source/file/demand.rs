//! Whether the engine waits for the reading thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// After this many chunks in a row that found the engine without a batch, parsing is the
/// bottleneck: 4 MiB, so that a small file is read by one thread.
const CHUNKS: usize = 16;

/// Shared by the source and by the threads that parse for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand(Arc<DemandCounts>);

#[derive(Debug, Default)]
struct DemandCounts {
    /// Batches that were made and not taken.
    made: AtomicUsize,
    /// Chunks in a row before which there was none. Only the reading thread writes it.
    waited: AtomicUsize,
}

impl Demand {
    /// A batch is ready to be taken.
    pub(super) fn made(&self) {
        self.0.made.fetch_add(1, Ordering::Relaxed);
    }

    /// The engine has taken one, after it was made.
    pub(super) fn taken(&self) {
        self.0.made.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asked before each chunk, by the reading thread.
    pub(super) fn is_waiting(&self) -> bool {
        let waited = match self.0.made.load(Ordering::Relaxed) {
            0 => (self.0.waited.load(Ordering::Relaxed) + 1).min(CHUNKS),
            _ => 0,
        };
        self.0.waited.store(waited, Ordering::Relaxed);
        waited == CHUNKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_only_an_engine_that_waits_again_and_again_gets_help() {
        let demand = Demand::default();
        assert!((1..CHUNKS).all(|_| !demand.is_waiting()));
        assert!(demand.is_waiting());
        demand.made();
        assert!(!demand.is_waiting());
        demand.taken();
        assert!((1..CHUNKS).all(|_| !demand.is_waiting()));
        assert!(demand.is_waiting());
    }
}
