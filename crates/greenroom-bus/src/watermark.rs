//! The progress of one partition of a source: which positions are settled, which are open, and
//! which a commit may cover.
//!
//! Events are settled in any order, and one of them may never be. A source that remembers only the
//! position below which everything is settled delivers, after a crash, everything behind that one
//! event again. So the positions that are settled beyond it are remembered too:
//!
//! ```text
//! received     1  2  3  4  .  6  7  8  9 10        a position that was never received (5) is not waited for
//! settled      x  x     x     x  x     x
//! open               3              8    10
//!                    ▲ lowest                 ▲ next: nothing was received from here on
//!
//! a commit:    next = 11, open = 3, 8, 10          everything else below `next` is done
//! ```
//!
//! The open positions contain all information: a [`Watermark`] keeps only these. Its memory is that
//! of the open positions (24 bytes for up to 64 neighbours), however much is settled after a stuck
//! event. Each event costs a few instructions and no allocation, and a binary search if open
//! positions are far apart.
//!
//! # The steps
//!
//! A partition is [assigned](Watermark::assign) with the [`Positions`] that were stored last, which
//! begins an [`Epoch`]. Its events are [received](Watermark::receive) in rising order, handled, and
//! [settled](Watermark::settle) or [refused](Watermark::refuse) in any order; a refused one stays
//! open until it is delivered again. From time to time a [`snapshot`](Watermark::snapshot) is
//! stored and, once that is certain, [confirmed](Watermark::confirm).
//!
//! An assignment ends with the next one or with a [revocation](Watermark::revoke). A later result
//! or answer to a commit of an earlier epoch is fenced: it is counted, and changes nothing.
//!
//! # Guarantees
//!
//! * A snapshot never marks a received, unsettled position as settled.
//! * After a crash, [at most as many](Watermark::repeated_at_most) events are delivered again as
//!   were open or settled since the last confirmed snapshot.
//!
//! ```
//! use greenroom_bus::watermark::{Positions, Received, Watermark};
//!
//! let mut before = Watermark::default();
//! let epoch = before.assign(&Positions::starting_at(1));
//! for position in [1, 2, 3, 4] {
//!     assert_eq!(before.receive(position), Received::New);
//! }
//! for settled in [1, 2, 4] {
//!     before.settle(epoch, settled);
//! }
//! let snapshot = before.snapshot().unwrap();
//! assert_eq!((before.lowest(), before.repeated_at_most()), (3, 4));
//! assert!(before.confirm(&snapshot)); // it has been stored
//! assert_eq!(before.repeated_at_most(), 1);
//!
//! let mut after = Watermark::default(); // a crash
//! after.assign(snapshot.positions());
//! assert_eq!(after.receive(3), Received::New);
//! assert_eq!(after.receive(4), Received::Done); // skipped
//! assert_eq!(after.receive(5), Received::New);
//! ```
//!
//! It has no lock and no clock. To settle from several threads, put a mutex around it, which is
//! held for a few instructions.

mod expected;
mod open;
mod positions;

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

use self::{
    expected::{Expected, Passed},
    open::{OpenSet, State},
};

pub use positions::{InvalidPositions, Positions};

/// One assignment of a partition, counted from 1. Ours and local: it means nothing to a
/// broker or to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(u64);

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The treatment of a received event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what is not new must not be handled again"]
pub enum Received {
    /// It is to be handled, for the first time in this epoch or again after it was refused.
    New,
    /// It was settled before, in this epoch or in one that the assignment remembers: to be skipped.
    Done,
    /// It is in hand: this delivery of it is to be skipped.
    InHand,
    /// The partition is not assigned: the event belongs to another consumer.
    NotAssigned,
}

/// The outcome of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It counts.
    Counted,
    /// It is of an epoch that has ended, and changes nothing: the new owner of the partition
    /// handles the event again.
    Fenced,
    /// The event is not in hand: a result for it has come before.
    NotInHand,
}

/// The positions that may be stored, all of one moment: an epoch, and its settled positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    epoch: Epoch,
    positions: Positions,
    /// Events settled in this epoch until then.
    settled: u64,
}

