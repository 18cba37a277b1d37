//! Random appends, crashes, faults, retention and consumers, by seed.
//!
//! What was acknowledged is there, once; what was refused for now is not; what nobody knows is
//! whole or absent. What a consumer committed is not given again, and all that is stored is given.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rand::{Rng, RngExt};

use super::{
    super::{
        AppendError, Appended, EventLog, LogOptions, SegmentLog,
        sim_disk::{SimDisk, rng},
    },
    support::*,
};
use crate::source::{Pull, Source};

const CONSUMER: &str = "c";

/// What is known of the appends.
#[derive(Default)]
struct Model {
    /// Ids that were acknowledged.
    acknowledged: BTreeSet<u32>,
    /// Appends of which nobody knows: whole or absent.
    unknown: Vec<Vec<u32>>,
    /// Never stored.
    refused: BTreeSet<u32>,
    /// By position.
    seen: BTreeMap<u64, u32>,
    /// Settled, and committed.
    committed: BTreeSet<u64>,
    /// Settled before a commit that failed, which may have been stored all the same.
    perhaps: BTreeSet<u64>,
    /// Settled.
    settled: BTreeSet<u64>,
    next_id: u32,
}

impl Model {
    fn is_done(&self, position: u64) -> bool {
        self.committed.contains(&position) || self.perhaps.contains(&position)
    }
}

struct Program<R> {
    rng: R,
    seed: u64,
    disk: SimDisk,
    hands: Hands,
    log: Option<SegmentLog>,
    model: Model,
}

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 8 * 1024,
        max_bytes: 64 * 1024,
        keep_for: Duration::from_secs(100),
        remember_for: Duration::from_secs(1_000_000),
        ..LogOptions::default()
    }
}

impl<R: Rng> Program<R> {
    fn log(&self) -> SegmentLog {
        self.log.clone().unwrap()
    }

    async fn append(&mut self) {
        let mut batches = Vec::new();
        for _ in 0..self.rng.random_range(1..5) {
            let first = self.model.next_id;
            let count = self.rng.random_range(1..8);
            self.model.next_id += count;
            batches.push((first..first + count).collect::<Vec<_>>());
        }
        if let Some(again) = self.model.acknowledged.iter().next_back().copied() {
            batches.push(vec![again]);
        }
        let log = self.log();
        let appends = batches.into_iter().map(|ids| {
            let log = log.clone();
            tokio::spawn(async move {
                let events = ids.iter().map(|id| event(&id.to_string())).collect();
                (log.append(events).await, ids)
            })
        });
        let appends: Vec<_> = appends.collect();
        for append in appends {
            let (answer, ids) = append.await.unwrap();
            self.answered(answer, ids);
        }
    }

    fn answered(&mut self, answer: Result<Appended, AppendError>, ids: Vec<u32>) {
        let model = &mut self.model;
        let was_there = ids.iter().any(|id| model.acknowledged.contains(id));
        match answer {
            Ok(appended) => {
                let expected = if was_there { (0, 1) } else { (ids.len() as u64, 0) };
                assert_eq!((appended.stored, appended.repeated), expected, "seed {}", self.seed);
                model.acknowledged.extend(ids);
            }
            Err(_) if was_there => {}
            Err(AppendError::Failed(_)) => model.unknown.push(ids),
            Err(_) => model.refused.extend(ids),
        }
    }

    /// Reads some, settles some of it, and may commit.
    async fn consume(&mut self) {
        let log = self.log();
        let Ok(mut source) = log.source(CONSUMER) else { return };
        let committer = source.committer().unwrap();
        if committer.commit().await.is_err() {
            return;
        }
        let mut left = self.rng.random_range(1..60);
        let open = self.open(&log);
        while left > 0 && self.model.settled.range(..log.standing().next).count() < open {
            let mut taken = Vec::new();
            let waits = Duration::from_millis(100);
            match tokio::time::timeout(waits, source.pull(&mut taken)).await {
                Ok(Ok(_)) if !taken.is_empty() => {}
                _ => break,
            }
            for item in taken {
                let id: u32 = item.event.unwrap().id().parse().unwrap();
                let position = item.position;
                let before = self.model.seen.insert(position, id);
                assert!(before.is_none_or(|before| before == id), "seed {}: {position}", self.seed);
                let is_new = !self.model.committed.contains(&position);
                assert!(is_new, "seed {}: {position} was committed", self.seed);
                if left > 0 && self.rng.random_range(0..10) > 0 {
                    settle(&source, position);
                    self.model.settled.insert(position);
                    left -= 1;
                }
            }
        }
        if self.rng.random_range(0..3) > 0 {
            let model = &mut self.model;
            match committer.commit().await {
                Ok(()) => model.committed.extend(&model.settled),
                Err(_) => model.perhaps.extend(&model.settled),
            }
        }
        // What was not committed is given again.
        self.model.settled.clone_from(&self.model.committed);
    }

