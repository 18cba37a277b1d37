//! What a worker has in flight. It lies outside the future that may panic or be dropped, and has
//! one way out.

use std::sync::{Arc, atomic::Ordering};

use crate::pool::{
    batch::hand::BatchEnd,
    core::Core,
    limits::Outcome,
    membership::{
        mailbox::Mailbox,
        slot_state::{KILLED, REST, SlotState},
    },
};
use crate::{Actor, Delivery, pool::pool_payload::Key};

mod batch;
mod fate;
mod measures;
mod presence;
pub(crate) mod refused;
mod rounds;
mod settle;
mod shares;
mod start;
mod state;
mod take;
mod withdrawn;
mod worker_context;

use measures::Measures;
use rounds::Rounds;
pub(crate) use state::{RunState, Source, Taken};
pub(crate) use worker_context::{Polls, WorkerContext};

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// In this order, so that what each message needs lies together, in as few cache lines as possible.
/// Each of a thousand workers that take turns has left the caches when it is polled.
#[repr(C)]
pub(crate) struct InFlight<A: Actor, K: Key> {
    pub(crate) worker: WorkerContext<A, K>,
    pub(crate) slot_state: Arc<SlotState>,
    pub(crate) rounds: Rounds,
    /// A message has been started whose outcome is not settled.
    pub(crate) in_hand: bool,
    /// The worker awaits something before it begins the message in hand: if it is killed there,
    /// nothing was attempted.
    pub(crate) begins_later: bool,
    /// A message that is attempted again is then to be alone in hand.
    alone: bool,
    /// What the last attempt says of the load of what its handler uses. For the pool's limits.
    pub(crate) outcome: Outcome,
    measures: Measures,
    pub(crate) delivery: DeliveryOf<A>,
    /// A copy for another attempt, if one may be asked for.
    pub(crate) spare: Option<A::Message>,
    /// The worker's own mailbox, once there has been something in it.
    mailbox: Option<Arc<Mailbox<A, K>>>,
    pub(crate) rare: Rare<A, K>,
}

/// What few workers have.
pub(crate) struct Rare<A: Actor, K: Key> {
    /// What becomes of a message that this worker, an adopted one, does not take. Named there
    /// alone: a program that adopts none has none of its code.
    pub(crate) put_back: Option<fn(&mut InFlight<A, K>)>,
    /// Messages of a batch that are to be attempted again, while the others are settled.
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
        self.give_up_place();
    }

    /// Settles the message in hand when the worker is dropped, and gives up its place. If the
    /// worker alone has been killed, or is to rest, the failure table decides; if its pool ends, or
    /// its runtime, the message is given back.
    fn let_go(&mut self) {
        // Pairs with the store in `end`: a stop that drops the worker has ended the pool before,
        // and its message is given back. Otherwise it would be retried where no worker is.
        let goes_on = !self.worker.core.frame.lifecycle.ended.load(Ordering::SeqCst)
            && self.slot_state.has(KILLED | REST);
        let end = if goes_on { BatchEnd::Killed } else { BatchEnd::Stopped };
        if self.in_hand && !self.end_batch(&end) {
            match goes_on {
                true => self.settle_kill(),
                false => self.return_message(),
            }
        }
        self.give_up_place();
    }
}

impl<A: Actor, K: Key> Drop for InFlight<A, K> {
    fn drop(&mut self) {
        self.let_go();
        self.leave();
        // It may end between its wake-up and the message that it was handed.
        self.worker.core.take_back_handed(self.worker.slot);
    }
}
