//! An event that was accepted and is not settled.

use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::sink::Outgoing;

/// An event that was accepted. It gives its room back when it is dropped.
#[derive(Debug)]
pub(super) struct WaitingEvent {
    pub(super) outgoing: Outgoing,
    pub(super) since: Instant,
    pub(super) bytes: usize,
    /// Its place in the order of acceptance. The queue gives it one.
    pub(super) number: u64,
    pub(super) past: PastRequests,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// What became of the requests that had an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PastRequests {
    /// How many there were.
    pub(super) made: u32,
    /// How many of them have failed for now.
    pub(super) failures: u32,
    /// How many requests the target had settled when the last of them failed.
    pub(super) settled: u64,
    /// How it goes on; none before the first.
    pub(super) resend: Option<Resend>,
}

/// How an event is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resend {
    /// Not before.
    pub(super) due: Instant,
    /// With those others of which this is the same: the number of the first of them.
    with: u64,
    /// It did not wait for its turn because the target worked again. Only once: one that fails
    /// after that fails of something else.
    hurried: bool,
}

impl WaitingEvent {
    /// It is sent again from then on, with the others that have the same `with`.
    pub(super) fn comes_back(&mut self, due: Instant, with: u64) {
        let hurried = self.past.resend.is_some_and(|resend| resend.hurried);
        self.past.resend = Some(Resend { due, with, hurried });
    }

    /// Whether both may be in one request, by what became of those before.
    pub(super) fn goes_with(&self, first: &Self, now: Instant) -> bool {
        match (self.past.resend, first.past.resend) {
            (None, None) => true,
            (Some(this), Some(first)) => this.with == first.with && this.due <= now,
            _ => false,
        }
    }

    /// The target may be well again: so it goes now, unless it has done so before. By another
    /// configuration, in any case.
    pub(super) fn hurry(&mut self, now: Instant, anew: bool) {
        if let Some(resend) = &mut self.past.resend
            && (anew || !resend.hurried)
        {
            resend.due = resend.due.min(now);
            resend.hurried = !anew;
        }
    }
}
