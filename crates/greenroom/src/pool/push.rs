//! The steps of a pool that pushes, which a pulling pool omits.
//!
//! Only the builder methods for such a pool mention an implementation: a program whose pools pull
//! contains none of its code.

use std::{sync::Arc, time::Duration};

use greenroom_queue::permits::Refused;

use super::{
    frame::KeysTo, membership::mailbox::Mailbox, outgoing::OutgoingOf, pool_payload::Queued,
    sticky::Moves,
};
use crate::{Actor, address::vtable::BoxFuture};

/// For the pool `C`, whose workers are `A`.
pub(crate) trait Push<A: Actor, K, C>: Send + Sync {
    /// Gives a message to the chosen worker, or returns the reason why not.
    fn try_place(&self, pool: &C, payload: &mut OutgoingOf<A>, sender: u32) -> Result<(), Refused>;

    /// Like `try_place`, for a message whose permit of the pool has been taken; its worker may be
    /// full. The permit is used unless there is an error.
    fn place_permitted(
        &self,
        pool: &C,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused>;

    /// Like `try_place`, but waits for room.
    fn place_waiting<'a>(
        &self,
        pool: &'a C,
        payload: &'a mut OutgoingOf<A>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), Refused>>;

    /// Like `try_place`, but the oldest waiting message is evicted.
    fn make_room(&self, pool: &C, payload: &mut OutgoingOf<A>, sender: u32) -> Result<(), Refused>;

    /// Workers have joined: held messages may get one.
    fn ask_again(&self, _pool: &C) {}

    /// True if a message is for this worker, or soon will be. Runs user code.
    fn is_assigned_to(&self, _pool: &C, _payload: &OutgoingOf<A>, _slot: usize) -> bool {
        false
    }

    /// The steps that only a sticky pool has.
    fn tables(&self) -> Option<&dyn Tables<A, K, C>> {
        None
    }
}

/// The table slots of a sticky pool, which move between its workers.
pub(crate) trait Tables<A: Actor, K, C>: Send + Sync {
    /// A worker takes its share of the keys, unless it has it; or its keys go to others, or are
    /// held until there are some.
    fn move_keys(&self, pool: &C, slot: usize, to: KeysTo) -> Migrated<A, K>;

    /// Messages that were taken out to be examined are back: deferred moves are made now.
    fn migrate_deferred(&self, pool: &C, moves: &mut Moves, migrated: &mut Migrated<A, K>);

    /// Wakes the workers and senders that a move concerns. Under no lock.
    fn migrated(&self, pool: &C, migrated: Migrated<A, K>);

    /// The worker in this slot has nothing in hand: waiting moves continue.
    fn hand_over(&self, pool: &C, slot: usize);

    /// Parks the message in hand of this worker for a retry, at the front of its mailbox, if it has
    /// a tag.
    fn park(
        &self,
        pool: &C,
        slot: usize,
        entry: Queued<A, K>,
        after: Duration,
    ) -> Result<(), Queued<A, K>>;

    /// The first message of a table slot is due.
    fn wake_tag(&self, pool: &C, tag: u32);

    /// Reports, once, that messages are held because this worker does not finish its
    /// message in hand.
    fn notify_held(&self, pool: &C, slot: u32);

    /// The number of messages that wait to move to another worker once a worker has finished its
    /// message in hand.
    fn held_for_others(&self, pool: &C) -> usize;
}

/// The rest of a move of table slots, for when no lock is held.
#[must_use = "workers and senders wait for it"]
pub(crate) struct Migrated<A: Actor, K> {
    /// Mailboxes with new messages, or with room.
    pub(crate) touched: Vec<Arc<Mailbox<A, K>>>,
    /// Workers whose messages in hand others wait for.
    pub(crate) holding: Vec<u32>,
}

impl<A: Actor, K> Default for Migrated<A, K> {
    fn default() -> Self {
        Self { touched: Vec::new(), holding: Vec::new() }
    }
}
