//! The part of a shard that senders fill.

use std::collections::VecDeque;

use super::{outbox::ShardOutbox, turns::Turns, variety::Variety};
use crate::{
    backlog::KeyBounds, block_queue::BlockQueue, deque::Deque, entry::Entry, offer::Offer,
    payload::Payload, stamp::Stamp,
};

/// The part that senders fill, under the first lock. The field order matters: the fields that a
/// sender writes on its [fast path](Self::push_fast) are in two cache lines, and the lock is at the
/// start of the first.
#[repr(C)]
pub struct ShardInbox<T: Payload, K> {
    /// Messages accepted here since the start: the left side of the ledger.
    pub accepted: u64,
    /// Permits for messages to come. None in a closed inbox.
    pub credit: u64,
    /// The number of messages that may be queued without checking anything else. Their permits are
    /// not part of `credit`. While it is above zero, the shard is scheduled, and neither the
    /// sender's turn nor the next measurement is due.
    pub(super) fast: u32,
    /// See the module's documentation.
    pub scheduled: bool,
    /// The messages of the shard are out of it and come back before those here: workers find
    /// nothing. Written under both locks.
    pub(super) lifted: bool,
    /// Set once, under this lock, so that nothing is accepted after it.
    pub closed: bool,
    /// When a sender to this shard lets others run.
    pub turn: SenderTurn,
    /// With keys: whether the queue is mixed.
    pub(super) variety: Variety,
    /// Messages in the order of acceptance.
    pub queue: BlockQueue<Entry<T, K>>,
    /// Messages to be taken before those in the queue, here or in the outbox.
    pub urgent: Deque<Entry<T, K>>,
    pub(super) uncounted: Uncounted,
}

/// When a sender lets others run.
pub struct SenderTurn {
    pub(super) turns: Turns,
    /// The next sender that can wait has to let others run first.
    pub is_over: bool,
}

/// Whether messages may be queued without being counted by their keys.
pub(super) struct Uncounted {
    /// This many messages may wait before each message is counted by its key.
    pub(super) bound: usize,
    /// The length of the outbox and its lanes when the outbox was last filled: never less than the
    /// current length.
    pub(super) beyond: usize,
    /// Messages may be counted by their keys: the outbox knows whether they are.
    pub(super) counted: bool,
}

impl<T: Payload, K> ShardInbox<T, K> {
    pub(super) fn new(turns: Turns, bounds: KeyBounds) -> Self {
        Self {
            accepted: 0,
            credit: 0,
            fast: 0,
            scheduled: false,
            lifted: false,
            closed: false,
            turn: SenderTurn { turns, is_over: false },
            variety: Variety::default(),
            queue: BlockQueue::new(),
            urgent: Deque::new(),
            uncounted: Uncounted { bound: bounds.waiting, beyond: 0, counted: false },
        }
    }

    /// True if there is nothing for a worker here.
    pub fn is_empty(&self) -> bool {
        self.lifted || (self.queue.is_empty() && self.urgent.is_empty())
    }

    /// True if there is an urgent message for a worker here.
    pub fn has_urgent(&self) -> bool {
        !self.lifted && !self.urgent.is_empty()
    }

    /// The number of messages here.
    pub fn queued(&self) -> usize {
        self.queue.len() + self.urgent.len()
    }

    /// Moves all normal messages from here into an empty outbox.
    pub(super) fn hand_over(&mut self, outbox: &mut ShardOutbox<T, K>) {
        std::mem::swap(&mut self.queue, &mut outbox.queue);
        outbox.variety = self.variety.begin();
        self.uncounted.beyond = outbox.queued();
    }

    /// Changes the bound behind each key.
    pub fn bound_keys(&mut self, bounds: KeyBounds) {
        self.uncounted.bound = bounds.waiting;
    }

    /// The number of further messages that may be queued without being counted by their keys,
    /// besides those that the credit is for.
    #[inline]
    pub fn headroom(&self) -> u64 {
        if self.uncounted.counted {
            return 0;
        }
        let room =
            self.uncounted.bound.saturating_sub(self.queued() + self.uncounted.beyond) as u64;
        room.saturating_sub(self.credit + u64::from(self.fast))
    }

    /// Takes out the unused permits.
    pub fn take_credit(&mut self) -> u64 {
        self.end_fast_path();
        std::mem::take(&mut self.credit)
    }

    /// The next message takes the full path.
    pub fn end_fast_path(&mut self) {
        self.credit += u64::from(std::mem::take(&mut self.fast));
    }

    /// Marks that no worker is bound to look at the shard any more, unless its messages are lifted.
    pub(super) fn unschedule(&mut self) {
        self.end_fast_path();
        self.scheduled = self.lifted;
    }

