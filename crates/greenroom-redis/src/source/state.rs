//! What was read of one stream, and what has become of it.

use std::collections::{BTreeMap, HashSet, VecDeque};

use greenroom_bus::{
    source::{Partition, PartitionStanding, Taken},
    watermark::{DoneAhead, Epoch, Positions, Watermark},
};

use crate::entry::Id;

/// What is not settled, or was settled and is not known to the server.
pub(super) struct State {
    /// Makes the numbers of assignments, and holds nothing else.
    epochs: Watermark,
    pub(super) epoch: Epoch,
    /// Received, and not settled or not confirmed.
    held: BTreeMap<u64, Open>,
    /// To be given next.
    pub(super) ready: VecDeque<Taken>,
    /// Settled, and the server is to hear of it.
    acks: Vec<Id>,
    /// How many were settled, and of how many of them the server has heard.
    settled: u64,
    confirmed: u64,
    /// What is read next, beside what is new.
    pub(super) reading: Reading,
    pub(super) standing: StandsNow,
}

/// What is to be read of a stream before what is new.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// What this consumer was given before: all behind this.
    pub(super) own: Option<Id>,
    /// What others have left: from here on.
    pub(super) left: Option<Id>,
    /// The highest that was read.
    last: Option<Id>,
    /// Ids that are no positions, so far.
    numbered: u64,
}

/// How it stands.
#[derive(Debug, Default)]
pub(super) struct StandsNow {
    pub(super) is_paused: bool,
    pub(super) revocation: Revocation,
    /// Entries that were given to no consumer.
    pub(super) lag: Option<u64>,
    /// Entries that came again while they were in hand, or done.
    pub(super) skipped: u64,
}

/// How what is taken away stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Revocation {
    #[default]
    None,
    /// The engine is to be told.
    Wanted,
    /// It was, and has not answered.
    Told,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: Id,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits or is handled.
    InHand,
    /// It was refused: another delivery of it is taken.
    Refused,
    /// It is settled. The server does not know that.
    Settled,
}

impl State {
    pub(super) fn new() -> Self {
        let mut epochs = Watermark::default();
        let epoch = epochs.assign(&Positions::starting_at(1));
        Self {
            epochs,
            epoch,
            held: BTreeMap::new(),
            ready: VecDeque::new(),
            acks: Vec::new(),
            settled: 0,
            confirmed: 0,
            reading: Reading { own: Some(Id::ZERO), ..Reading::default() },
            standing: StandsNow::default(),
        }
    }

    /// Another assignment begins, in which nothing is known.
    pub(super) fn begin_anew(&mut self) {
        self.epoch = self.epochs.assign(&Positions::starting_at(1));
        self.held.clear();
        self.ready.clear();
        self.acks.clear();
        self.settled = self.confirmed;
        (self.reading.own, self.reading.left) = (Some(Id::ZERO), None);
        self.standing.revocation = Revocation::None;
    }

    /// An entry has come: its position. `None` where it is in hand already, or done.
    pub(super) fn receive(&mut self, id: Id) -> Option<u64> {
        let position = self.position(id);
        let entry = Open { id, stage: Stage::InHand };
        match self.held.get(&position).map(|entry| entry.stage) {
            None | Some(Stage::Refused) => _ = self.held.insert(position, entry),
            Some(Stage::InHand | Stage::Settled) => {
                self.standing.skipped += 1;
                return None;
            }
        }
        self.reading.last = self.reading.last.max(Some(id));
        Some(position)
    }

    /// An id of one who gives ids of his own may be no position. Such an entry gets a number that
    /// no other has in this process.
    fn position(&mut self, id: Id) -> u64 {
        if let Some(position) = id.position() {
            return position;
        }
        let known = self.held.range(Id::NUMBERED..).find(|(_, entry)| entry.id == id);
        known.map_or_else(
            || {
                self.reading.numbered += 1;
                Id::NUMBERED + self.reading.numbered
            },
            |(position, _)| *position,
        )
    }

    /// An entry has come of which nothing is left.
    pub(super) fn receive_removed(&mut self, id: Id) {
        let position = self.position(id);
        if !self.held.contains_key(&position) {
            self.settled += 1;
            self.acks.push(id);
        }
    }

