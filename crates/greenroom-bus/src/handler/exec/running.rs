//! How many processes of a program run.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use super::counters::Counters;

/// Counts one process for as long as it is kept.
#[derive(Debug)]
pub(super) struct Running(Arc<Counters>);

impl Running {
    pub(super) fn one_of(counters: &Arc<Counters>) -> Self {
        counters.running.fetch_add(1, Relaxed);
        Self(counters.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}
