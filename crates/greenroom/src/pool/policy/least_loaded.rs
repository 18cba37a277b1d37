//! The one with the least to do, of two.

use super::{About, Choice, Crew, Policy, random::Dice};

/// Of two workers chosen at random, the one with fewer messages waiting and in hand (Mitzenmacher:
/// The Power of Two Choices in Randomized Load Balancing, 2001): close to the least loaded of all,
/// without looking at all.
#[derive(Debug)]
pub struct LeastLoaded(Dice);

impl LeastLoaded {
    /// Seeded by the process.
    pub fn new() -> Self {
        Self(Dice::new())
    }

    /// Seeded, for tests that replay.
    pub fn seeded(seed: u64) -> Self {
        Self(Dice::seeded(seed))
    }
}

impl Default for LeastLoaded {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Policy<M> for LeastLoaded {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        let first = self.0.throw(crew.len());
        // Of the others, so that two workers are always compared.
        let second = (first + 1 + self.0.throw(crew.len().saturating_sub(1))) % crew.len().max(1);
        let load = |place: usize| crew.get(place).map_or(usize::MAX, |member| member.load());
        let place = if load(second) < load(first) { second } else { first };
        Choice::At(crew.with_room_from(place))
    }

    fn is_strict(&self) -> bool {
        false
    }
}