    /// True where the server is to hear of it, and nothing else was waiting for that.
    pub(super) fn settle(&mut self, position: u64) -> bool {
        match self.held.get_mut(&position) {
            Some(entry) if entry.stage != Stage::Settled => {
                entry.stage = Stage::Settled;
                self.acks.push(entry.id);
            }
            _ => return false,
        }
        self.settled += 1;
        self.acks.len() == 1
    }

    pub(super) fn refuse(&mut self, position: u64) {
        if let Some(entry) = self.held.get_mut(&position) {
            entry.stage = Stage::Refused;
        }
    }

    /// What the server is to hear is settled, in one assignment.
    pub(super) fn take_acks(&mut self) -> (Epoch, Vec<Id>) {
        (self.epoch, std::mem::take(&mut self.acks))
    }

    /// The server has heard of these, or not: then it is to hear of them again.
    pub(super) fn told(&mut self, epoch: Epoch, acks: Vec<Id>, is_heard: bool) {
        if epoch != self.epoch {
            return;
        }
        if !is_heard {
            self.acks.extend(acks);
            return;
        }
        self.confirmed += acks.len() as u64;
        for id in acks {
            let position = self.position(id);
            self.held.remove(&position);
        }
    }

    /// What is in hand.
    pub(super) fn in_hand(&self) -> Vec<Id> {
        let entries = self.held.values().filter(|entry| entry.stage == Stage::InHand);
        entries.map(|entry| entry.id).collect()
    }

    /// The server says that this consumer has these. False where it has not all that is in hand.
    /// What was refused and is another's by now is forgotten.
    pub(super) fn compare(&mut self, ours: &HashSet<Id>) -> bool {
        self.held.retain(|_, entry| entry.stage != Stage::Refused || ours.contains(&entry.id));
        self.in_hand().iter().all(|id| ours.contains(id))
    }

    /// What can go back: what was never started, while nothing else is in hand and the stream is
    /// paused; and what was refused, once nothing more is given. It is read again first, where it
    /// is this consumer's still.
    pub(super) fn take_back(&mut self, is_closing: bool) -> Vec<Id> {
        let waits = self.standing.is_paused && !self.ready.is_empty();
        if !(is_closing || waits && self.in_hand().len() == self.ready.len()) {
            return Vec::new();
        }
        let waiting: Vec<u64> = self.ready.drain(..).map(|taken| taken.position).collect();
        let back = waiting.into_iter().filter_map(|position| self.held.remove(&position));
        let mut back: Vec<Id> = back.map(|entry| entry.id).collect();
        self.held.retain(|_, entry| {
            let goes = is_closing && entry.stage == Stage::Refused;
            back.extend(goes.then_some(entry.id));
            !goes
        });
        self.reading.own = Some(Id::ZERO);
        back
    }

    fn open(&self) -> impl Iterator<Item = (&u64, &Open)> {
        self.held.iter().filter(|(_, entry)| entry.stage != Stage::Settled)
    }

    /// Below all that is not settled; what was read is done up to here. `None`: nothing was read.
    pub(super) fn floor(&self) -> Option<Id> {
        let lowest = self.open().map(|(_, entry)| entry.id).min();
        lowest.map(Id::before).or(self.reading.last)
    }

    /// The entry at this position, while it is not settled.
    pub(super) fn entry(&self, position: u64) -> Option<Id> {
        self.held.get(&position).map(|entry| entry.id)
    }

    /// Entries that are delivered again at most, should everything end now.
    pub(super) fn repeated_at_most(&self) -> u64 {
        self.open().count() as u64 + self.settled - self.confirmed
    }

    pub(super) fn show(&self, partition: Partition) -> PartitionStanding {
        let last = self
            .reading
            .last
            .map_or(0, |last| last.position().unwrap_or(Id::NUMBERED + self.reading.numbered));
        let next = last + 1;
        PartitionStanding {
            partition,
            epoch: self.epoch,
            next,
            oldest_open: self.open().next().map_or(next, |(position, _)| *position),
            lag: self.standing.lag.map(|lag| lag + self.ready.len() as u64),
            ahead: DoneAhead {
                // Most positions between two entries are of none.
                positions: 0,
                stored: self.confirmed,
                not_stored: self.settled - self.confirmed,
                set_bytes: None,
            },
        }
    }
}
