//! An event on its way through a pool, its attempts so far, and how one of them failed.

use std::{sync::Arc, time::Duration};

use greenroom::{Address, Backoff};
use tokio::time::Instant;

use super::{
    circuit::Streak,
    loopback::Reserved,
    origin::Origin,
    produced::Produced,
    recording::Recording,
    share_rooms::{ShareName, ShareRoom, ShareRooms},
};
use crate::{
    engine::account::order_audit::OrderLine,
    event::Event,
    handler::{Failure, Settlement},
    router::Retry,
    settlement::Ack,
};

/// The way into a pool.
pub(crate) type JobAddress = Address<PoolJob, (), BusError>;

/// An event on its way through a pool.
pub(crate) struct PoolJob {
    pub(crate) event: Event,
    /// The place of its handler.
    handler: u32,
    /// Its line; `None` for an event without order.
    pub(crate) line: Option<OrderLine>,
    /// Its origin.
    pub(crate) origin: Origin,
    /// Attempts so far, the one in hand included; not those that its handler gave back unstarted.
    pub(crate) attempts: u32,
    /// Its settlement; dropped with the job, it refuses the event.
    pub(crate) ack: Ack,
    /// State that few events have. In a box of its own, because a job is moved several times,
    /// mostly from one core to another.
    extras: Option<Box<Extras>>,
}

/// State that few jobs have.
#[derive(Default)]
pub(crate) struct Extras {
    /// Room on the loopback for the events that its handler may send back.
    pub(crate) reserved: Option<Reserved>,
    /// Its attempts that failed.
    pub(crate) tries: Tries,
    /// Why it has parked its key, if it has.
    pub(crate) parked_for: Option<Arc<str>>,
    /// With its handler, if that settles it itself.
    pub(crate) manual: Option<Settlement>,
    /// Receives the results of its handler, instead of the outputs.
    pub(crate) produced: Option<Arc<Produced>>,
    /// Whether its spans are recorded, once that is decided.
    pub(crate) recording: Recording,
    /// Its share.
    pub(crate) share: Option<Arc<str>>,
    /// The room that it takes of what its share may have in its pool.
    pub(crate) room: Option<Box<ShareRoom>>,
}

const _: () = assert!(size_of::<PoolJob>() <= 128, "a job is two cache lines");

impl PoolJob {
    pub(crate) fn new(
        event: Event,
        handler: usize,
        line: Option<OrderLine>,
        origin: Origin,
        ack: Ack,
    ) -> Self {
        let handler = handler as u32;
        Self { event, handler, line, origin, attempts: 0, ack, extras: None }
    }

    /// Its share, if it has one.
    pub(crate) fn share(&self) -> Option<&Arc<str>> {
        self.extras()?.share.as_ref()
    }

    /// It is a part of this share.
    #[inline]
    pub(crate) fn set_share(&mut self, share: Option<Arc<str>>) {
        if share.is_some() {
            self.extras_mut().share = share;
        }
    }

    /// The room that it takes, if its pool has shares.
    pub(crate) fn room(&self) -> Option<&ShareRoom> {
        self.extras()?.room.as_deref()
    }

    /// Gives it room in its pool, if its share has some. False if not.
    pub(crate) fn enters(&mut self, rooms: &Arc<ShareRooms>) -> bool {
        let share = self.share().cloned();
        rooms.enters(&mut self.extras_mut().room, share)
    }

    /// It waits beside its pool, as one of this share.
    pub(crate) fn waits_beside(&mut self, rooms: &Arc<ShareRooms>, share: ShareName) {
        let room = &mut self.extras.get_or_insert_default().room;
        rooms.waits(room, share, self.line.as_ref());
    }

    /// The place of its handler.
    pub(crate) fn handler(&self) -> usize {
        self.handler as usize
    }

    /// Its rare state.
    pub(crate) fn extras(&self) -> Option<&Extras> {
        self.extras.as_deref()
    }

    /// Like [`extras`](Self::extras), mutable, if present.
    pub(crate) fn present_extras(&mut self) -> Option<&mut Extras> {
        self.extras.as_deref_mut()
    }

