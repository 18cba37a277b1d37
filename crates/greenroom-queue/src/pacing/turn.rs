//! A worker's turn on its thread, after which it lets other tasks of the runtime run.
//!
//! Senders have turns as well (`Turns` in `shard/turns.rs`). If a worker shared its thread with
//! many senders and handled no more than one of them sends, the queue would grow until it is full.
//! Senders would then wait for room, each for a wake-up of its own.

use std::time::{Duration, Instant};

use crate::wake::Wake;

/// Messages handled or skipped before other tasks of the runtime get a turn, unless a queue runs
/// dry first. It also applies if the next message always arrives just in time: in a lane of its
/// own, or from a sender on another thread.
pub const MESSAGES: u32 = 64;

/// Like `MESSAGES`, if handlers are quick: a quarter of a millisecond at most. Two senders that
/// share the worker's thread queue 64 messages each before they yield.
const QUICK_MESSAGES: u32 = 128;

/// How much longer a turn may be if handlers are quick and more than two senders have filled their
/// shards.
const LONGER: Duration = Duration::from_micros(125);

#[derive(Default)]
pub(super) struct Turn {
    /// The messages of this turn so far.
    messages: u32,
    /// The number of messages beyond the usual length that are allowed.
    more: u32,
    /// The time when the turn exceeded the usual length, if it has.
    long_since: Option<Instant>,
}

impl Turn {
    /// A new turn begins, in which this many messages were handled already.
    #[inline]
    pub(super) fn begin(&mut self, messages: u32) {
        (self.messages, self.more) = (messages, 0);
    }

    #[inline]
    pub(super) fn count(&mut self, messages: u32) {
        self.messages += messages;
    }

    /// True when other tasks should have a turn.
    #[inline]
    pub(super) fn is_over(&mut self, wake: &Wake) -> bool {
        let usual = if wake.is_quick() { QUICK_MESSAGES } else { MESSAGES };
        self.messages > usual + self.more && !self.goes_on(wake)
    }

    /// True if the turn continues. If more shards are filled than one turn can empty, each ready
    /// one counts for as many messages as a sender queues in it.
    #[cold]
    fn goes_on(&mut self, wake: &Wake) -> bool {
        if !wake.is_quick() || self.messages > MESSAGES * wake.ready_shards() {
            return false;
        }
        let now = Instant::now();
        let since = self.long_since.filter(|_| self.more > 0).unwrap_or(now);
        self.more += QUICK_MESSAGES;
        self.long_since = Some(since);
        now - since < LONGER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first message before which the turn is over.
    fn length(wake: &Wake) -> u32 {
        let mut turn = Turn::default();
        let mut messages = 0;
        while !turn.is_over(wake) {
            turn.count(1);
            messages += 1;
        }
        messages
    }

    fn wake(quick: bool, ready: usize) -> Wake {
        let wake = Wake::new(4, 2);
        wake.set_quick(quick);
        (0..ready).for_each(|shard| wake.mark(shard));
        wake
    }

    #[test]
    fn a_turn_is_as_long_as_handlers_are_quick_and_shards_are_filled() {
        let lengths = [(false, 1), (false, 64), (true, 0), (true, 2), (true, 3), (true, 16)]
            .map(|(quick, ready)| length(&wake(quick, ready)));
        assert_eq!(lengths[..4], [65, 65, 129, 129]);
        // How long depends on the clock.
        assert!([257, 129].contains(&lengths[4]), "{lengths:?}");
        assert!(lengths[5] % 128 == 1 && lengths[5] <= 1_153, "{lengths:?}");
    }

    #[test]
    fn a_long_turn_of_handlers_that_are_not_so_quick_is_over_in_time() {
        let wake = wake(true, 64);
        let mut turn = Turn::default();
        turn.count(QUICK_MESSAGES + 1);
        assert!(!turn.is_over(&wake));
        turn.count(QUICK_MESSAGES);
        turn.long_since = turn.long_since.and_then(|since| since.checked_sub(LONGER));
        assert!(turn.is_over(&wake));
        turn.begin(1);
        assert!(!turn.is_over(&wake));
        turn.count(QUICK_MESSAGES);
        assert!(!turn.is_over(&wake), "another time is another turn's");
    }

    #[test]
    fn a_turn_ends_where_handlers_are_quick_no_more() {
        let wake = wake(true, 64);
        let mut turn = Turn::default();
        turn.count(QUICK_MESSAGES + 1);
        assert!(!turn.is_over(&wake));
        wake.set_quick(false);
        turn.count(QUICK_MESSAGES);
        assert!(turn.is_over(&wake));
    }
}
