//! What a sink and its driver share.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use greenroom_bus::{
    event::Event,
    sink::{SinkError, Trouble, gate::Gate},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, Semaphore, watch},
    time::Instant,
};

use super::{
    lines::{Lines, Next, Waiting},
    options::NatsSinkOptions,
};
use crate::connection::Connection;

/// What is accepted and not settled takes at most this many bytes.
const ROOM_BYTES: usize = 32 * 1024 * 1024;

/// And is at most so many events: each takes at least its share of [`ROOM_BYTES`].
const ROOM_EVENTS: usize = 16_384;

pub(super) struct Shared {
    pub(super) name: String,
    pub(super) connection: Arc<Connection>,
    pub(super) options: NatsSinkOptions,
    /// Nothing is rejected: what is refused for good is tried again, in case an operator has
    /// corrected it.
    pub(super) rejects_nothing: bool,
    lines: Mutex<Lines>,
    /// Wakes the driver: something came, may be tried again, or it is to finish.
    pub(super) wake: Notify,
    /// One permit is one byte. Taken before an event is queued, given back once it is settled;
    /// first come, first served. Closed when nothing is published any more.
    pub(super) room: Arc<Semaphore>,
    pub(super) gate: Gate,
    unanswered: AtomicU64,
    /// True once all that was accepted is settled, and nothing is accepted any more.
    ended: watch::Sender<bool>,
    failure: Mutex<Option<SinkError>>,
}

/// An event that is larger than all room takes the whole of it, and so passes alone.
pub(super) fn room_of(event: &Event) -> u32 {
    let bytes = event.approximate_bytes().clamp(ROOM_BYTES / ROOM_EVENTS, ROOM_BYTES);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Shared {
    pub(super) fn new(name: String, connection: Arc<Connection>, options: NatsSinkOptions) -> Self {
        Self {
            name,
            connection,
            options,
            rejects_nothing: false,
            lines: Mutex::default(),
            wake: Notify::new(),
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
            gate: Gate::default(),
            unanswered: AtomicU64::new(0),
            ended: watch::Sender::new(false),
            failure: Mutex::default(),
        }
    }

    pub(super) fn push(&self, waiting: Waiting) {
        // What comes too late is dropped, and so refused, outside the lock.
        let late = self.lines.lock().push(waiting);
        drop(late);
        self.wake.notify_one();
    }

    pub(super) fn next(&self) -> Next {
        self.lines.lock().next(self.options.concurrency, Instant::now())
    }

    /// Waits until all is settled; nothing may be pushed any more.
    ///
    /// # Errors
    /// Why what was not stored is refused.
    pub(super) async fn finished(&self) -> Result<(), SinkError> {
        // The sender lives in here, so the wait cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        self.failure().map_or(Ok(()), Err)
    }

    /// It is tried again once it is due.
    pub(super) fn fails(&self, waiting: Waiting) {
        self.lines.lock().fails(waiting);
    }

    /// The server has settled the event of this number. If it had failed before, the server may be
    /// well again for others, too.
    pub(super) fn works(&self, number: u64) {
        if self.gate.works(number, &self.name) {
            self.hurry(false);
        }
    }

    pub(super) fn resume(&self) -> bool {
        let resumed = self.gate.resume();
        if resumed {
            self.hurry(true);
        }
        resumed
    }

    fn hurry(&self, anew: bool) {
        self.lines.lock().hurry(Instant::now(), anew);
        self.wake.notify_one();
    }

    /// An event of this line is settled.
    pub(super) fn is_over(&self, line: Option<u64>) {
        self.lines.lock().is_over(line);
    }

    pub(super) fn finish(&self) {
        self.lines.lock().finish();
        self.wake.notify_one();
    }

    /// Nothing is published from here on; what waits is refused.
    pub(super) fn give_up(&self) {
        let refused = self.lines.lock().give_up();
        self.room.close();
        drop(refused);
        self.ended.send_replace(true);
    }

    pub(super) fn fail(&self, why: &str) {
        self.failure.lock().get_or_insert_with(|| SinkError::new(&self.name, why));
    }

    pub(super) fn failure(&self) -> Option<SinkError> {
        self.failure.lock().clone()
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        let mut trouble = self.gate.trouble()?;
        // The connection is tried again by itself, and an operator has to correct it all the same.
        trouble.paused |= self.connection.is_refused();
        Some(trouble)
    }

    /// An event is published again that the server may have stored.
    pub(super) fn repeats(&self) {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }
}