    /// Like [`extras`](Self::extras), mutable, created if absent.
    pub(crate) fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// With room on the way back.
    pub(crate) fn with_reserved(mut self, reserved: Option<Reserved>) -> Self {
        if reserved.is_some() {
            self.extras_mut().reserved = reserved;
        }
        self
    }

    /// For a caller that receives the results of its handler.
    pub(crate) fn with_produced(mut self, produced: Arc<Produced>) -> Self {
        self.extras_mut().produced = Some(produced);
        self
    }

    /// Its parts, once it is handled.
    pub(crate) fn into_parts(self) -> (Handled, Ack, Option<Box<Extras>>) {
        let handler = self.handler();
        let Self { event, line, origin, attempts, ack, extras, .. } = self;
        (Handled { event, handler, line, origin, attempts }, ack, extras)
    }
}

/// The rest of a handled job, apart from its settlement.
pub(crate) struct Handled {
    pub(crate) event: Event,
    pub(crate) handler: usize,
    pub(crate) line: Option<OrderLine>,
    pub(crate) origin: Origin,
    pub(crate) attempts: u32,
}

/// A failed attempt, as the pool's failure policy and dead letters see it.
#[derive(Debug)]
pub(crate) struct BusError {
    pub(crate) failure: Failure,
    /// The handler is in outage: the attempt does not count.
    pub(crate) waits: Option<Duration>,
    /// Between attempts.
    pub(crate) backoff: Backoff,
    /// Attempts that failed and count, this one included.
    pub(crate) failures: u32,
    /// No other is made.
    pub(crate) is_last: bool,
    /// Its partition was taken away, or a stop came: it is given up, whatever is left of its
    /// attempts.
    pub(crate) is_given_up: bool,
    /// Its share, and for how long nothing more of it is attempted.
    pub(crate) holds_share: Option<Box<(Arc<str>, Duration)>>,
}

/// The failed attempts of one event, since it was taken or since an operator resumed it.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// Attempts that failed and count.
    failures: u32,
    /// Since when they do.
    since: Option<Instant>,
    /// The failures of its handler among which its first one was.
    streak: Option<Streak>,
    /// Its last attempt is made then, or as soon as no other event can come that would show which
    /// side is to blame.
    held_until: Option<Instant>,
    /// The error of the last one, counted or not.
    last_error: Option<Box<str>>,
}

impl Tries {
    /// An attempt has failed among these failures of its handler.
    pub(crate) fn failed(&mut self, streak: Streak, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.since.get_or_insert(now);
        self.streak.get_or_insert(streak);
    }

    /// An outage was to blame: nothing that failed so far counts.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self { last_error: self.last_error.take(), ..Self::default() };
    }

    /// The error of an attempt.
    pub(crate) fn note(&mut self, error: &str) {
        self.last_error = Some(error.into());
    }

    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// The cause is not known yet: the next attempt, which is the last, waits until then.
    pub(crate) fn hold(&mut self, until: Instant) {
        self.held_until = Some(until);
    }

    /// How long the next attempt still waits, if other events may come in that time.
    pub(crate) fn held_for(&self, others_may_come: impl FnOnce() -> bool) -> Option<Duration> {
        let left = self.held_until?.saturating_duration_since(Instant::now());
        (!left.is_zero() && others_may_come()).then_some(left)
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// True if its attempts have failed for as long as they may.
    pub(crate) fn is_over(&self, total: Option<Duration>, now: Instant) -> bool {
        let Some((total, since)) = total.zip(self.since) else { return false };
        now.duration_since(since) >= total
    }

    /// Attempts that remain after one that fails now.
    pub(crate) fn left(&self, retry: Retry, now: Instant) -> u32 {
        if self.is_over(retry.total, now) {
            return 0;
        }
        retry.attempts.saturating_sub(self.failures.saturating_add(1))
    }

    /// The failures of its handler among which its first one was.
    pub(crate) fn streak(&self) -> Option<Streak> {
        self.streak
    }
}
