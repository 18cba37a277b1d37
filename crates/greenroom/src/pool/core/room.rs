//! Senders that wait for room: in the pool, and behind the key of their message.

use greenroom_queue::permits::{Closed, Refused};

use super::{Core, Key, backlog::InLine, backlog::stand_in_line, push::push_in_line};
use crate::{
    Actor,
    pool::{membership::mailbox::Mailbox, outgoing::OutgoingOf},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Waits for room in the pool. If less than a block becomes free, the watchdog serves the
    /// waiter.
    pub(crate) fn await_permit(&self) -> impl Future<Output = Result<(), Closed>> {
        let waits = || self.frame.clock.watchdog.call();
        self.queue.permits.take(self, self.goes_on_uncounted(), &waits)
    }
}

pub(super) async fn wait_for_permit<A: Actor, K: Key>(
    core: &Core<A, K>,
) -> Result<PoolPermit<'_, A, K>, Refused> {
    core.await_permit().await.map_err(|Closed| Refused::Closed)?;
    Ok(PoolPermit(Some(core)))
}

/// Queues a message whose permit has been taken, in a pool whose workers pull.
pub(crate) fn push_keyed<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
    waited: bool,
) -> Result<(), Refused> {
    let key = core.key(payload);
    let index = core.shard_of(&key, sender);
    push_in_line(core, index, payload, key, waited)
}

/// Waits for room in the pool, and behind the message's key.
pub(crate) async fn push_in_its_turn<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    let mut line: Option<InLine<'_, A, K>> = None;
    loop {
        let permit = wait_for_permit(core).await?;
        match push_keyed(core, payload, sender, line.is_some()) {
            Ok(()) => {
                permit.used();
                if let Some(line) = line {
                    line.used();
                }
                return Ok(());
            }
            Err(Refused::KeyFull) => drop(permit),
            Err(refused) => return Err(refused),
        }
        let place = line.get_or_insert_with(|| stand_in_line(core, payload));
        // The first in line checks once more: there may be room by now.
        if !std::mem::take(&mut place.alone) {
            place.woken().await;
        }
    }
}

/// A permit of the pool that is given back unless it is used, even if a key function or a policy
/// panics.
pub(super) struct PoolPermit<'a, A: Actor, K: Key>(pub(super) Option<&'a Core<A, K>>);

impl<A: Actor, K: Key> PoolPermit<'_, A, K> {
    pub(super) fn used(mut self) {
        self.0 = None;
    }
}

impl<A: Actor, K: Key> Drop for PoolPermit<'_, A, K> {
    fn drop(&mut self) {
        if let Some(core) = self.0 {
            core.queue.permits.give(1, core);
        }
    }
}

/// A place in a mailbox that is given back unless it is used.
pub(crate) struct MailboxPlace<'a, A: Actor, K>(pub(crate) Option<&'a Mailbox<A, K>>);

impl<A: Actor, K> MailboxPlace<'_, A, K> {
    pub(crate) fn used(mut self) {
        self.0 = None;
    }
}

impl<A: Actor, K> Drop for MailboxPlace<'_, A, K> {
    fn drop(&mut self) {
        if let Some(mailbox) = self.0 {
            mailbox.give_back();
        }
    }
}
