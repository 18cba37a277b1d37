//! Whether a worker that has run out of messages searches before it parks.

use crate::sync::tuned;

/// Whether a worker that found only a single message searches. It does if searching paid off
/// before, because its caller sends the next message as soon as it has the reply. Otherwise it
/// searches now and then, to find out.
pub struct Patience {
    /// A caller hands the next message to an idle worker; for a searching one it would queue it.
    is_handed: bool,
    /// The last search found something.
    worth_it: bool,
    /// The number of times that it has not searched since.
    skipped: u32,
}

/// A worker whose search found nothing tries again after this many single messages.
const SKIPS: u32 = tuned(16, 2);

impl Patience {
    /// `is_handed` is true if callers hand messages to idle workers.
    pub fn new(is_handed: bool) -> Self {
        Self { is_handed, worth_it: false, skipped: 0 }
    }

    /// True if the worker should search after this many messages, of which the last was a call or
    /// not.
    pub(super) fn searches_after(&mut self, in_a_row: u32, by_call: bool) -> bool {
        if in_a_row == 1 && by_call && self.is_handed {
            return false;
        }
        if in_a_row != 1 || self.worth_it {
            return in_a_row > 0;
        }
        self.skipped = (self.skipped + 1) % SKIPS;
        self.skipped == 0
    }

    pub(super) fn found(&mut self, something: bool) {
        self.worth_it = something;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of this many single messages are followed by a search, if they come one after the
    /// other and each is found without searching.
    fn searches(patience: &mut Patience, by_call: bool, times: u32) -> Vec<u32> {
        (1..=times).filter(|_| patience.searches_after(1, by_call)).collect()
    }

    #[test]
    fn after_a_single_message_a_worker_searches_now_and_then_or_where_it_was_worth_it() {
        let mut patience = Patience::new(false);
        assert_eq!(searches(&mut patience, false, 2 * SKIPS), [SKIPS, 2 * SKIPS]);
        patience.found(true);
        assert_eq!(searches(&mut patience, false, 3), [1, 2, 3]);
        patience.found(false);
        assert_eq!(searches(&mut patience, true, SKIPS), [SKIPS]);
    }

    #[test]
    fn after_nothing_it_does_not_and_after_several_it_does() {
        let mut patience = Patience::new(false);
        assert_eq!(
            [0, 2, 50].map(|in_a_row| patience.searches_after(in_a_row, false)),
            [false, true, true]
        );
    }

    #[test]
    fn a_worker_that_is_handed_the_next_call_does_not_search_for_it() {
        let mut handed = Patience::new(true);
        handed.found(true);
        assert!(!handed.searches_after(1, true) && handed.searches_after(1, false));
    }
}