impl Snapshot {
    /// The epoch that it was taken in.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The start of a later assignment.
    pub fn positions(&self) -> &Positions {
        &self.positions
    }
}

/// Counters of one partition, over all its epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Events received that were to be handled.
    pub received: u64,
    /// Results that settled an event.
    pub settled: u64,
    /// Results that refused one.
    pub refused: u64,
    /// Events received that were done before, and skipped.
    pub skipped: u64,
    /// Events received that were in hand, and skipped.
    pub doubled: u64,
    /// Results of an epoch that had ended.
    pub fenced: u64,
    /// Answers to commits of an epoch that had ended.
    pub fenced_commits: u64,
    /// Events that an assignment remembered as open, and that its source no longer has.
    pub gone: u64,
}

/// The settled positions of a partition beyond its lowest open one, and how many of them are
/// stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DoneAhead {
    /// Positions between the lowest open one and the highest received one that are not open: a
    /// consumer that can only store the lowest would handle them again. Gaps count as well.
    pub positions: u64,
    /// Events settled in this epoch that the last confirmed snapshot covers.
    pub stored: u64,
    /// Events settled since.
    pub not_stored: u64,
    /// How large the set of these positions was, in bytes, when it was stored last; `None` where
    /// its source stores no such set, or none yet.
    pub set_bytes: Option<u64>,
}

/// The positions of one partition. Starts without an assignment.
///
/// Positions are below `u64::MAX`. Within an epoch, positions that are received for the first time
/// rise; gaps are not waited for. Any of them may be received again.
#[derive(Debug, Default)]
pub struct Watermark {
    epoch: Epoch,
    assigned: bool,
    /// Received in this epoch and not settled; all below `cursor`.
    open: OpenSet,
    /// Open when the last epoch that is remembered ended, and not received since;
    /// all at `cursor` or above.
    expected: Expected,
    /// Positions below this that are in neither of the two are settled.
    next: u64,
    /// Above all that was received in this epoch.
    cursor: u64,
    /// Events settled in this epoch.
    settled: u64,
    /// How many of them the last confirmed snapshot knew of.
    confirmed: u64,
    counts: Counts,
}

impl Watermark {
    /// Begins an epoch from the last stored positions. The open positions of the previous epoch are
    /// forgotten: the new one receives them again, from [`Positions::lowest`] on.
    pub fn assign(&mut self, from: &Positions) -> Epoch {
        self.end_epoch();
        self.assigned = true;
        self.expected = Expected::new(from.open());
        self.next = from.next();
        self.epoch
    }

    /// Ends an epoch, and with it the assignment.
    pub fn revoke(&mut self) {
        self.end_epoch();
    }

    fn end_epoch(&mut self) {
        let (epoch, counts) = (Epoch(self.epoch.0 + 1), self.counts);
        *self = Self { epoch, counts, ..Self::default() };
    }

    /// The epoch, where the partition is assigned.
    pub fn epoch(&self) -> Option<Epoch> {
        self.assigned.then_some(self.epoch)
    }

    /// An event has come.
    pub fn receive(&mut self, position: u64) -> Received {
        let received = match position {
            _ if !self.assigned => Received::NotAssigned,
            again if again < self.cursor => self.receive_again(again),
            further => self.receive_further(further),
        };
        let counter = match received {
            Received::New => &mut self.counts.received,
            Received::InHand => &mut self.counts.doubled,
            Received::Done => &mut self.counts.skipped,
            Received::NotAssigned => return received,
        };
        *counter += 1;
        received
    }

    /// Beyond all positions received before. Expected ones in between have not come, and will not.
    fn receive_further(&mut self, position: u64) -> Received {
        self.cursor = position + 1;
        let Passed { gone, is_expected } = self.expected.pass(position);
        self.counts.gone += gone;
        if position < self.next && !is_expected {
            return Received::Done;
        }
        self.next = self.next.max(self.cursor);
        self.open.push(position);
        Received::New
    }

