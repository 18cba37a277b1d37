//! Any worker, at random.

use super::{About, Choice, Crew, Policy};
use crate::chance::Chance;

/// A worker chosen at random; if it is full, the next one with room.
#[derive(Debug, Default)]
pub struct Random(Chance);

impl Random {
    /// Seeded by the process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Seeded, for reproducible tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Chance::seeded(seed))
    }
}

impl<M> Policy<M> for Random {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        Choice::At(crew.with_room_from(self.0.below(crew.len())))
    }

    fn is_strict(&self) -> bool {
        false
    }
}
