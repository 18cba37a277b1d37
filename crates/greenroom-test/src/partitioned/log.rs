//! One partition: its published events, its committed positions, and its current reader.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_bus::{
    event::Event,
    settlement::Settled,
    source::{Malformed, Partition, PartitionStanding, Taken},
    watermark::{Epoch, Positions, Received, Watermark},
};

use super::delivery::Delivery;

/// The first position of a log.
const FIRST: u64 = 1;

/// One partition of a broker.
pub(super) struct Log {
    partition: Partition,
    /// In the order of their positions.
    records: Vec<Record>,
    /// The position of the next one.
    next: u64,
    /// The positions of the last commit, or none. Outlives every source.
    committed: Positions,
    /// Above every position that was ever given.
    given_below: u64,
    /// Acknowledged in any epoch.
    done: BTreeSet<u64>,
    /// Whether it is to be assigned; otherwise it is to be taken away, or was.
    pub(super) is_wanted: bool,
    /// It is being taken away: the engine was notified.
    pub(super) is_leaving: bool,
    /// The current assignment, if any.
    watermark: Watermark,
    /// The index in `records` of the next one to give.
    cursor: usize,
    /// Deliveries so far, in all epochs.
    pub(super) given: u64,
    /// How the deliveries of a position in an epoch were settled.
    deliveries: BTreeMap<(Epoch, u64), Deliveries>,
}

struct Record {
    position: u64,
    body: Result<Event, Vec<u8>>,
}

#[derive(Default)]
struct Deliveries {
    given: usize,
    settled: Vec<Settled>,
}

impl Log {
    pub(super) fn new(partition: Partition) -> Self {
        Self {
            partition,
            records: Vec::new(),
            next: FIRST,
            committed: Positions::starting_at(FIRST),
            given_below: FIRST,
            done: BTreeSet::new(),
            is_wanted: true,
            is_leaving: false,
            watermark: Watermark::default(),
            cursor: 0,
            given: 0,
            deliveries: BTreeMap::new(),
        }
    }

    /// Appends a record.
    pub(super) fn append(&mut self, body: Result<Event, Vec<u8>>) {
        self.records.push(Record { position: self.next, body });
        self.next += 1;
    }

    /// The next positions are never given.
    pub(super) fn skip(&mut self, positions: u64) {
        self.next += positions;
    }

    /// Begins an epoch at the committed positions.
    pub(super) fn assign(&mut self) {
        self.watermark.assign(&self.committed);
        let lowest = self.committed.lowest();
        self.cursor = self.records.partition_point(|record| record.position < lowest);
        self.is_leaving = false;
    }

    /// Commits a last time, and ends the epoch.
    pub(super) fn leave(&mut self) {
        self.commit();
        self.watermark.revoke();
        self.is_leaving = false;
    }

    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.watermark.epoch()
    }

    /// It is to be taken away, and the engine does not know yet.
    pub(super) fn leaves(&self) -> bool {
        !self.is_wanted && !self.is_leaving && self.epoch().is_some()
    }

    /// True while some record was not given in this epoch.
    pub(super) fn has_more(&self) -> bool {
        self.epoch().is_some() && !self.is_leaving && self.cursor < self.records.len()
    }

    /// Gives this many of the last records again.
    pub(super) fn go_back(&mut self, records: usize) {
        self.cursor = self.cursor.saturating_sub(records);
    }

    /// Gives at most this many, without those that are done or in hand: the source has had these
    /// before.
    pub(super) fn give(&mut self, most: usize, into: &mut Vec<Taken>) {
        let Some(epoch) = self.epoch() else { return };
        let end = self.records.len();
        let mut left = most;
        while self.cursor < end && left > 0 {
            let Record { position, body } = &self.records[self.cursor];
            self.cursor += 1;
            if self.watermark.receive(*position) != Received::New {
                continue;
            }
            left -= 1;
            self.given += 1;
            self.given_below = self.given_below.max(position + 1);
            self.deliveries.entry((epoch, *position)).or_default().given += 1;
            let delivery = Delivery { partition: self.partition, epoch, position: *position };
            let event = match body {
                Ok(event) => Ok(event.clone().with_local(delivery)),
                Err(raw) => Err(Malformed::new(raw.clone(), "no event")),
            };
            into.push(Taken { position: *position, event });
        }
    }

    /// A delivery of this epoch was settled. False if there was no such delivery, or it was settled
    /// before.
    pub(super) fn settle(&mut self, epoch: Epoch, position: u64, how: Settled) -> bool {
        match how {
            Settled::Acknowledged(_) => {
                self.done.insert(position);
                self.watermark.settle(epoch, position)
            }
            Settled::Refused(_) => self.watermark.refuse(epoch, position),
        };
        let deliveries = self.deliveries.entry((epoch, position)).or_default();
        deliveries.settled.push(how);
        deliveries.settled.len() <= deliveries.given
    }

    /// Stores the current settlements.
    pub(super) fn commit(&mut self) {
        let Some(snapshot) = self.watermark.snapshot() else { return };
        self.committed = snapshot.positions().clone();
        self.watermark.confirm(&snapshot);
    }

    /// Whether an earlier source has left anything.
    pub(super) fn has_commits(&self) -> bool {
        self.committed.next() > FIRST
    }

    pub(super) fn committed(&self) -> &Positions {
        &self.committed
    }

    /// Above every position that was ever given.
    pub(super) fn given_below(&self) -> u64 {
        self.given_below
    }

    pub(super) fn repeated_at_most(&self) -> u64 {
        self.watermark.repeated_at_most()
    }

    /// How deliveries were settled, in the order of epochs and positions.
    pub(super) fn settled(&self) -> Vec<(u64, Settled)> {
        let each = |((_, position), of): (&(Epoch, u64), &Deliveries)| {
            let position = *position;
            of.settled.clone().into_iter().map(move |how| (position, how))
        };
        self.deliveries.iter().flat_map(each).collect()
    }

    /// Deliveries that are not settled.
    pub(super) fn open(&self) -> u64 {
        let open = |of: &Deliveries| of.given.saturating_sub(of.settled.len()) as u64;
        self.deliveries.values().map(open).sum()
    }

    /// Published, and acknowledged in no epoch.
    pub(super) fn undone(&self) -> Vec<u64> {
        let positions = self.records.iter().map(|record| record.position);
        positions.filter(|position| !self.done.contains(position)).collect()
    }

    pub(super) fn standing(&self) -> Option<PartitionStanding> {
        Some(PartitionStanding {
            partition: self.partition,
            epoch: self.epoch()?,
            next: self.watermark.next(),
            oldest_open: self.watermark.lowest(),
            lag: Some(self.records.len().saturating_sub(self.cursor) as u64),
            ahead: self.watermark.done_ahead(),
        })
    }
}