    /// No more events come below this position. Expected ones are gone; open ones stay open.
    pub fn pass(&mut self, next: u64) {
        if self.assigned && next > self.cursor {
            self.counts.gone += self.expected.take_below(next);
            self.cursor = next;
            self.next = self.next.max(next);
        }
    }

    fn receive_again(&mut self, position: u64) -> Received {
        match self.open.state(position) {
            State::NotOpen => Received::Done,
            State::InHand => Received::InHand,
            State::Refused => {
                self.open.take(position);
                Received::New
            }
        }
    }

    /// An event of this epoch has been handled, and its results are stored.
    pub fn settle(&mut self, epoch: Epoch, position: u64) -> Told {
        let told = self.result(epoch, position);
        if told == Told::Counted {
            self.open.remove(position);
            self.settled += 1;
            self.counts.settled += 1;
        }
        told
    }

    /// An event of this epoch was not handled. It stays open until it is received again.
    pub fn refuse(&mut self, epoch: Epoch, position: u64) -> Told {
        let told = self.result(epoch, position);
        if told == Told::Counted {
            self.open.refuse(position);
            self.counts.refused += 1;
        }
        told
    }

    fn result(&mut self, epoch: Epoch, position: u64) -> Told {
        if !self.assigned || epoch != self.epoch {
            self.counts.fenced += 1;
            return Told::Fenced;
        }
        match self.open.state(position) {
            State::InHand => Told::Counted,
            State::NotOpen | State::Refused => Told::NotInHand,
        }
    }

    /// The lowest position that is not settled, if any is open: one that was received, or that the
    /// assignment remembers as open. Otherwise the first that was not received yet.
    pub fn lowest(&self) -> u64 {
        self.open.lowest().or_else(|| self.expected.lowest()).unwrap_or(self.next)
    }

    /// After the last position that the assignment remembers as open and that has not come yet.
    /// Positions below it do not enlarge a snapshot. `None` if all have come.
    pub fn expected_end(&self) -> Option<u64> {
        self.expected.end()
    }

    /// The positions that may be stored now; `None` if the partition is not assigned. Takes time
    /// and memory for the open positions.
    ///
    /// Commits of a partition are stored one after the other: a caller that begins another before
    /// the first was answered cannot know which of the two is the last.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let ranges = self.open.ranges().chain(self.expected.ranges());
        let positions = Positions::from_ranges(self.next, ranges);
        let (epoch, settled) = (self.epoch, self.settled);
        self.assigned.then_some(Snapshot { epoch, positions, settled })
    }

    /// A snapshot has certainly been stored. False if that comes too late: the epoch has ended, and
    /// the answer is counted as fenced.
    pub fn confirm(&mut self, snapshot: &Snapshot) -> bool {
        let counts = self.assigned && snapshot.epoch == self.epoch;
        if counts {
            self.confirmed = self.confirmed.max(snapshot.settled);
        } else {
            self.counts.fenced_commits += 1;
        }
        counts
    }

    /// The most events that would be delivered again if everything ended now: those that are open,
    /// and those that were settled since the last confirmed snapshot.
    pub fn repeated_at_most(&self) -> u64 {
        self.open() + self.unconfirmed()
    }

    /// Events settled since the last confirmed snapshot.
    pub fn unconfirmed(&self) -> u64 {
        self.settled - self.confirmed
    }

    /// Events that are not settled: in hand, refused, or remembered as open and not received yet.
    pub fn open(&self) -> u64 {
        self.open.len() as u64 + self.expected.len()
    }

    /// The settled positions beyond the lowest open one.
    pub fn done_ahead(&self) -> DoneAhead {
        DoneAhead {
            positions: (self.next - self.lowest()).saturating_sub(self.open()),
            stored: self.confirmed,
            not_stored: self.unconfirmed(),
            set_bytes: None,
        }
    }

    /// Those that were received in this epoch and have no result yet.
    pub fn in_hand(&self) -> u64 {
        self.open.in_hand() as u64
    }

    /// Above all positions that were received, or are remembered as received.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Counters so far, over all epochs.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
