//! Checks that every message arrived once and in order: each key's messages are numbered, and the
//! target records every number.
//!
//! | a number | is |
//! |---|---|
//! | the next of its key | correct |
//! | above that | a gap: the numbers in between are lost, unless they still arrive |
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
    /// Numbers seen, repetitions included.
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

/// The findings of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LedgerCounts {
    /// Different numbers seen.
    pub(super) handled: u64,
    /// Numbers that are missing: at the end, of all that were sent; before it, those that a later
    /// number of their key has overtaken.
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

    /// Records a message.
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

    /// The findings so far.
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

    /// The final findings, once this many messages were sent and should have arrived.
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
