//! The workers that a policy may choose.

use std::sync::Arc;

use super::mailbox::Mailbox;
use crate::Actor;
use crate::pool::policy::{Member, Members};

/// The live workers, in order. Made anew when one has come or gone.
pub(crate) struct LiveMembers<A: Actor, K> {
    pub(crate) members: Box<[Arc<Mailbox<A, K>>]>,
    /// Which change it was made after.
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
