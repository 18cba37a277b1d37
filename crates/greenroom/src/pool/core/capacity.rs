//! The bound on messages that are accepted and not started, changed while the pool runs.
//!
//! Accepted messages are not touched, so nothing is lost and no order changes. If the bound grows,
//! waiting senders get the new room, first come, first served. If it shrinks below the queue, no
//! sender gets a place until enough messages have been started.

use std::{hash::Hash, sync::atomic::Ordering};

use super::{Core, credit_for};
use crate::{
    Actor, PoolEvent,
    pool::AdminError,
    size::{Inbox, MAX_CAPACITY},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The bound, as it was said last.
    pub(crate) fn inbox(&self) -> Inbox {
        match self.membership.mailbox_each.load(Ordering::Relaxed) {
            0 => Inbox::InAll(self.queue.permits.capacity()),
            each => Inbox::PerWorker(each),
        }
    }

    /// Another bound, in all: from now on it does not follow the size.
    pub(crate) fn set_capacity(&self, to: usize) -> Result<(), AdminError> {
        let member_list = self.membership.members.lock();
        self.lifecycle.check_running()?;
        if !(1..=MAX_CAPACITY).contains(&to) {
            return Err(AdminError::CapacityOutOfRange { asked: to, most: MAX_CAPACITY });
        }
        self.membership.mailbox_each.store(0, Ordering::Relaxed);
        let from = self.queue.permits.capacity();
        self.hold_at_most(to);
        drop(member_list);
        self.serve_waiters();
        if from != to {
            self.notify(PoolEvent::CapacityChanged { from, to });
        }
        Ok(())
    }

    /// The bound follows the size, if it was not given in all. Under the lock of the members.
    pub(super) fn size_changed(&self, size: usize) {
        let each = self.membership.mailbox_each.load(Ordering::Relaxed);
        if each > 0 {
            self.hold_at_most(Inbox::PerWorker(each).capacity(size));
        }
    }

    /// Under the lock of the members. The caller serves waiters when it has released that.
    fn hold_at_most(&self, capacity: usize) {
        self.queue.permits.resize(capacity, self);
        self.share_out(capacity);
        self.queue.credit.store(credit_for(capacity, self.queue.shards.len()), Ordering::Relaxed);
    }
}
