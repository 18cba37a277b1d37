//! What a worker holds. How it takes messages, suspends, parks and is woken is the product's; what
//! settles a message is played.

use std::sync::Arc;

use greenroom_queue::{stamp::Stamp, sync::Ordering};

use crate::pool::{
    core::Core,
    membership::{mailbox::Mailbox, slot_state::SlotState},
    pool_payload::Key,
};
use crate::{Actor, Class, delivery::Delivery};

#[path = "../../crates/greenroom/src/pool/worker/in_flight/presence.rs"]
mod presence;
#[path = "../../crates/greenroom/src/pool/worker/in_flight/rounds.rs"]
mod rounds;
#[path = "../../crates/greenroom/src/pool/worker/in_flight/state.rs"]
mod state;
#[path = "../../crates/greenroom/src/pool/worker/in_flight/take.rs"]
mod take;
#[path = "../../crates/greenroom/src/pool/worker/in_flight/worker_context.rs"]
mod worker_context;

use rounds::Rounds;
pub(crate) use state::{RunState, Source, Taken};
pub(crate) use worker_context::WorkerContext;

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

pub(crate) struct InFlight<A: Actor, K: Key> {
    pub(crate) worker: WorkerContext<A, K>,
    pub(crate) slot_state: Arc<SlotState>,
    pub(crate) rounds: Rounds,
    pub(crate) delivery: DeliveryOf<A>,
    mailbox: Option<Arc<Mailbox<A, K>>>,
}

impl<A: Actor, K: Key> InFlight<A, K> {
    pub(crate) fn new(core: &Arc<Core<A, K>>, worker: usize) -> Self {
        Self {
            slot_state: core.frame.membership.slots.at(worker).clone(),
            worker: WorkerContext {
                core: core.clone(),
                slot: worker,
                source: Source::None,
                run_state: RunState::Suspended,
                has_suspended: false,
                polls: None,
            },
            // All begin at the same shard, where they meet.
            rounds: Rounds::new(0),
            delivery: Delivery {
                message: None,
                extra: None,
                class: Class::Normal,
                stamp: Stamp::default(),
            },
            mailbox: None,
        }
    }

    /// The message in the delivery gives up its permit.
    fn start(&mut self) -> Taken {
        self.start_next()
    }

    fn start_next(&mut self) -> Taken {
        let started = &self.slot_state.started;
        started.store(started.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Taken::InHand
    }

    /// No pool has shares here.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn take_of_shares(&mut self) -> Taken {
        Taken::Nothing
    }

    /// No message is withdrawn once it was taken.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn still_starts(&self) -> bool {
        true
    }
}
