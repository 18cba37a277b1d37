//! How long workers have had their message in hand, as far as a stop has observed.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use tokio::time::Instant;

use crate::pool::membership::Slots;

/// The start time of a message is not recorded, because that would cost each message a clock
/// reading. So a stop looks when it begins and at its deadline: a worker that has started nothing
/// in between has had its message for at least that long.
#[derive(Default)]
pub(super) struct InHandSince {
    /// By slot: messages started by then, and when that was first seen.
    seen: HashMap<usize, (u64, Instant)>,
}

impl InHandSince {
    /// Notes which workers have a message in hand.
    pub(super) fn look(&mut self, slots: &Slots) {
        let now = Instant::now();
        for slot in busy(slots) {
            let begun = slots.at(slot).counters.started.load(Ordering::Relaxed);
            let seen = self.seen.entry(slot).or_insert((begun, now));
            if seen.0 != begun {
                *seen = (begun, now);
            }
        }
    }

    /// The workers that have one now, and the least time that they have had it.
    pub(super) fn still_full(&mut self, slots: &Slots) -> Vec<(usize, Duration)> {
        self.look(slots);
        let since = |slot| self.seen.get(&slot).map_or(Duration::ZERO, |(_, at)| at.elapsed());
        busy(slots).into_iter().map(|slot| (slot, since(slot))).collect()
    }
}

/// Workers with a message in hand.
pub(super) fn busy(slots: &Slots) -> Vec<usize> {
    (0..slots.len()).filter(|worker| slots.at(*worker).is_busy()).collect()
}

/// Workers without one.
pub(super) fn idle(slots: &Slots) -> Vec<usize> {
    (0..slots.len()).filter(|worker| !slots.at(*worker).is_busy()).collect()
}
