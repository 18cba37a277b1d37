//! What a sink, its driver and its requests share.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::Instant,
};

use super::{
    config::HttpSinkConfig,
    queue::{NextRequest, Queue},
    waiting::{PastRequests, WaitingEvent},
};
use crate::{
    http::connection::Connection,
    sink::{Outgoing, SinkError, gate::Gate},
};

/// What is accepted and not settled takes at most this many bytes.
const ROOM_BYTES: usize = 16 * 1024 * 1024;

/// And is at most so many events: each takes at least its share of [`ROOM_BYTES`].
const ROOM_EVENTS: usize = 1_024;

/// Where to deliver, and how: replaced as a whole.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) config: HttpSinkConfig,
    pub(super) connection: Connection,
}

pub(super) struct Shared {
    settings: RwLock<Arc<Settings>>,
    queue: Mutex<Queue>,
    /// Wakes the driver: something came, something is settled, it is to finish.
    pub(super) wake: Notify,
    /// One permit is one byte. Taken before an event is queued, given back once it is settled;
    /// first come, first served. Closed when nothing is delivered any more.
    pub(super) room: Arc<Semaphore>,
    pub(super) gate: Gate,
    unanswered: AtomicU64,
    /// Requests that the target has settled.
    settled: AtomicU64,
    /// True once all that was accepted is settled, and nothing is accepted any more.
    pub(super) ended: watch::Sender<bool>,
    pub(super) failure: Mutex<Option<SinkError>>,
}

impl Settings {
    fn new(config: HttpSinkConfig) -> Result<Self, String> {
        config.check()?;
        let connection = Connection::new(&config.target)?;
        Ok(Self { config, connection })
    }
}

/// An event that is larger than all room takes the whole of it, and so passes alone.
pub(super) fn room_of(outgoing: &Outgoing) -> u32 {
    let bytes = outgoing.event.approximate_bytes();
    u32::try_from(bytes.clamp(ROOM_BYTES / ROOM_EVENTS, ROOM_BYTES)).unwrap_or(u32::MAX)
}

impl Shared {
    pub(super) fn new(config: HttpSinkConfig) -> Result<Self, String> {
        Ok(Self {
            settings: RwLock::new(Arc::new(Settings::new(config)?)),
            queue: Mutex::default(),
            wake: Notify::new(),
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
            gate: Gate::default(),
            unanswered: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            ended: watch::Sender::new(false),
            failure: Mutex::default(),
        })
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.settings.read().clone()
    }

    pub(super) fn reconfigure(&self, config: HttpSinkConfig) -> Result<bool, String> {
        if self.settings().config == config {
            return Ok(false);
        }
        let settings = Arc::new(Settings::new(config)?);
        *self.settings.write() = settings;
        self.gate.begin_anew();
        self.hurry(true);
        Ok(true)
    }

    pub(super) fn push(&self, outgoing: Outgoing, room: OwnedSemaphorePermit) {
        let bytes = outgoing.event.approximate_bytes();
        let (since, past, _room) = (Instant::now(), PastRequests::default(), Some(room));
        let waiting = WaitingEvent { outgoing, since, bytes, number: 0, past, _room };
        // What comes too late is dropped, and so refused, outside the lock.
        let late = self.queue.lock().push(waiting);
        drop(late);
        self.wake.notify_one();
    }

    pub(super) fn next(&self) -> NextRequest {
        let settings = self.settings();
        let (concurrency, batching) = (settings.config.concurrency, settings.config.batching());
        self.queue.lock().next(concurrency, batching, Instant::now())
    }

    /// These are sent again; once nothing is sent any more, they are refused.
    pub(super) fn come_back(&self, events: Vec<WaitingEvent>) {
        let refused = self.queue.lock().come_back(events);
        drop(refused);
    }

    /// The target has settled the request whose first event has this number. If it had failed
    /// before, the target may be well again for others, too.
    pub(super) fn works(&self, number: u64, target: &str) {
        self.settled.fetch_add(1, Ordering::Relaxed);
        if self.gate.works(number, target) {
            self.hurry(false);
        }
    }

    pub(super) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    pub(super) fn resume(&self) -> bool {
        let resumed = self.gate.resume();
        if resumed {
            self.hurry(true);
        }
        resumed
    }

    fn hurry(&self, anew: bool) {
        self.queue.lock().hurry(Instant::now(), anew);
        self.wake.notify_one();
    }

    /// A request of these lines is over.
    pub(super) fn is_over(&self, lines: &[u64]) {
        self.queue.lock().is_over(lines);
        self.wake.notify_one();
    }

    pub(super) fn finish(&self) {
        self.queue.lock().finishing = true;
        self.wake.notify_one();
    }

    /// Nothing is delivered from here on; what waits is refused.
    pub(super) fn give_up(&self) {
        let refused = self.queue.lock().give_up();
        self.room.close();
        drop(refused);
        self.ended.send_replace(true);
    }

    pub(super) fn fail(&self, why: &str) {
        let shown = self.settings().connection.target.shown.clone();
        self.failure.lock().get_or_insert(SinkError::new(shown, why));
    }

    /// So many events are sent again that the target may have had.
    pub(super) fn repeats(&self, events: usize) {
        self.unanswered.fetch_add(events as u64, Ordering::Relaxed);
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }
}
