//! State shared by the driver, the source and its receipts.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use greenroom_bus::{
    settlement::Settled,
    source::{Lease, Partition, Place, Places, Receipts, StatusCell, Taken},
    watermark::Epoch,
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::state::{Revocation, State};

/// The error after a panic of the driver.
pub(super) const PANICKED: &str =
    "the task that reads it has ended unexpectedly; see the log, and please report this";

pub(super) struct Shared {
    pub(super) streams: Vec<Stream>,
    /// Wakes the driver: an entry was settled, there is room, or a pause began or ended.
    pub(super) to_driver: Notify,
    /// Wakes the source.
    pub(super) to_source: Notify,
    /// The source was dropped, so nothing more is read.
    is_closing: AtomicBool,
    /// The driver has panicked.
    has_failed: AtomicBool,
    pub(super) status: Arc<StatusCell>,
    /// Until then, no other consumer can claim entries in hand.
    pub(super) lease: Arc<Lease>,
}

pub(super) struct Stream {
    pub(super) name: String,
    state: Mutex<State>,
}

impl Stream {
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock())
    }

    /// The server refuses to read it.
    pub(super) fn is_refused(&self) -> bool {
        self.look(|state| state.standing.refused.is_some())
    }
}

impl Shared {
    pub(super) fn new(described: &str, server: &str, streams: &[String]) -> Arc<Self> {
        let stream = |name: &String| Stream { name: name.clone(), state: Mutex::new(State::new()) };
        Arc::new(Self {
            streams: streams.iter().map(stream).collect(),
            to_driver: Notify::new(),
            to_source: Notify::new(),
            is_closing: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            status: StatusCell::new(described, server),
            lease: Lease::new(Instant::now().into_std()),
        })
    }

    pub(super) fn stream(&self, partition: Partition) -> Option<&Stream> {
        self.streams.get(partition.0 as usize)
    }

    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.to_driver.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Asks the engine to give up this stream.
    pub(super) fn revoke(&self, stream: &Stream) {
        stream.look(|state| {
            state.standing.revocation = Revocation::Wanted;
            state.ready.clear();
        });
        self.to_source.notify_one();
    }

    pub(super) fn set_paused(&self, paused: &[Partition]) {
        for (number, stream) in (0..).zip(&self.streams) {
            let is_paused = paused.contains(&Partition(number));
            stream.look(|state| state.standing.is_paused = is_paused);
        }
        self.to_driver.notify_one();
    }

    /// Moves ready entries of this stream to `into`, unless it is paused.
    pub(super) fn take(&self, index: usize, most: usize, into: &mut Vec<Taken>) -> bool {
        let took = self.streams[index].look(|state| {
            let standing = &state.standing;
            let is_held = standing.is_paused || standing.revocation != Revocation::None;
            let count = if is_held { 0 } else { state.ready.len().min(most) };
            into.extend(state.ready.drain(..count));
            count > 0
        });
        if took {
            self.to_driver.notify_one();
        }
        took
    }
}

impl Places for Shared {
    fn place(&self, partition: Option<Partition>, position: u64) -> Place {
        let stream = self.stream(partition.unwrap_or_default());
        let source = match stream {
            Some(stream) => match stream.look(|state| state.entry(position)) {
                Some(id) => format!("redis:{}/{id}", stream.name),
                None => format!("redis:{}", stream.name),
            },
            None => "redis".to_owned(),
        };
        Place { source: source.into(), position }
    }
}

/// Held by the driver: without it, a panic would leave the engine waiting for entries forever.
pub(super) struct FailsOnPanic(pub(super) Arc<Shared>);

impl Drop for FailsOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.has_failed.store(true, Ordering::Release);
            self.0.to_source.notify_one();
        }
    }
}

/// The receipts of one stream in one assignment.
pub(super) struct Heard {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
    pub(super) epoch: Epoch,
}

impl Receipts for Heard {
    fn settled(&self, position: u64, how: Settled) {
        let is_first = self.shared.streams[self.index].look(|state| {
            // The result belongs to an assignment that has ended or is about to end.
            let is_given_up = state.standing.revocation != Revocation::None;
            if is_given_up || state.epoch != self.epoch {
                return false;
            }
            match how {
                Settled::Acknowledged(_) => state.settle(position),
                Settled::Refused(_) => {
                    state.refuse(position);
                    false
                }
            }
        });
        if is_first {
            self.shared.to_driver.notify_one();
        }
    }
}
