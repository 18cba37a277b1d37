//! What a worker holds. How it takes messages, suspends, lies down and gets up is the product's; what settles a message is
//! played.

use std::{hash::Hash, sync::Arc};

use super::{core::Core, mailbox::Mailbox, seat::Seat};
use crate::{Actor, Class, delivery::Delivery, pool::stamp::Stamp, sync::Ordering};

#[path = "../../crates/greenroom/src/pool/hold/post.rs"]
mod post;
#[path = "../../crates/greenroom/src/pool/hold/presence.rs"]
mod presence;
#[path = "../../crates/greenroom/src/pool/hold/rounds.rs"]
mod rounds;
#[path = "../../crates/greenroom/src/pool/hold/state.rs"]
mod state;
#[path = "../../crates/greenroom/src/pool/hold/take.rs"]
mod take;

pub(crate) use post::Post;
use rounds::Rounds;
pub(crate) use state::{Posture, Source, Taken};

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

pub(crate) struct Hold<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    pub(crate) post: Post<A, K>,
    pub(crate) seat: Arc<Seat>,
    pub(crate) rounds: Rounds,
    pub(crate) delivery: DeliveryOf<A>,
    mailbox: Option<Arc<Mailbox<A, K>>>,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    pub(crate) fn new(core: &Arc<Core<A, K>>, worker: usize) -> Self {
        Self {
            seat: core.membership.seats.at(worker).clone(),
            post: Post {
                core: core.clone(),
                worker,
                source: Source::None,
                posture: Posture::Suspended,
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
        let started = &self.seat.started;
        started.store(started.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Taken::InHand
    }

    /// No message is withdrawn once it was taken.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn still_starts(&self) -> bool {
        true
    }
}
