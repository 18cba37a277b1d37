//! One after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{About, Choice, Crew, Policy};

/// No worker has had a turn.
const NOBODY: u64 = u64::MAX;

/// Each worker in turn, in the order in which they joined; full ones are skipped. A worker that
/// leaves costs no other its turn.
#[derive(Debug)]
pub struct RoundRobin {
    /// The worker that had the last turn: its place in the upper half, its slot in the lower.
    last: AtomicU64,
}

impl RoundRobin {
    /// Begins with the first worker.
    pub fn new() -> Self {
        Self { last: AtomicU64::new(NOBODY) }
    }
}

impl Default for RoundRobin {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Policy<M> for RoundRobin {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        let mut place = 0;
        let _ = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            place = behind(last, crew);
            crew.get(place).map(|member| (place as u64) << 32 | member.slot as u64)
        });
        Choice::At(crew.with_room_from(place))
    }

    fn is_strict(&self) -> bool {
        false
    }
}

/// The place after the last turn's. If workers have left, the others have moved up.
fn behind(last: u64, crew: &Crew<'_>) -> usize {
    if last == NOBODY {
        return 0;
    }
    let (place, slot) = ((last >> 32) as usize, last as u32 as usize);
    let is_it = |place: usize| crew.get(place).is_some_and(|member| member.slot == slot);
    let next = match is_it(place) {
        true => place + 1,
        // If it has left itself, the next one is at its place, or before.
        false => (0..crew.len()).find(|at| is_it(*at)).map_or(place, |at| at + 1),
    };
    if next < crew.len() { next } else { 0 }
}