    fn open(&self, log: &SegmentLog) -> usize {
        (log.standing().next - 1) as usize
    }

    /// Ends in some way, and opens again, without faults at the latest.
    async fn reopen(&mut self) {
        let log = self.log.take().unwrap();
        self.disk.fails_in(None);
        match self.rng.random_range(0..3) {
            0 => {
                log.close().await;
                drop(log);
                if self.rng.random() {
                    self.disk = self.disk.crash();
                } else {
                    self.disk = self.disk.kill();
                }
            }
            1 => self.disk = self.disk.kill(),
            _ => self.disk = self.disk.crash(),
        }
        if self.rng.random() {
            self.disk.fails_in(Some(20));
            if let Ok(log) = try_open(&self.disk, options(), &self.hands) {
                drop(log);
            }
            self.disk.fails_in(None);
            self.disk = if self.rng.random() { self.disk.kill() } else { self.disk.crash() };
        }
        let log = try_open(&self.disk, options(), &self.hands);
        let log = log.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.log = Some(log);
        self.check().await;
    }

    async fn check(&mut self) {
        let log = self.log();
        let first = log.standing().first;
        let stored = read_all(&log).await;
        let seed = self.seed;
        for (n, (position, _)) in stored.iter().enumerate() {
            assert_eq!(*position, first + n as u64, "seed {seed}");
        }
        let stored: BTreeMap<u64, u32> =
            stored.into_iter().map(|(position, id)| (position, id.parse().unwrap())).collect();
        let ids: BTreeSet<u32> = stored.values().copied().collect();
        assert_eq!(ids.len(), stored.len(), "seed {seed}: an event is there twice");
        for (position, id) in &self.model.seen {
            if *position < first {
                assert!(self.model.is_done(*position), "seed {seed}: {position} removed");
            } else {
                assert_eq!(stored.get(position), Some(id), "seed {seed}: {position} changed");
            }
        }
        let removed: BTreeSet<u32> = self.model.seen.range(..first).map(|(_, id)| *id).collect();
        for id in &self.model.acknowledged {
            assert!(ids.contains(id) || removed.contains(id), "seed {seed}: {id} is lost");
        }
        assert!(self.model.refused.is_disjoint(&ids), "seed {seed}: refused, and stored");
        let model = &mut self.model;
        for append in std::mem::take(&mut model.unknown) {
            let there = append.iter().filter(|id| ids.contains(id) || removed.contains(id)).count();
            assert!(there == 0 || there == append.len(), "seed {seed}: {append:?} in part");
            if there > 0 {
                model.acknowledged.extend(append);
            }
        }
    }
}

async fn program(seed: u64) {
    let (disk, hands) = (SimDisk::new(seed), Hands::default());
    let log = try_open(&disk, options(), &hands).unwrap();
    drop(log.source(CONSUMER).unwrap());
    let mut program = Program {
        rng: rng(seed),
        seed,
        disk,
        hands,
        log: Some(log),
        model: Model { next_id: 1, ..Model::default() },
    };
    for _ in 0..30 {
        match program.rng.random_range(0..10) {
            0..5 => program.append().await,
            5..7 => program.consume().await,
            7 => program.hands.pass(Duration::from_secs(60)),
            8 => program.disk.fails_in(Some(30)),
            _ => program.reopen().await,
        }
    }
    program.reopen().await;
    // In the end all is given that is stored.
    let log = program.log();
    log.close().await;
    let mut source = log.source(CONSUMER).unwrap();
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    let given: BTreeSet<u64> = taken.iter().map(|item| item.position).collect();
    let committed = &program.model.committed;
    assert!(given.is_disjoint(committed), "seed {seed}: given again");
    let standing = log.standing();
    for position in standing.first..standing.next {
        let is_known = given.contains(&position) || program.model.is_done(position);
        assert!(is_known, "seed {seed}: {position} is never given");
    }
}

/// `GREENROOM_PROGRAMS`: how many; `GREENROOM_SEED`: the first seed.
#[tokio::test]
async fn b03_random_programs_lose_nothing_that_was_acknowledged() {
    let from = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let count: u64 = from("GREENROOM_PROGRAMS").unwrap_or(20);
    let first: u64 = from("GREENROOM_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    for seed in first..first + count {
        program(seed).await;
    }
}
