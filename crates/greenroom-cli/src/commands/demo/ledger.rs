//! Whether everything came through, once and in order: each key's messages are numbered, and the
//! target looks at every number.
//!
//! | a number | is |
//! |---|---|
//! | the next of its key | as it should be |
//! | above that | a gap: what is between is lost, unless it still comes |
//! | below that, out of a gap | out of order |
//! | below that, seen before | repeated |

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The numbers of each key.
pub(super) struct Ledger {
    /// One for each key.
    lines: Vec<Mutex<KeyOrder>>,
    /// Numbers seen, each as often as it was.
    seen: AtomicU64,
    /// Numbers that came after a later one.
    out_of_order: AtomicU64,
    /// Numbers that came again.
    repeated: AtomicU64,
}

#[derive(Default)]
struct KeyOrder {
    /// The number that should come now.
    next: u32,
    /// Below `next`, and not seen.
    missing: BTreeSet<u32>,
}

/// What the ledger has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LedgerCounts {
    /// Different numbers seen.
    pub(super) handled: u64,
    /// Numbers not seen though they should have been: of those that were sent, at the end; before
    /// it, those that a later one of their key has passed.
    pub(super) lost: u64,
    /// Numbers that came after a later one of their key.
    pub(super) out_of_order: u64,
    /// Numbers that came again.
    pub(super) repeated: u64,
}

impl Ledger {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            lines: (0..keys).map(|_| Mutex::default()).collect(),
            seen: AtomicU64::new(0),
            out_of_order: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
        }
    }

    /// Writes a message down.
    pub(super) fn saw(&self, key: u32, number: u32) {
        self.seen.fetch_add(1, Relaxed);
        let mut line = self.lines[key as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if number >= line.next {
            let gap = line.next..number;
            line.missing.extend(gap);
            line.next = number + 1;
        } else if line.missing.remove(&number) {
            self.out_of_order.fetch_add(1, Relaxed);
        } else {
            self.repeated.fetch_add(1, Relaxed);
        }
    }

    /// What was found so far.
    pub(super) fn counts(&self) -> LedgerCounts {
        let repeated = self.repeated.load(Relaxed);
        let missing = |line: &Mutex<KeyOrder>| {
            line.lock().unwrap_or_else(PoisonError::into_inner).missing.len() as u64
        };
        LedgerCounts {
            handled: self.seen.load(Relaxed).saturating_sub(repeated),
            lost: self.lines.iter().map(missing).sum(),
            out_of_order: self.out_of_order.load(Relaxed),
            repeated,
        }
    }

    /// What was found, of so many messages that were sent and should all be through.
    pub(super) fn close(&self, sent: u64) -> LedgerCounts {
        let counts = self.counts();
        LedgerCounts { lost: sent.saturating_sub(counts.handled), ..counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[u32]) -> Ledger {
        let ledger = Ledger::new(2);
        numbers.iter().for_each(|number| ledger.saw(1, *number));
        ledger
    }

    #[test]
    fn c14_every_number_in_its_turn_is_as_it_should_be() {
        let ledger = after(&[0, 1, 2]);
        ledger.saw(0, 0); // the numbers of other keys are their own
        assert_eq!(ledger.close(4), LedgerCounts { handled: 4, ..LedgerCounts::default() });
    }

    #[test]
    fn c14_what_is_lost_swapped_and_repeated_is_counted_as_that() {
        let (lost, swapped, repeated) = (after(&[0, 2]), after(&[0, 2, 1]), after(&[0, 0, 1]));
        assert_eq!(lost.counts(), LedgerCounts { handled: 2, lost: 1, ..LedgerCounts::default() });
        assert_eq!(
            swapped.close(3),
            LedgerCounts { handled: 3, out_of_order: 1, ..LedgerCounts::default() }
        );
        assert_eq!(
            repeated.close(2),
            LedgerCounts { handled: 2, repeated: 1, ..LedgerCounts::default() }
        );
        assert_eq!(repeated.close(5).lost, 3, "the last ones were never seen");
    }
}
