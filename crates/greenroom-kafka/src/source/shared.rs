//! Shared by the source, its receipts, its commits and the polling thread.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::Thread,
    time::{Duration, Instant},
};

use greenroom_bus::{
    settlement::Settled,
    source::{Lease, Partition, Receipts, StatusCell, Taken},
    watermark::{Epoch, Told, Watermark},
};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::numbers::Names;

/// Records of a partition that are decoded ahead.
const READY: usize = 2_048;
/// And their bytes; one record always fits.
const READY_BYTES: usize = 4 * 1024 * 1024;
/// With this many settlements since the last commit, the next does not wait for its time.
const DUE: u64 = 10_000;

pub(super) struct Shared {
    pub(super) name: String,
    /// The state of its connection to the brokers.
    pub(super) status: Arc<StatusCell>,
    /// How long its partitions are its own, if that is known.
    pub(super) lease: Option<Arc<Lease>>,
    /// The names of its partitions in letters and errors.
    pub(super) names: Arc<Names>,
    pub(super) state: Mutex<State>,
    /// Told when a pull has something to give or to say.
    pub(super) changed: Notify,
    /// Told when a commit is due.
    pub(super) due: Notify,
    settled: AtomicU64,
    poller: OnceLock<Thread>,
}

impl Shared {
    pub(super) fn new(name: String, brokers: &str, session: Option<Duration>) -> Self {
        Self {
            status: StatusCell::new(name.clone(), format!("brokers {brokers}")),
            lease: session.map(|session| Lease::new(Instant::now() + session)),
            names: Arc::new(Names::new(&name)),
            name,
            state: Mutex::default(),
            changed: Notify::new(),
            due: Notify::new(),
            settled: AtomicU64::new(0),
            poller: OnceLock::new(),
        }
    }

    pub(super) fn is_polled_by(&self, thread: &Thread) {
        // Told once.
        let _ = self.poller.set(thread.clone());
    }

    /// The polling thread looks again at once.
    pub(super) fn wake(&self) {
        if let Some(poller) = self.poller.get() {
            poller.unpark();
        }
    }

    pub(super) fn begins_commit(&self) {
        self.settled.store(0, Ordering::Relaxed);
    }

    /// This many bytes were stored next to the offset of this partition.
    pub(super) fn shows_set(&self, number: Partition, bytes: usize) {
        if let Some(part) = self.state.lock().parts.get_mut(&number) {
            part.set_bytes = Some(bytes as u64);
        }
    }

    fn counts_settled(&self) {
        if self.settled.fetch_add(1, Ordering::Relaxed) + 1 == DUE {
            self.due.notify_one();
        }
    }
}

#[derive(Default)]
pub(super) struct State {
    /// Those that are read.
    pub(super) parts: BTreeMap<Partition, Part>,
    /// Taken away, and the engine has not answered yet; true once it was told.
    pub(super) leaving: BTreeMap<Partition, bool>,
    /// Of these, nothing is given.
    pub(super) paused: Vec<Partition>,
    /// The partition of the last batch.
    pub(super) last: Option<Partition>,
    /// Every partition that was ever assigned.
    pub(super) trackers: BTreeMap<Partition, Arc<Tracker>>,
    /// Why the source cannot continue.
    pub(super) failed: Option<String>,
    /// Callers that wait for a commit.
    pub(super) asks: Vec<oneshot::Sender<()>>,
    /// Other topics are to be read.
    pub(super) topics: Option<Vec<String>>,
    /// When the source was dropped: no pull follows.
    pub(super) dropped: Option<Instant>,
    /// No commits are made any more.
    pub(super) has_ended: bool,
    /// The consumer is closed.
    pub(super) is_closed: bool,
}

/// A partition that is read.
pub(super) struct Part {
    pub(super) epoch: Epoch,
    pub(super) tracker: Arc<Tracker>,
    /// Decoded, and not given.
    pub(super) ready: VecDeque<Taken>,
    pub(super) ready_bytes: usize,
    /// Something of it was given: the engine knows it.
    pub(super) has_given: bool,
    /// How far its records go, as the broker said last.
    pub(super) end: Option<u64>,
    /// The size of the text next to its offset, when it was stored last.
    pub(super) set_bytes: Option<u64>,
}

impl Part {
    pub(super) fn new(epoch: Epoch, tracker: Arc<Tracker>) -> Self {
        let ready = VecDeque::new();
        Self { epoch, tracker, ready, ready_bytes: 0, has_given: false, end: None, set_bytes: None }
    }

    pub(super) fn is_ready(&mut self, taken: Vec<Taken>) {
        self.ready_bytes += taken.iter().map(Self::bytes).sum::<usize>();
        self.ready.extend(taken);
    }

    pub(super) fn has_room(&self) -> bool {
        self.ready.len() < READY && self.ready_bytes < READY_BYTES
    }

    /// About as many bytes as it takes.
    pub(super) fn bytes(taken: &Taken) -> usize {
        match &taken.event {
            Ok(event) => event.approximate_bytes(),
            Err(malformed) => malformed.raw.len(),
        }
    }
}

impl State {
    /// The one to give of next: the one after the last that has anything, and is not paused.
    pub(super) fn next(&self) -> Option<Partition> {
        let is_open = |(number, part): &(&Partition, &Part)| {
            !part.ready.is_empty()
                && !self.paused.contains(number)
                && !self.leaving.contains_key(number)
        };
        let behind = self.parts.iter().filter(|(number, _)| Some(**number) > self.last);
        let next = behind.into_iter().find(is_open).or_else(|| self.parts.iter().find(is_open));
        next.map(|(number, _)| *number)
    }

    /// The engine is to be told of some that are taken away.
    pub(super) fn any_untold(&self) -> bool {
        self.leaving.values().any(|told| !told)
    }
}

/// How far a partition has come, over all its assignments.
#[derive(Default)]
pub(super) struct Tracker {
    pub(super) watermark: Mutex<Watermark>,
    /// The polling thread waits for settlements.
    pub(super) is_watched: AtomicBool,
}

/// Hears of the settlements of one assignment of a partition.
pub(super) struct Heard {
    pub(super) shared: Arc<Shared>,
    pub(super) tracker: Arc<Tracker>,
    pub(super) epoch: Epoch,
}

impl Receipts for Heard {
    fn settled(&self, position: u64, how: Settled) {
        let Self { shared, tracker, epoch } = self;
        let told = {
            let mut watermark = tracker.watermark.lock();
            match how {
                Settled::Acknowledged(_) => watermark.settle(*epoch, position),
                Settled::Refused(_) => watermark.refuse(*epoch, position),
            }
        };
        if told == Told::Counted && how.is_acknowledged() {
            shared.counts_settled();
        }
        if tracker.is_watched.load(Ordering::Relaxed) {
            shared.wake();
        }
    }
}
