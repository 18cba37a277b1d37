//! The worker with the least to do.

use super::{About, Choice, Crew, Policy};
use crate::chance::Chance;

/// The most workers of which all are compared: as many loads are read per message, at most. With
/// more, two are good enough.
const ALL: usize = 16;

/// The worker with the fewest messages waiting and in hand. With up to 16 workers, all are
/// compared, so none stays idle while another is busy; with more, two chosen at random
/// (Mitzenmacher: The Power of Two Choices in Randomized Load Balancing, 2001), which comes close.
#[derive(Debug, Default)]
pub struct LeastLoaded(Chance);

impl LeastLoaded {
    /// Seeded by the process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Seeded, for reproducible tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Chance::seeded(seed))
    }
}

impl<M> Policy<M> for LeastLoaded {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        let first = self.0.below(crew.len());
        let place = match crew.len() {
            // Starting from a random one: among equals, each comes first in turn.
            2..=ALL => least_of(crew, (0..crew.len()).map(|step| (first + step) % crew.len())),
            0..2 => first,
            // From the others, so that two workers are always compared.
            len => least_of(crew, [first, (first + 1 + self.0.below(len - 1)) % len].into_iter()),
        };
        Choice::At(crew.with_room_from(place))
    }

    fn is_strict(&self) -> bool {
        false
    }
}

/// The first of the least loaded of these places.
fn least_of(crew: &Crew<'_>, places: impl Iterator<Item = usize>) -> usize {
    let load = |place: &usize| crew.get(*place).map_or(usize::MAX, |member| member.load());
    places.min_by_key(load).unwrap_or_default()
}
