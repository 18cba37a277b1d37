//! What a worker holds while it works. The hold lies outside the future that may panic or be
//! dropped, and has one way out.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    core::Core,
    lanes::LaneId,
    limits::Outcome,
    mailbox::Mailbox,
    seat::{KILLED, REST, Seat},
    stats::Measurement,
};
use crate::{Actor, Delivery};

mod batch;
pub(crate) mod fate;
mod refused;
mod settle;
mod take;
mod withdrawn;

/// The source of the message in hand, and what the worker owns because of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// Nowhere any more: the message stands alone.
    None,
    /// The queue of a shard without order; `alone` if the worker is marked as attending it.
    Shared { index: usize, alone: bool },
    /// As `Shared`, between two runs: no message is in hand.
    Attending { index: usize, alone: bool },
    /// The head of a keyed shard, with its drain token.
    Head { index: usize, epoch: u64, hash: Option<u32>, run: u32 },
    /// The worker's own mailbox.
    Desk,
    /// A lane that this worker runs; `run` messages of it in a row.
    Lane { index: usize, id: LaneId, run: u32 },
}

impl Source {
    /// The keyed shard whose queue the worker drained.
    fn shard_drained(self) -> Option<usize> {
        match self {
            Self::Head { index, .. } => Some(index),
            _ => None,
        }
    }
}

/// What a look for work came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A message is in hand.
    InHand,
    /// A message was settled without being handled.
    Skipped,
    /// There is no work, and the worker has no place any more.
    Nothing,
}

/// Whether the worker counts as awake, and how it came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posture {
    Awake,
    /// Polled, and not counted as awake: its handler has waited, as handlers here usually
    /// do. Its only duty is to look for ready work when it lies down. Others rely on the
    /// workers that count.
    Uncounted,
    /// Awake, and stepping aside once before it lies down.
    Lingering,
    /// In the idle list, or just taken off it by a waker. It may serve a caller there.
    LyingDown,
    /// In a suspended handler, or between restarts.
    Suspended,
}

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// The state that changes when a worker's handler suspends, and nothing else, so that a handler is
/// polled with this beside it while the rest of the hold is lent out.
#[repr(C)]
pub(crate) struct Post<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    pub(crate) core: Arc<Core<A, K>>,
    pub(crate) worker: usize,
    pub(crate) posture: Posture,
    /// A handler has, since this was last reset.
    pub(crate) has_suspended: bool,
    pub(crate) source: Source,
    /// Present if the times of the message in hand are measured.
    pub(crate) polls: Option<Polls>,
}

/// How long the handler of a measured message has computed: the time inside its polls. The time
/// that it waited says nothing about how many messages may be measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polls {
    /// When the one at hand began, in nanoseconds.
    since: u64,
    /// Those before it.
    before: Option<Duration>,
}

impl Polls {
    fn begin(now: u64) -> Self {
        Self { since: now, before: None }
    }

    /// The handler suspends.
    pub(crate) fn pause(&mut self, now: u64) {
        self.before = Some(self.computed(now));
    }

    /// It is polled again.
    pub(crate) fn go_on(&mut self, now: u64) {
        self.since = now;
    }

    fn computed(&self, now: u64) -> Duration {
        let at_hand = Duration::from_nanos(now.saturating_sub(self.since));
        self.before.unwrap_or_default() + at_hand
    }

    fn has_waited(&self) -> bool {
        self.before.is_some()
    }
}

