//! The received messages of a partition, and their outcomes.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    time::Duration,
};

use greenroom_bus::watermark::DoneAhead;
use tokio::time::Instant;

/// This many recently settled positions are remembered: messages that a server delivers again,
/// because it has forgotten the last acknowledgements, are skipped.
const REMEMBERED: usize = 100_000;

/// The positions of one assignment of a partition.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    /// Received, and not settled.
    open: BTreeMap<u64, Open>,
    done: Done,
    /// Above all that were received.
    next: u64,
    /// How many were settled, and of how many of them the server is known to have heard.
    settled: u64,
    confirmed: u64,
}

#[derive(Debug)]
struct Open {
    /// The reply subject of an acknowledgement.
    reply: Box<str>,
    /// When the server last heard of it.
    touched: Instant,
    /// It is to be delivered again.
    refused: bool,
}

/// The treatment of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// It is to be handled, for the first time or again after it was refused.
    New,
    /// It was handled, and the server does not know.
    Done,
    /// It is in hand.
    InHand,
}

/// The positions that were settled last.
#[derive(Debug, Default)]
struct Done {
    known: HashSet<u64>,
    in_order: VecDeque<u64>,
}

impl Done {
    fn add(&mut self, position: u64) {
        if self.known.insert(position) {
            self.in_order.push_back(position);
        }
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Tracker {
    /// A message has come.
    pub(super) fn receive(&mut self, position: u64, reply: &str, now: Instant) -> Received {
        if self.done.known.contains(&position) {
            return Received::Done;
        }
        self.next = self.next.max(position + 1);
        let new = Open { reply: reply.into(), touched: now, refused: false };
        match self.open.insert(position, new) {
            Some(before) if !before.refused => Received::InHand,
            _ => Received::New,
        }
    }

    /// A message is done: returns its reply subject. `None` if it is not open.
    pub(super) fn settle(&mut self, position: u64) -> Option<Box<str>> {
        let open = self.open.remove(&position)?;
        self.settled += 1;
        self.done.add(position);
        Some(open.reply)
    }

    /// A message is to be delivered again.
    pub(super) fn refuse(&mut self, position: u64) {
        if let Some(open) = self.open.get_mut(&position) {
            open.refused = true;
        }
    }

    /// It was never started, and goes back: returns its reply subject.
    pub(super) fn give_back(&mut self, position: u64) -> Option<Box<str>> {
        self.open.remove(&position).map(|open| open.reply)
    }

    /// All that were refused.
    pub(super) fn refused(&self) -> Vec<u64> {
        self.open.iter().filter(|(_, open)| open.refused).map(|(position, _)| *position).collect()
    }

    /// Those in hand that were not reported to the server for this long; they are about to be.
    pub(super) fn touch(&mut self, after: Duration, now: Instant) -> Vec<Box<str>> {
        let old = |open: &&mut Open| {
            !open.refused && now.saturating_duration_since(open.touched) >= after
        };
        let touched = |open: &mut Open| {
            open.touched = now;
            open.reply.clone()
        };
        self.open.values_mut().filter(old).map(touched).collect()
    }

    /// Everything settled by then has reached the server.
    pub(super) fn confirm(&mut self, settled: u64) {
        self.confirmed = self.confirmed.max(settled);
    }

    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    /// Messages that are delivered again at most, should everything end now.
    pub(super) fn repeated_at_most(&self) -> u64 {
        self.open.len() as u64 + (self.settled - self.confirmed)
    }

    /// The settled positions: the server remembers each message individually, so no set of them is
    /// stored.
    pub(super) fn done_ahead(&self) -> DoneAhead {
        let between = self.next - self.oldest_open();
        DoneAhead {
            positions: between.saturating_sub(self.open.len() as u64),
            stored: self.confirmed,
            not_stored: self.settled - self.confirmed,
            set_bytes: None,
        }
    }

    /// The lowest from here on that is neither in hand nor known to be done.
    pub(super) fn unknown_from(&self, from: u64) -> u64 {
        let is_known =
            |position: &u64| self.open.contains_key(position) || self.done.known.contains(position);
        (from..).find(|position| !is_known(position)).unwrap_or(u64::MAX)
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// The lowest that is not settled; [`next`](Self::next) if none is open.
    pub(super) fn oldest_open(&self) -> u64 {
        self.open.first_key_value().map_or(self.next, |(position, _)| *position)
    }

    /// Above all that were received.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[tokio::test(start_paused = true)]
    async fn z08_what_is_in_hand_or_done_is_not_handled_again() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.receive(3, "a", now()), Received::New);
        assert_eq!(tracker.receive(3, "b", now()), Received::InHand);
        assert_eq!(tracker.settle(3).as_deref(), Some("b"), "the last delivery is acknowledged");
        assert_eq!(tracker.settle(3), None);
        assert_eq!(tracker.receive(3, "c", now()), Received::Done);
        assert_eq!(tracker.receive(2, "d", now()), Received::New, "below, and never received");
        tracker.refuse(2);
        assert_eq!(tracker.receive(2, "e", now()), Received::New, "it was refused");
        assert_eq!((tracker.open(), tracker.oldest_open(), tracker.next()), (1, 2, 4));
        assert_eq!([1, 2, 3, 9].map(|from| tracker.unknown_from(from)), [1, 4, 4, 9]);
    }

    #[tokio::test(start_paused = true)]
    async fn n01_the_server_hears_of_what_is_in_hand_before_its_time_is_over() {
        let (mut tracker, second) = (Tracker::default(), Duration::from_secs(1));
        tracker.receive(1, "a", now());
        tracker.receive(2, "b", now());
        tracker.refuse(2);
        assert!(tracker.touch(second, now()).is_empty());
        tokio::time::advance(second).await;
        tracker.receive(3, "c", now());
        assert_eq!(tracker.touch(second, now()), ["a".into()], "b may come back");
        assert!(tracker.touch(second, now()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn d01_what_a_crash_repeats_is_counted() {
        let mut tracker = Tracker::default();
        (1..=4).for_each(|position| {
            tracker.receive(position, "a", now());
        });
        tracker.settle(1);
        tracker.settle(2);
        assert_eq!(tracker.repeated_at_most(), 4);
        tracker.confirm(1);
        assert_eq!(tracker.repeated_at_most(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn d03_what_is_remembered_is_bounded() {
        let mut tracker = Tracker::default();
        for position in 1..=REMEMBERED as u64 + 1 {
            tracker.receive(position, "a", now());
            tracker.settle(position);
        }
        assert_eq!(tracker.done.known.len(), REMEMBERED);
        assert_eq!(tracker.receive(1, "a", now()), Received::New);
        assert_eq!(tracker.receive(2, "a", now()), Received::Done);
    }
}
