//! The workers that a policy may choose.

use std::sync::Arc;

use super::mailbox::Mailbox;
use crate::Actor;
use crate::pool::policy::{Member, Members};

/// The live workers, in order. Rebuilt when one has joined or gone.
pub(crate) struct LiveMembers<A: Actor, K> {
    pub(crate) members: Box<[Arc<Mailbox<A, K>>]>,
    /// The number of the change after which it was built.
    pub(crate) made_after: u64,
}

impl<A: Actor, K> Members for LiveMembers<A, K> {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn member(&self, place: usize) -> Member {
        let mailbox = &self.members[place];
        Member {
            slot: mailbox.slot,
            waiting: mailbox.waiting(),
            in_hand: mailbox.in_hand(),
            capacity: mailbox.capacity(),
        }
    }
}
