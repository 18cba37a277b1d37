//! One after the other.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{About, Choice, Crew, Policy};

/// Each worker in turn, in the order in which they joined; full ones are passed over.
#[derive(Debug, Default)]
pub struct RoundRobin {
    next: AtomicUsize,
}

impl RoundRobin {
    /// Begins with the first worker.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<M> Policy<M> for RoundRobin {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        Choice::At(crew.with_room_from(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn is_strict(&self) -> bool {
        false
    }
}
