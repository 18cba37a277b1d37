//! Shared by requests, their driver and their sink.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{
    gate::Gate,
    lines::{NextRequest, RequestLines},
    room::SinkRoom,
    target::{Remote, TargetHad},
    waiting::WaitingEvent,
};
use crate::sink::SinkError;

pub(super) struct Shared<R: Remote> {
    pub(super) remote: R,
    pub(super) room: SinkRoom,
    pub(super) gate: Gate,
    /// Wakes the driver: something came, may be sent again, or it is to finish.
    pub(super) wake: Notify,
    lines: Mutex<RequestLines<R::Kept>>,
    /// How many events were sent again that the target may have had.
    pub(super) unanswered: AtomicU64,
    /// Requests that the target has settled.
    pub(super) settled: AtomicU64,
}

impl<R: Remote> Shared<R> {
    pub(super) fn new(remote: R, room: SinkRoom) -> Self {
        Self {
            remote,
            room,
            gate: Gate::default(),
            wake: Notify::new(),
            lines: Mutex::default(),
            unanswered: AtomicU64::new(0),
            settled: AtomicU64::new(0),
        }
    }

    pub(super) fn push(&self, waiting: WaitingEvent<R::Kept>) {
        // A late event is dropped, and so refused, outside the lock.
        let late = self.lines.lock().push(waiting);
        drop(late);
        self.wake.notify_one();
    }

    pub(super) fn next(&self) -> NextRequest<R::Kept> {
        let pace = self.remote.pace();
        self.lines.lock().next(&pace, Instant::now())
    }

    /// A request of these lines is over, except for the events that are sent again; they are
    /// refused if nothing is sent any more.
    pub(super) fn is_over(&self, lines: Vec<u64>, parts: Vec<Vec<WaitingEvent<R::Kept>>>) {
        let refused = self.lines.lock().is_over(lines, parts, Instant::now());
        drop(refused);
    }

    /// The target has settled the request whose first event has this number. If it had failed
    /// before, the target may be well again for others, too.
    pub(super) fn works(&self, number: u64) {
        self.settled.fetch_add(1, Ordering::Relaxed);
        if self.gate.works(number, || self.remote.describe()) {
            self.hurry(false);
        }
    }

    /// These events are sent again: counts them if the target may already have them.
    pub(super) fn counts_unanswered(&self, had: TargetHad, events: usize) {
        if matches!(had, TargetHad::Gateway | TargetHad::Unknown) {
            self.unanswered.fetch_add(events as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn hurry(&self, anew: bool) {
        self.lines.lock().hurry(Instant::now(), anew);
        self.wake.notify_one();
    }

    pub(super) fn finish(&self) {
        self.lines.lock().finish();
        self.wake.notify_one();
    }

    /// Nothing is delivered from now on; waiting events are refused.
    pub(super) fn give_up(&self) {
        let refused = self.lines.lock().give_up();
        drop(refused);
        self.room.end();
    }

    pub(super) fn fail(&self, why: &str) {
        self.room.fail(SinkError::new(self.remote.describe(), why));
    }
}
