//! The bound on messages that are accepted and not started, changed while the pool runs.
//!
//! Accepted messages are not touched, so nothing is lost and no order changes. If the bound grows,
//! waiting senders get the new room, first come, first served. If it shrinks below the queue, no
//! sender gets a place until enough messages have been started.

use std::sync::atomic::Ordering;

use super::AnyCore;
use crate::{
    PoolEvent,
    pool::AdminError,
    size::{Inbox, MAX_CAPACITY},
};

/// The bound, as it was last set.
pub(crate) fn inbox(pool: &dyn AnyCore) -> Inbox {
    match pool.frame().membership.mailbox_each.load(Ordering::Relaxed) {
        0 => Inbox::InAll(pool.permits().capacity()),
        each => Inbox::PerWorker(each),
    }
}

/// Sets another total bound: from now on it does not follow the size.
pub(crate) fn set_capacity(pool: &dyn AnyCore, to: usize) -> Result<(), AdminError> {
    let member_list = pool.frame().membership.members.lock();
    pool.frame().lifecycle.check_running()?;
    if !(1..=MAX_CAPACITY).contains(&to) {
        return Err(AdminError::CapacityOutOfRange { asked: to, most: MAX_CAPACITY });
    }
    pool.frame().membership.mailbox_each.store(0, Ordering::Relaxed);
    let from = pool.permits().capacity();
    pool.hold_at_most(to);
    drop(member_list);
    pool.serve_waiters();
    if from != to {
        pool.frame().notify(PoolEvent::CapacityChanged { from, to });
    }
    Ok(())
}

/// The bound follows the size, unless it was set in total. Called under the lock of the members.
pub(crate) fn size_changed(pool: &dyn AnyCore, size: usize) {
    let each = pool.frame().membership.mailbox_each.load(Ordering::Relaxed);
    if each > 0 {
        pool.hold_at_most(Inbox::PerWorker(each).capacity(size));
    }
}
