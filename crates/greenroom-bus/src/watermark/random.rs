//! Random programs of settlements and watermarks against a record of everything.
//!
//! Two partitions with gaps, whose events are handled in any order, in several parts, are refused,
//! forgotten and panicked over, delivered again, revoked and reassigned; commits that fail, or
//! whose answer comes late or never; a crash. A map of every position there ever was serves as the
//! model, and each watermark is compared with it after each step.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use proptest::prelude::*;

use super::*;
use crate::settlement::{Ack, Refusal, Settle, Settled};

const PARTITIONS: usize = 2;

/// A number says which of several, counted round.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The source delivers its next event; if there is none, one is appended this far after the
    /// last.
    Receive(usize, u64),
    /// Something that was delivered comes again.
    Redeliver(usize, usize),
    Child(usize),
    Confirm(usize),
    Refuse(usize),
    Drop(usize),
    /// The holder of the part panics.
    Panic(usize),
    /// A commit is sent, and stored where the flag says so.
    Commit(usize, bool),
    /// Its answer comes, or is lost.
    Answer(usize, bool),
    /// The partition is revoked and assigned again, from the stored positions.
    Assign(usize),
    Revoke(usize),
    /// Everything is lost except the stored positions.
    Crash,
    /// An event is deleted at its source.
    Vanish(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let (partition, which) = (0..PARTITIONS, 0..64_usize);
    let of = (partition.clone(), which.clone());
    prop_oneof![
        12 => (partition.clone(), 1..100_u64).prop_map(|(of, gap)| Step::Receive(of, gap.saturating_sub(90).max(1))),
        1 => (partition.clone(), 1..1_000_u64).prop_map(|(of, gap)| Step::Receive(of, gap)),
        2 => of.clone().prop_map(|(of, which)| Step::Redeliver(of, which)),
        2 => which.clone().prop_map(Step::Child),
        12 => which.clone().prop_map(Step::Confirm),
        1 => which.clone().prop_map(Step::Refuse),
        1 => which.clone().prop_map(Step::Drop),
        1 => which.prop_map(Step::Panic),
        3 => (partition.clone(), prop::bool::weighted(0.8)).prop_map(|(of, stored)| Step::Commit(of, stored)),
        3 => (partition.clone(), prop::bool::weighted(0.8)).prop_map(|(of, comes)| Step::Answer(of, comes)),
        1 => partition.clone().prop_map(Step::Assign),
        1 => partition.prop_map(Step::Revoke),
        1 => Just(Step::Crash),
        1 => of.prop_map(|(of, which)| Step::Vanish(of, which)),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Open when the epoch began, and not received since.
    Expected,
    InHand,
    Refused,
    Done,
}

/// The expected state of a watermark, recorded event by event.
#[derive(Debug, Clone, Default)]
struct Naive {
    assigned: bool,
    epoch: Epoch,
    known: BTreeMap<u64, How>,
    /// The last that was received in this epoch.
    last: Option<u64>,
    settled: u64,
    confirmed: u64,
    counts: Counts,
}

/// A stored snapshot: the model's view and that of the watermark.
#[derive(Debug, Clone)]
struct Stored {
    positions: Positions,
    known: BTreeMap<u64, How>,
}

impl Naive {
    fn begin(&mut self, assigned: bool, known: BTreeMap<u64, How>) {
        let epoch = Epoch(self.epoch.0 + 1);
        *self = Self { assigned, epoch, known, counts: self.counts, ..Self::default() };
    }

    fn receive(&mut self, position: u64) -> Received {
        if !self.assigned {
            return Received::NotAssigned;
        }
        let known = self.known.len();
        self.known.retain(|passed, how| *passed >= position || *how != How::Expected);
        self.counts.gone += (known - self.known.len()) as u64;
        self.last = self.last.max(Some(position));
        match self.known.get(&position) {
            Some(How::Done) => {
                self.counts.skipped += 1;
                return Received::Done;
            }
            Some(How::InHand) => {
                self.counts.doubled += 1;
                return Received::InHand;
            }
            Some(How::Expected | How::Refused) | None => {}
        }
        self.counts.received += 1;
        self.known.insert(position, How::InHand);
        Received::New
    }

    fn result(&mut self, epoch: Epoch, position: u64, how: Settled) -> Told {
        if !self.assigned || epoch != self.epoch {
            self.counts.fenced += 1;
            return Told::Fenced;
        }
        if self.known.get(&position) != Some(&How::InHand) {
            return Told::NotInHand;
        }
        let (settled, counter) = match how.is_acknowledged() {
            true => (How::Done, &mut self.counts.settled),
            false => (How::Refused, &mut self.counts.refused),
        };
        *counter += 1;
        self.settled += u64::from(settled == How::Done);
        self.known.insert(position, settled);
        Told::Counted
    }

    fn open(&self) -> impl Iterator<Item = u64> {
        self.known.iter().filter(|(_, how)| **how != How::Done).map(|(position, _)| *position)
    }

    fn assert_says_the_same(&self, watermark: &Watermark) {
        assert_eq!(watermark.epoch(), self.assigned.then_some(self.epoch));
        assert_eq!(watermark.counts(), self.counts);
        let Some(snapshot) = watermark.snapshot() else { return };
        let positions = snapshot.positions();
        for (position, how) in &self.known {
            assert_eq!(positions.is_done(*position), *how == How::Done, "{position} of {self:?}");
        }
        assert!(self.last.is_none_or(|last| positions.next() > last));
        assert!(!positions.is_done(positions.next()));
        let open: Vec<u64> = self.open().collect();
        assert_eq!(positions.open().iter().cloned().flatten().collect::<Vec<_>>(), open);
        assert_eq!(positions.lowest(), watermark.lowest());
        assert_eq!(watermark.lowest(), open.first().copied().unwrap_or(positions.next()));
        assert_eq!(watermark.repeated_at_most(), open.len() as u64 + self.settled - self.confirmed);
        let in_hand = self.known.values().filter(|how| **how == How::InHand).count();
        assert_eq!(watermark.in_hand(), in_hand as u64);
        let again = Positions::new(positions.next(), positions.open().to_vec());
        assert_eq!(again.as_ref(), Ok(positions), "what is stored can be read");
    }
}

/// Both sides of one partition, which results reach from wherever they come.
#[derive(Debug, Default)]
struct Both {
    watermark: Watermark,
    naive: Naive,
    /// Everything whose acknowledgement has counted, in whichever epoch.
    acknowledged: BTreeSet<u64>,
}

/// The settlement of one delivery.
struct Result {
    both: Arc<Mutex<Both>>,
    epoch: Epoch,
    position: u64,
}

impl Settle for Result {
    fn settled(&self, how: Settled) {
        let Both { watermark, naive, acknowledged } = &mut *self.both.lock().unwrap();
        let told = match how.is_acknowledged() {
            true => watermark.settle(self.epoch, self.position),
            false => watermark.refuse(self.epoch, self.position),
        };
        assert_eq!(told, naive.result(self.epoch, self.position, how));
        if told == Told::Counted && how.is_acknowledged() {
            acknowledged.insert(self.position);
        }
    }
}

/// One partition, at its source and here.
struct Partition {
    /// The positions that there are.
    log: Vec<u64>,
    /// The last that there ever was: a source never gives a position twice.
    end: u64,
    /// Everything before this was delivered in this epoch.
    delivered: u64,
    both: Arc<Mutex<Both>>,
    stored: Stored,
    /// Commits without an answer: whether each was stored, and the model's view of it.
    sent: Vec<(Snapshot, bool, u64)>,
}

impl Partition {
    fn new() -> Self {
        let stored = Stored { positions: Positions::starting_at(0), known: BTreeMap::new() };
        let mut partition = Self {
            log: Vec::new(),
            end: 0,
            delivered: 0,
            both: Arc::default(),
            stored,
            sent: Vec::new(),
        };
        partition.assign();
        partition
    }

    fn assign(&mut self) {
        let both = &mut *self.both.lock().unwrap();
        both.watermark.assign(&self.stored.positions);
        both.naive.begin(true, self.stored.known.clone());
        self.delivered = self.stored.positions.lowest();
    }

    fn revoke(&mut self) {
        let both = &mut *self.both.lock().unwrap();
        both.watermark.revoke();
        both.naive.begin(false, BTreeMap::new());
    }

    /// Nothing is delivered again that need not be, and no more than was announced.
    fn crash(&mut self) {
        let before = std::mem::take(&mut self.both);
        let before = before.lock().unwrap();
        if before.watermark.epoch().is_some() {
            let known = before.naive.known.keys();
            let again = known.filter(|known| !self.stored.positions.is_done(**known)).count();
            assert!(again as u64 <= before.watermark.repeated_at_most(), "{again} again");
        }
        self.both.lock().unwrap().acknowledged.clone_from(&before.acknowledged);
        self.sent.clear();
        self.assign();
    }

    /// The next event, if the partition is assigned; its settlement, if it is to be handled.
    fn receive(&mut self, gap: u64) -> Option<Ack> {
        let position = self.log.iter().find(|position| **position >= self.delivered).copied();
        let position = position.unwrap_or_else(|| {
            self.end += gap;
            self.log.push(self.end);
            self.end
        });
        self.delivered = position + 1;
        self.deliver(position)
    }

    fn redeliver(&mut self, which: usize) -> Option<Ack> {
        let before: Vec<u64> =
            self.log.iter().copied().filter(|position| *position < self.delivered).collect();
        let position = before.get(which % before.len().max(1))?;
        self.deliver(*position)
    }

    fn deliver(&mut self, position: u64) -> Option<Ack> {
        let mut both = self.both.lock().unwrap();
        let received = both.watermark.receive(position);
        assert_eq!(received, both.naive.receive(position), "{position}");
        let is_lost = received == Received::Done && !both.acknowledged.contains(&position);
        assert!(!is_lost, "{position} is skipped, and nobody has handled it");
        let epoch = both.naive.epoch;
        drop(both);
        let both = self.both.clone();
        (received == Received::New).then(|| Ack::new(Result { both, epoch, position }))
    }

    /// Commits of an epoch come one after the other.
    fn commit(&mut self, is_stored: bool) {
        let both = self.both.lock().unwrap();
        let Some(snapshot) = both.watermark.snapshot() else { return };
        if self.sent.iter().any(|(sent, ..)| sent.epoch() == snapshot.epoch()) {
            return;
        }
        if is_stored {
            let known = both.naive.known.iter().map(|(position, how)| match how {
                How::Done => (*position, How::Done),
                How::Expected | How::InHand | How::Refused => (*position, How::Expected),
            });
            self.stored =
                Stored { positions: snapshot.positions().clone(), known: known.collect() };
        }
        self.sent.push((snapshot, is_stored, both.naive.settled));
    }

    fn answer(&mut self, comes: bool) {
        if self.sent.is_empty() {
            return;
        }
        let (snapshot, is_stored, settled) = self.sent.remove(0);
        if !is_stored || !comes {
            return;
        }
        let Both { watermark, naive, .. } = &mut *self.both.lock().unwrap();
        let counts = naive.assigned && snapshot.epoch() == naive.epoch;
        assert_eq!(watermark.confirm(&snapshot), counts);
        match counts {
            true => naive.confirmed = settled,
            false => naive.counts.fenced_commits += 1,
        }
    }

    fn vanish(&mut self, which: usize) {
        if !self.log.is_empty() {
            self.log.remove(which % self.log.len());
        }
    }

    fn check(&self) {
        let both = self.both.lock().unwrap();
        both.naive.assert_says_the_same(&both.watermark);
        for position in &self.log {
            let claims = self.stored.positions.is_done(*position);
            assert!(!claims || both.acknowledged.contains(position), "{position} is not settled");
        }
    }

    /// After a last crash, the remaining events of the source are delivered and handled: then
    /// nothing is left.
    fn finish(&mut self) {
        self.crash();
        while self.log.last().is_some_and(|last| *last >= self.delivered) {
            if let Some(part) = self.receive(1) {
                part.confirm();
            }
        }
        let both = self.both.lock().unwrap();
        for position in &self.log {
            assert!(both.acknowledged.contains(position), "{position} is lost");
        }
        both.naive.assert_says_the_same(&both.watermark);
    }
}

struct World {
    partitions: Vec<Partition>,
    /// Of deliveries of any partition and epoch.
    parts: Vec<Ack>,
}

impl World {
    fn take(&mut self, step: Step) {
        match step {
            Step::Receive(of, gap) => self.parts.extend(self.partitions[of].receive(gap)),
            Step::Redeliver(of, which) => self.parts.extend(self.partitions[of].redeliver(which)),
            Step::Commit(of, is_stored) => self.partitions[of].commit(is_stored),
            Step::Answer(of, comes) => self.partitions[of].answer(comes),
            Step::Assign(of) => self.partitions[of].assign(),
            Step::Revoke(of) => self.partitions[of].revoke(),
            Step::Vanish(of, which) => self.partitions[of].vanish(which),
            Step::Crash => self.partitions.iter_mut().for_each(Partition::crash),
            Step::Child(which) if !self.parts.is_empty() => {
                let child = self.parts[which % self.parts.len()].child();
                self.parts.push(child);
            }
            Step::Confirm(which) => self.part(which).into_iter().for_each(Ack::confirm),
            Step::Refuse(which) => {
                self.part(which).into_iter().for_each(|part| part.refuse(Refusal::NotStored));
            }
            Step::Drop(which) => drop(self.part(which)),
            Step::Panic(which) => {
                let held = self.part(which);
                let caught = catch_unwind(AssertUnwindSafe(move || {
                    let _held = held;
                    std::panic::resume_unwind(Box::new("the holder"));
                }));
                assert!(caught.is_err());
            }
            Step::Child(_) => {}
        }
    }

    fn part(&mut self, which: usize) -> Option<Ack> {
        let among = self.parts.len();
        (among > 0).then(|| self.parts.swap_remove(which % among))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn d01_d12_f01_f02_random_programs_say_what_a_record_of_everything_says(
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let partitions = (0..PARTITIONS).map(|_| Partition::new()).collect();
        let mut world = World { partitions, parts: Vec::new() };
        for step in steps {
            world.take(step);
            world.partitions.iter().for_each(Partition::check);
        }
        world.partitions.iter_mut().for_each(Partition::finish);
    }
}
