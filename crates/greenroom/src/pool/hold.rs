//! What a worker holds while it works. The hold lies outside the future that may panic or be
//! dropped, and has one way out.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    core::Core,
    limits::Outcome,
    mailbox::Mailbox,
    seat::{KILLED, REST, Seat},
    stats::Measurement,
};
use crate::{Actor, Delivery};

mod batch;
pub(crate) mod fate;
mod post;
mod presence;
mod refused;
mod settle;
mod start;
mod state;
mod take;
mod withdrawn;

pub(crate) use post::{Polls, Post};
pub(crate) use state::{Posture, Source, Taken};

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

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

    /// Settles the message that was in hand when the handler panicked, and gives up its place.
    pub(crate) fn panicked(&mut self, panic: String) {
        self.begins_later = false;
        if self.in_hand && !self.end_batch(&fate::BatchEnd::Panicked(panic.clone())) {
            self.settle_panic(panic);
        }
        self.give_up_place();
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
