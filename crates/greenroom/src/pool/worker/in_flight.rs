//! The messages that a worker has in flight. They are outside the future that may panic or be
//! dropped, and leave in one way only.

use std::sync::{Arc, atomic::Ordering};

use crate::pool::{
    batch::hand::BatchEnd,
    core::{Core, serve::take_back_handed},
    limits::Outcome,
    membership::{
        mailbox::Mailbox,
        slot_state::{KILLED, REST, SlotState},
    },
    pool_payload::Key,
};
use crate::{Actor, Delivery};

mod batch;
mod fate;
mod measures;
mod presence;
pub(crate) mod refused;
mod rounds;
mod settle;
mod shares;
mod start;
pub(crate) mod state;
mod take;
mod withdrawn;
mod worker_context;

use measures::Measures;
use rounds::Rounds;
pub(crate) use state::{RunState, Source, Taken};
pub(crate) use worker_context::{Polls, WorkerContext};

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// The field order matters: what each message needs is together, in as few cache lines as possible.
/// The data of each of a thousand workers that take turns has left the caches when it is polled.
#[repr(C)]
pub(crate) struct InFlight<A: Actor, K: Key> {
    pub(crate) worker: WorkerContext<A, K>,
    pub(crate) slot_state: Arc<SlotState>,
    pub(crate) rounds: Rounds,
    /// A message has been started and is not settled.
    pub(crate) in_hand: bool,
    /// The worker awaits something before it starts the message in hand: if it is killed there,
    /// nothing was attempted.
    pub(crate) begins_later: bool,
    /// The retried message is to be alone in hand.
    alone: bool,
    /// The load that the last attempt found at the service that its handler uses. For the pool's
    /// limits.
    pub(crate) outcome: Outcome,
    measures: Measures,
    pub(crate) delivery: DeliveryOf<A>,
    /// A copy for a retry, if one may be requested.
    pub(crate) spare: Option<A::Message>,
    /// The worker's own mailbox, once it has been used.
    mailbox: Option<Arc<Mailbox<A, K>>>,
    pub(crate) rare: Rare<A, K>,
}

/// The parts that few workers have.
pub(crate) struct Rare<A: Actor, K: Key> {
    /// Handles a message that this worker, an adopted one, does not take. Named only there: a
    /// program that adopts none contains none of its code.
    pub(crate) put_back: Option<fn(&mut InFlight<A, K>)>,
    /// Messages of a batch that are to be retried, while the others are settled.
    deferred: Option<Vec<fate::Deferred<A, K>>>,
}

impl<A: Actor, K: Key> InFlight<A, K> {
    pub(crate) fn new(core: Arc<Core<A, K>>, worker: usize) -> Self {
        let mut delivery = Delivery::empty(core.frame.telemetry.coarse.start());
        if core.settings.derived.uses_handoff && !core.frame.telemetry.coarse.is_watched() {
            delivery.slot_state = Some(core.frame.membership.slots.at(worker).clone());
        }
        Self {
            slot_state: core.frame.membership.slots.at(worker).clone(),
            worker: WorkerContext {
                core,
                slot: worker,
                source: Source::None,
                run_state: RunState::Suspended,
                has_suspended: false,
                polls: None,
            },
            rounds: Rounds::new(worker),
            in_hand: false,
            begins_later: false,
            alone: false,
            outcome: Outcome::Done,
            measures: Measures::default(),
            delivery,
            spare: None,
            mailbox: None,
            rare: Rare { put_back: None, deferred: None },
        }
    }

    /// Settles the message that was in hand when the handler panicked, and gives up its place.
    pub(crate) fn panicked(&mut self, panic: String) {
        self.begins_later = false;
        if self.in_hand && !self.end_batch(&BatchEnd::Panicked(panic.clone())) {
            self.settle_panic(panic);
        }
        self.worker.give_up_place();
    }
}

impl<A: Actor, K: Key> Drop for InFlight<A, K> {
    /// Settles the message in hand when the worker is dropped, and gives up its place. If only the
    /// worker was killed, or is to rest, the failure table decides; if its pool or its runtime
    /// ends, the message is given back.
    fn drop(&mut self) {
        // Pairs with the store in `end`: a stop that drops the worker has ended the pool before,
        // and its message is given back. Otherwise it would be retried without a worker.
        let goes_on = !self.worker.core.frame.lifecycle.ended.load(Ordering::SeqCst)
            && self.slot_state.has(KILLED | REST);
        let end = if goes_on { BatchEnd::Killed } else { BatchEnd::Stopped };
        if self.in_hand && !self.end_batch(&end) {
            match goes_on {
                true => self.settle_kill(),
                false => self.return_message(),
            }
        }
        self.worker.give_up_place();
        self.worker.leave();
        // It may end between its wake-up and the message that it was handed.
        take_back_handed(&self.worker.core, self.worker.slot);
    }
}
