//! The entries of one stream, from their arrival to the confirmed acknowledgement.

use std::collections::{BTreeMap, HashSet, VecDeque};

use greenroom_bus::{
    source::{Partition, PartitionStanding, Taken},
    watermark::{DoneAhead, Epoch, Positions, Watermark},
};

use crate::entry::Id;

/// The state of one stream.
pub(super) struct State {
    /// Numbers the assignments; it holds no positions.
    epochs: Watermark,
    pub(super) epoch: Epoch,
    /// Entries from their arrival until the server has confirmed their acknowledgement.
    held: BTreeMap<u64, Open>,
    /// Entries that the engine has not pulled yet.
    pub(super) ready: VecDeque<Taken>,
    /// Settled entries whose acknowledgement is not sent.
    acks: Vec<Id>,
    /// How many entries were settled, and how many acknowledgements were confirmed.
    settled: u64,
    confirmed: u64,
    /// Reads to do before new entries.
    pub(super) reading: Reading,
    pub(super) standing: StandsNow,
}

/// Reads to do before new entries.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Pending entries of this consumer, after this id.
    pub(super) own: Option<Id>,
    /// Abandoned entries of other consumers, from this id on.
    pub(super) left: Option<Id>,
    /// How often reading was restarted. An answer to a request of before then is dropped.
    pub(super) beginning: u64,
    /// The highest id that was read.
    last: Option<Id>,
    /// How many entries had ids that do not fit into a position.
    numbered: u64,
}

/// Pause, revocation and figures.
#[derive(Debug, Default)]
pub(super) struct StandsNow {
    pub(super) is_paused: bool,
    pub(super) revocation: Revocation,
    /// Why the server refuses this stream, which holds up no other.
    pub(super) refused: Option<String>,
    /// Entries that no consumer of the group has read.
    pub(super) lag: Option<u64>,
    /// Repeated deliveries of entries that were in hand or settled.
    pub(super) skipped: u64,
}

/// The steps of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Revocation {
    #[default]
    None,
    /// The engine has to be told.
    Wanted,
    /// The engine was told, and has not answered.
    Told,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    id: Id,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is waiting or being handled.
    InHand,
    /// It was refused; the next delivery is a new attempt.
    Refused,
    /// It is settled, and the acknowledgement is not confirmed.
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

    /// Starts a new assignment, with nothing in hand.
    pub(super) fn begin_anew(&mut self) {
        self.epoch = self.epochs.assign(&Positions::starting_at(1));
        self.held.clear();
        self.ready.clear();
        self.acks.clear();
        self.settled = self.confirmed;
        self.read_anew();
        self.standing.revocation = Revocation::None;
    }

    /// Reads pending entries first, from the lowest one on.
    fn read_anew(&mut self) {
        self.reading.beginning += 1;
        (self.reading.own, self.reading.left) = (Some(Id::ZERO), None);
    }

    /// Registers a delivery: the position of the entry, or `None` if it is in hand or settled.
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

    /// The position of an id. An id that does not fit gets a number that is unique in this process.
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

    /// Registers a pending entry that was removed from the stream: it is acknowledged. False if it
    /// is in hand.
    pub(super) fn receive_removed(&mut self, id: Id) -> bool {
        let position = self.position(id);
        let is_lost = !self.held.contains_key(&position);
        if is_lost {
            self.settled += 1;
            self.acks.push(id);
        }
        is_lost
    }

    /// True if this is the first acknowledgement to send, so that the driver has to be woken.
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

    /// The acknowledgements to send, with the assignment they belong to.
    pub(super) fn take_acks(&mut self) -> (Epoch, Vec<Id>) {
        (self.epoch, std::mem::take(&mut self.acks))
    }

    /// The acknowledgements were confirmed; if not, they are sent again.
    pub(super) fn confirm(&mut self, epoch: Epoch, acks: Vec<Id>, is_heard: bool) {
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

    /// Entries that are waiting or being handled.
    pub(super) fn in_hand(&self) -> Vec<Id> {
        let entries = self.held.values().filter(|entry| entry.stage == Stage::InHand);
        entries.map(|entry| entry.id).collect()
    }

    /// Compares entries in hand with the pending list of the server: false if some are missing from
    /// it. Refused entries that are missing belong to another consumer, and are forgotten.
    pub(super) fn compare(&mut self, ours: &HashSet<Id>) -> bool {
        self.held.retain(|_, entry| entry.stage != Stage::Refused || ours.contains(&entry.id));
        self.in_hand().iter().all(|id| ours.contains(id))
    }

    /// Removes the entries to give back: waiting ones, if the stream is paused and nothing is being
    /// handled; at the end, refused ones too. Unclaimed ones are read again first.
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
        self.read_anew();
        back
    }

    fn open(&self) -> impl Iterator<Item = (&u64, &Open)> {
        self.held.iter().filter(|(_, entry)| entry.stage != Stage::Settled)
    }

    /// The id up to which everything is settled. `None`: nothing was read.
    pub(super) fn floor(&self) -> Option<Id> {
        let lowest = self.open().map(|(_, entry)| entry.id).min();
        lowest.map(Id::before).or(self.reading.last)
    }

    /// The entry at this position, until it is acknowledged.
    pub(super) fn entry(&self, position: u64) -> Option<Id> {
        self.held.get(&position).map(|entry| entry.id)
    }

    /// How many entries a crash would repeat at most.
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
                // Positions have gaps of any width, so a difference of two counts nothing.
                positions: 0,
                stored: self.confirmed,
                not_stored: self.settled - self.confirmed,
                set_bytes: None,
            },
        }
    }
}
