//! A cheap reason why a pool is not drained yet: a worker has a message in hand.
//!
//! A stop checks whether the pool is drained each time a worker has finished something. The ledger
//! sums the figures of all workers, and with thousands of workers that would happen thousands of
//! times. One busy worker proves that the ledger would not balance; once it has finished, the
//! search for the next one begins behind it, so each is visited about once.

use crate::pool::membership::Slots;

#[derive(Debug, Default)]
pub(super) struct Witness {
    /// The worker that was busy at the last search.
    worker: usize,
    /// Visited workers.
    #[cfg(test)]
    looks: usize,
}

impl Witness {
    /// True if a worker has a message in hand. Looks at all of them before it returns false.
    pub(super) fn sees_one_busy(&mut self, slots: &Slots) -> bool {
        self.find(slots.len(), |worker| slots.at(worker).is_busy())
    }

    fn find(&mut self, workers: usize, is_busy: impl Fn(usize) -> bool) -> bool {
        let from = self.worker;
        for worker in (from..workers).chain(0..from.min(workers)) {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if is_busy(worker) {
                self.worker = worker;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn thousands_who_finish_one_by_one_are_looked_at_a_few_times_each() {
        const MANY: usize = 65_536;
        let busy: Vec<_> = (0..MANY).map(|_| Cell::new(true)).collect();
        let mut witness = Witness::default();
        for step in 0..MANY {
            assert!(witness.find(MANY, |worker| busy[worker].get()), "{step}");
            // Each once, in no order.
            busy[step * 40_503 % MANY].set(false);
        }
        assert!(!witness.find(MANY, |worker| busy[worker].get()));
        assert!(witness.looks < 4 * MANY, "{} looks", witness.looks);
    }

    #[test]
    fn whoever_is_busy_is_found_wherever_it_is() {
        let mut witness = Witness::default();
        assert!(!witness.find(0, |_| true));
        for one in [3, 0, 7, 6, 7] {
            assert!(witness.find(8, |worker| worker == one));
        }
        assert!(!witness.find(8, |_| false));
    }
}