/// In this order, so that what each message needs lies together, in as few cache lines as possible.
/// Each of a thousand workers that take turns has left the caches when it is polled.
#[repr(C)]
pub(crate) struct Hold<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    pub(crate) post: Post<A, K>,
    pub(crate) seat: Arc<Seat>,
    /// Urgent messages taken in a row, as long as there are some.
    urgent_run: u32,
    /// Messages from its own mailbox taken in a row.
    mail_run: u32,
    /// Messages taken in this run without keys, after the first.
    run: u32,
    /// How many there may be.
    longest_run: u32,
    /// Runs begun.
    timed: u32,
    /// Runs in the shard that it attends, one after the other.
    runs: u32,
    /// Which shard it looks at first.
    pub(crate) cursor: u32,
    /// A message has been started whose outcome is not settled.
    pub(crate) in_hand: bool,
    /// The worker awaits something before it begins the message in hand: if it is killed there,
    /// nothing was attempted.
    pub(crate) begins_later: bool,
    /// A message that is attempted again is then to be alone in hand.
    alone: bool,
    /// It was woken for no shard in particular, and may join another worker at one.
    pub(crate) join: bool,
    /// How often more it looks first where a key gave way, whatever it finds.
    looks_back: u8,
    /// What the last attempt says of the load of what its handler uses. For the pool's limits.
    pub(crate) outcome: Outcome,
    /// Present if the times of the message in hand are measured.
    measurement: Option<Measurement>,
    pub(crate) delivery: DeliveryOf<A>,
    /// A copy for another attempt, if one may be asked for.
    pub(crate) spare: Option<A::Message>,
    /// The worker's own mailbox, once there has been something in it.
    mailbox: Option<Arc<Mailbox<A, K>>>,
    /// When the run began, if it is timed.
    timed_since: Option<Instant>,
    /// Messages of a batch that are to be attempted again, while the others are settled.
    deferred: Option<Vec<fate::Deferred<A, K>>>,
    /// The measurements of a batch, whose key others of it may still need.
    sample: Option<(u32, Duration)>,
    /// Measured messages with keys.
    unfed: u32,
    /// With keys: the shard whose queue has run dry. Valid if the last look for the next message of
    /// a run found none.
    ran_dry: Option<usize>,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    pub(crate) fn new(core: Arc<Core<A, K>>, worker: usize) -> Self {
        let mut delivery = Delivery::empty(core.telemetry.coarse.start());
        if core.settings.derived.serves_at_hatch && core.settings.config.handling.calls_in_place {
            delivery.hatch = Some(core.handoff.hatch(worker).clone());
        }
        if core.settings.derived.serves_at_hatch && !core.telemetry.coarse.is_watched() {
            delivery.seat = Some(core.membership.seats.at(worker).clone());
        }
        Self {
            seat: core.membership.seats.at(worker).clone(),
            post: Post {
                core,
                worker,
                source: Source::None,
                posture: Posture::Suspended,
                has_suspended: false,
                polls: None,
            },
            mailbox: None,
            urgent_run: 0,
            mail_run: 0,
            delivery,
            deferred: None,
            alone: false,
            spare: None,
            in_hand: false,
            begins_later: false,
            measurement: None,
            sample: None,
            unfed: 0,
            outcome: Outcome::Done,
            run: 0,
            longest_run: 0,
            timed_since: None,
            timed: 0,
            join: false,
            runs: 0,
            cursor: worker as u32 % 64,
            looks_back: 0,
            ran_dry: None,
        }
    }

    /// True when the worker is to start no further message.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.post.core.lifecycle.ended.load(Ordering::Acquire)
            || (self.seat.has_orders() && self.seat.starts_nothing())
    }

    /// Settles the message that was in hand when the handler panicked, and gives up its place.
    pub(crate) fn panicked(&mut self, panic: String) {
        self.begins_later = false;
        if self.in_hand && !self.end_batch(&fate::BatchEnd::Panicked(panic.clone())) {
            self.settle_panic(panic);
        }
        self.give_up_place();
    }

    /// Handlers usually waited when the last one of this worker went on, and do not any more: it
    /// counts as awake again. So does a worker that drains a shard, usual or not: the watch looks
    /// at its token only if it sees a worker awake.
    #[inline]
    pub(crate) fn counts_again(&mut self) {
        if self.post.posture == Posture::Uncounted
            && (!self.post.core.queue.wake.waits()
                || matches!(self.post.source, Source::Head { .. }))
        {
            self.wake_up();
        }
    }

    pub(crate) fn give_up_place(&mut self) {
        let source = std::mem::replace(&mut self.post.source, Source::None);
        self.post.core.release(self.post.worker, source);
    }

    /// Settles the message in hand when the worker is dropped, and gives up its place. If the
    /// worker alone has been killed, or is to rest, the failure table decides; if its pool ends, or
    /// its runtime, the message is given back.
    fn let_go(&mut self) {
        // Pairs with the store in `end`: a stop that drops the worker has ended the pool before,
        // and its message is given back. Otherwise it would be retried where no worker is.
        let goes_on =
            !self.post.core.lifecycle.ended.load(Ordering::SeqCst) && self.seat.has(KILLED | REST);
        let end = if goes_on { fate::BatchEnd::Killed } else { fate::BatchEnd::Stopped };
        if self.in_hand && !self.end_batch(&end) {
            match goes_on {
                true => self.settle_kill(),
                false => self.return_message(),
            }
        }
        self.give_up_place();
    }

    pub(crate) fn wake_up(&mut self) {
        self.post.core.note_time();
        self.post.core.queue.wake.enter(&self.post.core.clock.bell);
        self.post.posture = Posture::Awake;
    }

    /// The caller has no message in hand and is not polled for a while.
    pub(crate) fn rest(&mut self) {
        let (wake, bell) = (&self.post.core.queue.wake, &self.post.core.clock.bell);
        match std::mem::replace(&mut self.post.posture, Posture::Suspended) {
            // A handler may panic when it is dropped, while it is suspended.
            Posture::Suspended => {}
            Posture::LyingDown => {
                wake.forget(self.post.worker, bell);
                self.post.core.take_back_handed(self.post.worker);
            }
            Posture::Awake | Posture::Lingering => wake.leave(bell),
            Posture::Uncounted => wake.pass_on(bell),
        }
        self.post.core.serve_waiters();
        self.post.core.lifecycle.tell_progress();
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Hold<A, K> {
    fn drop(&mut self) {
        self.let_go();
        match self.post.posture {
            Posture::Awake => self.post.core.queue.wake.leave(&self.post.core.clock.bell),
            Posture::Lingering => {
                self.post.core.queue.wake.look_again();
                self.post.core.queue.wake.leave(&self.post.core.clock.bell);
            }
            Posture::LyingDown => {
                self.post.core.queue.wake.forget(self.post.worker, &self.post.core.clock.bell);
                self.post.core.take_back_handed(self.post.worker);
            }
            Posture::Uncounted => self.post.core.queue.wake.pass_on(&self.post.core.clock.bell),
            Posture::Suspended if self.post.core.queue.wake.any_ready() => {
                self.post.core.queue.wake.one(&self.post.core.clock.bell);
            }
            Posture::Suspended => {}
        }
    }
}
