//! How long workers have had their message in hand, as far as a stop has seen it.

use std::{collections::HashMap, hash::Hash, sync::atomic::Ordering, time::Duration};

use tokio::time::Instant;

use crate::{Actor, pool::core::Core};

/// The time at which a message begins is not noted, because that would cost each message a look at
/// the clock. So a stop looks when it begins and at its deadline: a worker that has begun nothing
/// in between has had its message for at least that long.
#[derive(Default)]
pub(super) struct InHandSince {
    /// By slot: messages begun by then, and when that was first seen.
    seen: HashMap<usize, (u64, Instant)>,
}

impl InHandSince {
    /// Notes which workers have a message in hand.
    pub(super) fn look<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        &mut self,
        core: &Core<A, K>,
    ) {
        let now = Instant::now();
        for slot in busy(core) {
            let begun = core.membership.slots.at(slot).counters.started.load(Ordering::Relaxed);
            let seen = self.seen.entry(slot).or_insert((begun, now));
            if seen.0 != begun {
                *seen = (begun, now);
            }
        }
    }

    /// The workers that have one now, and for how long at least.
    pub(super) fn still_full<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        &mut self,
        core: &Core<A, K>,
    ) -> Vec<(usize, Duration)> {
        self.look(core);
        let since = |slot| self.seen.get(&slot).map_or(Duration::ZERO, |(_, at)| at.elapsed());
        busy(core).map(|slot| (slot, since(slot))).collect()
    }
}

/// Workers with a message in hand.
pub(super) fn busy<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
) -> impl Iterator<Item = usize> {
    core.membership
        .slots
        .iter()
        .enumerate()
        .filter(|(_, slot_state)| slot_state.is_busy())
        .map(|(worker, _)| worker)
}
