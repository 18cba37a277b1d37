//! The steps of a pool that pushes, which a pulling pool omits.
//!
//! Only the builder methods for such a pool mention an implementation: a program whose pools pull
//! contains none of its code.

use std::{sync::Arc, time::Duration};

use greenroom_queue::permits::Refused;

use super::{
    membership::mailbox::Mailbox, outgoing::OutgoingOf, pool_payload::Queued, sticky::Moves,
};
use crate::{Actor, address::vtable::BoxFuture};

/// For the pool `C`, whose workers are `A`. Table slots exist only in sticky pools.
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

    /// A worker takes its share of the keys, unless it has it.
    fn takes_keys(&self, _pool: &C, _slot: usize) -> Migrated<A, K> {
        Migrated::default()
    }

    /// The keys of a worker go to others, or are held until there are some.
    fn gives_keys(&self, _pool: &C, _slot: usize) -> Migrated<A, K> {
        Migrated::default()
    }

    /// Messages that were taken out to be examined are back: deferred moves are made now.
    fn migrate_deferred(&self, _pool: &C, _moves: &mut Moves, _migrated: &mut Migrated<A, K>) {}

    /// Wakes the workers and senders that a move concerns. Under no lock.
    fn migrated(&self, _pool: &C, _migrated: Migrated<A, K>) {}

    /// The worker in this slot has nothing in hand: waiting moves continue. Returns false if there
    /// are none.
    fn hand_over(&self, _pool: &C, _slot: usize) -> bool {
        false
    }

    /// Parks the message in hand of this worker for a retry, at the front of its mailbox, if it has
    /// a tag.
    fn park(
        &self,
        _pool: &C,
        _slot: usize,
        entry: Queued<A, K>,
        _after: Duration,
    ) -> Result<(), Queued<A, K>> {
        Err(entry)
    }

    /// The first message of a table slot is due.
    fn wake_tag(&self, _pool: &C, _tag: u32) {}

    /// Reports, once, that messages are held because this worker does not finish its
    /// message in hand.
    fn notify_held(&self, _pool: &C, _slot: u32) {}

    /// The number of messages that wait to move to another worker once a worker has finished its
    /// message in hand.
    fn held_for_others(&self, _pool: &C) -> usize {
        0
    }
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