    /// True if the next message can be queued by [`push_fast`](Self::push_fast).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn is_fast(&self) -> bool {
        self.fast > 0
    }

    /// Appends a normal message if that [is fast](Self::is_fast).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn push_fast(
        &mut self,
        offer: &mut impl Offer<T>,
        (key, hash): (Option<K>, u32),
        stamp: Stamp,
    ) {
        if offer.message().is_none() {
            return;
        }
        self.fast -= 1;
        self.accepted += 1;
        self.note_key(hash);
        self.queue.push_made(|| {
            #[expect(clippy::expect_used, reason = "it was there just now, and nobody else has it")]
            let (message, extra) = offer.unpack().expect("a message");
            Entry { message, extra, key, hash, urgent: false, stamp }
        });
    }

    /// Sets how many messages may be queued on the fast path; `unmeasured` of them are not
    /// measured. A message has just been queued and the shard is scheduled: if it was not before,
    /// its sender is about to announce it.
    pub fn open_fast_path(&mut self, unmeasured: u64) {
        if self.turn.is_over || !self.scheduled || self.closed {
            return;
        }
        let turn = self.turn.turns.rest(self.accepted, self.queue.len());
        self.fast = self.credit.min(turn).min(unmeasured) as u32;
        self.credit -= u64::from(self.fast);
    }

    /// Stops counting messages by their keys if counting is no longer needed. The caller holds the
    /// lock of the outbox.
    pub fn take_stock(&mut self, outbox: &mut ShardOutbox<T, K>) {
        self.uncounted.beyond = outbox.queued();
        let queued = self.queued() + self.uncounted.beyond;
        if outbox.backlog.as_ref().is_some_and(|backlog| backlog.is_needless(queued)) {
            outbox.backlog = None;
        }
        self.uncounted.counted = outbox.backlog.is_some();
    }

    /// Appends a message, stamped by its number. Returns true if no worker is bound to look at the
    /// shard yet: the caller must announce the shard.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn push(
        &mut self,
        offer: &mut impl Offer<T>,
        (key, hash): (Option<K>, u32),
        stamp: impl FnOnce(u64) -> Stamp,
    ) -> bool {
        let (stamp, urgent) = (stamp(self.accepted), offer.is_urgent());
        self.queue.make_room();
        // Moved from its sender directly into its place.
        let Some((message, extra)) = offer.unpack() else { return false };
        if urgent {
            self.push_urgent(Entry { message, extra, key, hash, urgent, stamp });
            return self.schedule();
        }
        self.note_key(hash);
        self.queue.push_into_room(Entry { message, extra, key, hash, urgent, stamp });
        self.accepted += 1;
        self.schedule()
    }

    /// Notes that a message with this hash is queued. Costs nothing without keys.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_key(&mut self, hash: u32) {
        if size_of::<Option<K>>() != 0 {
            self.variety.note(hash);
        }
    }

    /// Takes the next urgent message, which may go to a lane.
    pub fn pop_urgent(&mut self) -> Option<Entry<T, K>> {
        if self.lifted {
            return None;
        }
        let entry = self.urgent.pop_front()?;
        self.uncounted.beyond += 1;
        Some(entry)
    }

    #[cold]
    pub(super) fn push_urgent(&mut self, entry: Entry<T, K>) {
        self.urgent.push_back(entry);
        self.accepted += 1;
    }

    /// Like `push`, for several plain messages: up to `most` from the front. Also returns how many
    /// were pushed.
    pub fn push_each(
        &mut self,
        messages: &mut VecDeque<T::Message>,
        most: usize,
        stamp: impl Fn(u64) -> Stamp,
    ) -> (usize, bool) {
        let pushed = most.min(messages.len());
        for _ in 0..pushed {
            let stamp = stamp(self.accepted);
            self.queue.push_made(|| {
                #[expect(
                    clippy::expect_used,
                    reason = "so many are there, and nobody else has them"
                )]
                let message = messages.pop_front().expect("a message");
                Entry::plain(message, stamp)
            });
            self.accepted += 1;
        }
        self.end_fast_path();
        self.turn.is_over = self.turn.turns.is_over(0, self.queue.len());
        (pushed, !std::mem::replace(&mut self.scheduled, true))
    }

    fn schedule(&mut self) -> bool {
        // The fast path was computed for the numbers from before this message on.
        self.end_fast_path();
        self.turn.is_over |= self.turn.turns.is_over(self.accepted, self.queue.len());
        !std::mem::replace(&mut self.scheduled, true)
    }
}
