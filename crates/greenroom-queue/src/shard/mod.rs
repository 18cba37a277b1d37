//! A shard: a part of a pool's queue, with an inbox that senders fill and an outbox that
//! workers empty.
//!
//! ```text
//!  senders ──▶ inbox (lock 1) ══ swapped whole ══▶ outbox (lock 2) ──▶ workers, one message at a time
//!                                                  lanes, ready lanes, drain token
//! ```
//!
//! There are two locks, so that senders and workers meet only when the outbox has run empty; most
//! of the time, a worker's lock is its own cache line. Workers do not take messages in batches.
//! Messages that have not been started stay in the outbox, where any worker can take them: so
//! nothing has to be given back, and nothing waits behind a slow handler.
//!
//! # The drain token
//! In a keyed pool, only the holder of the token takes from the outbox, one message at a time, so
//! no message of a key can overtake another. The holder keeps the key that it has in hand in the
//! token. When its handler suspends, that key gets a lane and the token is passed on. When its
//! handler computes for longer than a tick, the watchdog does the same on its behalf
//! ([`revoke`](ShardOutbox::revoke)): the epoch tells the returning holder that it now runs a lane.
//!
//! # Urgent
//! Urgent messages stay in the inbox until they are started, or go to the front of the lane of
//! their key. A ready lane with an urgent message comes before the other lanes and before the
//! queue. A bit in the pool's map of urgent messages attracts workers from other shards. So
//! messages of one class and key never overtake each other, and a sender pays for classes only if
//! its message is urgent.
//!
//! # Scheduled
//! `inbox.scheduled` is true while a worker or sender is bound to look at the shard: its bit is set
//! in the pool's ready map, or, in a keyed pool, a worker holds its token or is looking. Two
//! workers may clear it (and, without keys, the bit with it): one that has seen the outbox and the
//! inbox empty, under both locks, and one that has just filled the outbox with a single message and
//! takes it under the same lock. The sender that sets it must set the bit. Lock order: outbox, then
//! inbox.
//!
//! # Lifted
//! A withdrawal examines messages under no lock, so it takes all waiting messages of the shard out
//! ([`lift`](Shard::lift)); those that stay come back before later ones
//! ([`set_down`](Shard::set_down)). Until then the inbox looks empty to workers (`inbox.lifted`),
//! because later messages would overtake. The shard stays scheduled, because the withdrawal
//! announces it afterwards. Lifted messages count as queued (`outbox.lifted`).

mod inbox;
mod lifted;
mod outbox;
mod ready_lanes;
#[cfg(test)]
mod tests;
mod token;
mod turns;
mod variety;

pub use inbox::{SenderTurn, ShardInbox};
pub use lifted::Lifted;
use lifted::{LiftedCount, hashes};
pub use outbox::{KeyChange, LONG_AGO, LOOK_AHEAD, ShardOutbox};
pub use ready_lanes::ReadyLanes;
pub use token::Token;
pub use turns::Turns;

use super::{
    backlog::{Backlog, KeyBounds},
    block_queue::BlockQueue,
    entry::Entry,
    lanes::LiftedLine,
    lock::{Lock, Locked},
    padded::Padded,
    payload::Payload,
};

/// A part of a pool's queue.
pub struct Shard<T: Payload, K> {
    /// The part that senders fill.
    pub inbox: Padded<Lock<ShardInbox<T, K>>>,
    /// The part that workers empty.
    pub outbox: Padded<Lock<ShardOutbox<T, K>>>,
}

type InboxOf<'a, T, K> = Locked<'a, ShardInbox<T, K>>;

/// The result of filling an outbox.
pub enum Refilled<T> {
    /// Only this message. It is already taken: the outbox is as empty as before.
    Last(T),
    /// Several messages, or urgent ones elsewhere.
    More,
}

impl<T: Payload, K> Shard<T, K> {
    /// An empty shard.
    pub fn new(turns: Turns, bounds: KeyBounds) -> Self {
        let (inbox, outbox) = (ShardInbox::new(turns, bounds), ShardOutbox::new());
        Self { inbox: Padded(Lock::new(inbox)), outbox: Padded(Lock::new(outbox)) }
    }

    /// Fills an empty outbox from the inbox. Returns false, and the shard is no longer scheduled,
    /// if both are empty. Urgent messages stay in the inbox, with later ones behind them, so the
    /// outbox may still be empty.
    pub fn refill(&self, outbox: &mut ShardOutbox<T, K>) -> bool {
        self.refill_or(outbox, &|| {})
    }

    /// Like `refill`, but calls `empty` if there is nothing, before any sender can schedule the
    /// shard again.
    pub fn refill_or(&self, outbox: &mut ShardOutbox<T, K>, empty: &dyn Fn()) -> bool {
        if !outbox.queue.is_empty() {
            return true;
        }
        match self.filled_inbox() {
            Ok(mut inbox) => inbox.hand_over(outbox),
            Err(_inbox) => {
                empty();
                return false;
            }
        }
        true
    }

    /// The inbox, if it has a message. If not (`Err`), the shard is no longer scheduled, and no
    /// sender can schedule it again while the inbox is held.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn filled_inbox(&self) -> Result<InboxOf<'_, T, K>, InboxOf<'_, T, K>> {
        let mut inbox = self.inbox.lock();
        if inbox.is_empty() {
            inbox.unschedule();
            return Err(inbox);
        }
        Ok(inbox)
    }

    /// Like `refill_or`, for a worker that takes the first message at once. If that is the last
    /// one, the shard is no longer scheduled, so that no second look is needed.
    pub fn refill_and_take(
        &self,
        outbox: &mut ShardOutbox<T, K>,
        empty: &dyn Fn(),
    ) -> Option<Refilled<Entry<T, K>>> {
        let mut inbox = match self.filled_inbox() {
            Ok(inbox) => inbox,
            Err(_inbox) => {
                empty();
                return None;
            }
        };
        if inbox.urgent.is_empty()
            && let Some(last) = inbox.queue.pop_only()
        {
            outbox.taken = outbox.taken.wrapping_add(1);
            inbox.uncounted.beyond = outbox.queued();
            inbox.unschedule();
            empty();
            return Some(Refilled::Last(last));
        }
        inbox.hand_over(outbox);
        Some(Refilled::More)
    }

    /// True if a key that has used up its quota need not yield, because all messages here are its
    /// own. It may then have another quota.
    pub fn is_all_of(&self, outbox: &mut ShardOutbox<T, K>, hash: u32) -> bool {
        if !outbox.variety.is_only(hash) || outbox.has_ready() {
            return false;
        }
        let inbox = self.inbox.lock();
        let is_alone = inbox.is_empty() || (inbox.urgent.is_empty() && inbox.variety.is_only(hash));
        if is_alone {
            outbox.streak.count = 1;
        }
        is_alone
    }

    /// Moves the messages of the inbox behind those of the outbox, to be examined together.
    pub fn refill_behind(&self, outbox: &mut ShardOutbox<T, K>) {
        let mut inbox = self.inbox.lock();
        if inbox.lifted {
            return;
        }
        let variety = inbox.variety.begin();
        outbox.variety = match (outbox.queue.is_empty(), inbox.queue.is_empty()) {
            (true, _) => variety,
            (_, true) => outbox.variety,
            _ => outbox.variety.and(variety),
        };
        outbox.queue.append(&mut inbox.queue);
        inbox.uncounted.beyond = outbox.queued();
    }

    /// Queues a message without a key that has waited for its retry. It goes to the front if at
    /// least one other message was taken since the last retry there; otherwise it goes behind all
    /// waiting messages. So messages that are retried at once take at most every other turn,
    /// however many they are.
    pub fn put_again(&self, outbox: &mut ShardOutbox<T, K>, entry: Entry<T, K>) {
        if outbox.may_put_first() {
            outbox.put_first = outbox.taken;
            return outbox.queue.push_front(entry);
        }
        if !self.inbox.lock().queue.is_empty() {
            self.refill_behind(outbox);
        }
        outbox.variety.is_mixed = true;
        outbox.queue.push_back(entry);
    }

    /// Takes out the waiting messages of the shard, to be examined under no lock. Returns `None` if
    /// there are none, or if they have already been taken out.
    #[expect(clippy::type_complexity, reason = "two parts, each of which has a name")]
    pub fn lift(
        &self,
        outbox: &mut ShardOutbox<T, K>,
    ) -> Option<(Lifted<T, K>, Vec<LiftedLine<T, K>>)> {
        let mut inbox = self.inbox.lock();
        let messages = outbox.queue.len() + outbox.lanes.queued() + inbox.queued();
        if messages == 0 || outbox.lifted.is_some() {
            return None;
        }
        let mut queue = std::mem::replace(&mut outbox.queue, BlockQueue::new());
        queue.append(&mut inbox.queue);
        let lifted = Lifted { queue, urgent: std::mem::take(&mut inbox.urgent) };
        let lines = outbox.lanes.lift();
        outbox.lifted = Some(Box::new(LiftedCount { messages, hashes: hashes(&lifted, &lines) }));
        (inbox.lifted, inbox.scheduled) = (true, true);
        inbox.uncounted.beyond = outbox.queued();
        Some((lifted, lines))
    }

    /// Puts back the messages of the queues that stay: before later messages, and behind messages
    /// that the holder of the token has given back. The messages of lanes come back after that.
    /// Returns true if there is an urgent message in the inbox.
    pub fn set_down(&self, outbox: &mut ShardOutbox<T, K>, stay: Lifted<T, K>) -> bool {
        let mut inbox = self.inbox.lock();
        outbox.lifted = None;
        inbox.lifted = false;
        let Lifted { mut queue, mut urgent } = stay;
        outbox.queue.append(&mut queue);
        outbox.variety.is_mixed = true;
        urgent.append(&mut inbox.urgent);
        inbox.urgent = urgent;
        inbox.has_urgent()
    }

    /// The outbox has changed other than by taking.
    pub fn note_outbox(&self, outbox: &ShardOutbox<T, K>) {
        self.inbox.lock().uncounted.beyond = outbox.queued();
    }

    /// Counts the waiting messages of each key, if they are not counted yet. The caller holds both
    /// locks.
    pub fn count<'a>(
        inbox: &mut ShardInbox<T, K>,
        outbox: &'a mut ShardOutbox<T, K>,
        bounds: KeyBounds,
    ) -> &'a mut Backlog {
        inbox.uncounted.counted = true;
        let backlog = match outbox.backlog.take() {
            Some(backlog) => backlog,
            None => Box::new(counted(inbox, outbox, Backlog::new(bounds))),
        };
        outbox.backlog.insert(backlog)
    }

    /// True if there are messages in the outbox or the inbox. If not, the shard is no longer
    /// scheduled, and `empty` is called before any sender can schedule it again.
    pub fn has_more_or(&self, outbox: &ShardOutbox<T, K>, empty: &dyn Fn()) -> bool {
        if !outbox.queue.is_empty() {
            return true;
        }
        match self.filled_inbox() {
            Ok(_) => true,
            Err(_inbox) => {
                empty();
                false
            }
        }
    }

    /// True if messages wait behind the holder of the token.
    pub fn has_waiting(&self, outbox: &ShardOutbox<T, K>) -> bool {
        !outbox.queue.is_empty() || !self.inbox.lock().is_empty()
    }

    /// Like `has_waiting`, but also true if a message is just arriving. Never waits for a lock.
    pub fn seems_to_have_waiting(&self, outbox: &ShardOutbox<T, K>) -> bool {
        !outbox.queue.is_empty() || self.inbox.try_lock().is_none_or(|inbox| !inbox.is_empty())
    }
}

/// A backlog with the waiting messages of each key.
fn counted<T: Payload, K>(
    inbox: &ShardInbox<T, K>,
    outbox: &ShardOutbox<T, K>,
    mut backlog: Backlog,
) -> Backlog {
    for entry in outbox.queue.iter() {
        backlog.count(entry);
    }
    for entry in inbox.queue.iter() {
        backlog.count(entry);
    }
    for entry in inbox.urgent.iter() {
        backlog.count(entry);
    }
    outbox.lanes.count_into(&mut backlog);
    if let Some(hash) = outbox.carried {
        backlog.count_one(hash);
    }
    if let Some(lifted) = &outbox.lifted {
        for hash in &lifted.hashes {
            backlog.count_one(*hash);
        }
    }
    backlog
}
