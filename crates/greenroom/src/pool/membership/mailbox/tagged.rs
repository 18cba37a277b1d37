//! A mailbox in a sticky pool: its messages have tags and may move to another worker.

use greenroom_queue::{
    block_queue::BlockQueue, deque::Deque, entry::Entry, payload::Payload, stamp::Stamp,
    sync::Ordering,
};

use super::{
    Cleared, Letters, Mailbox,
    tags::{Bundle, Held, LiftedMail, Unplaced, bears_retry, retry_of},
};
use crate::{
    Actor,
    pool::{
        membership::slot_state::{HAND_OVER, MAIL},
        outgoing::OutgoingOf,
        pool_payload::{Entries, Queued},
    },
};

/// Puts lifted messages back into a queue: behind the retries that are at the front by now, and
/// before all others.
fn set_down_in<T: Payload, K>(queue: &mut Deque<Entry<T, K>>, mut stay: Deque<Entry<T, K>>) {
    let mut later = std::mem::take(queue);
    while later.front().is_some_and(Entry::is_retry)
        && let Some(retry) = later.pop_front()
    {
        queue.push_back(retry);
    }
    queue.append(&mut stay);
    queue.append(&mut later);
}

impl<A: Actor, K> Letters<A, K> {
    /// Takes the next urgent message. Also `None` if that message waits for its retry.
    pub(super) fn next_urgent(&mut self) -> Option<Queued<A, K>> {
        if !self.urgent.front().is_some_and(bears_retry) {
            return self.urgent.pop_front();
        }
        let mut entries = self.urgent.iter();
        let place = self.tagged.turns.choose(&mut || entries.next().map(retry_of))?;
        self.urgent.remove(place)
    }

    /// Like `next_urgent`, for normal messages.
    pub(super) fn next_normal(&mut self) -> Option<Queued<A, K>> {
        if !self.normal.front().is_some_and(bears_retry) {
            return self.normal.pop_front();
        }
        let mut entries = self.normal.iter();
        let place = self.tagged.turns.choose(&mut || entries.next().map(retry_of))?;
        self.normal.remove(place)
    }

    /// Takes out all waiting messages.
    pub(super) fn lift(&mut self) -> LiftedMail<A, K> {
        let held = match &mut self.tagged.held {
            Some(held) => [std::mem::take(&mut held.urgent), std::mem::take(&mut held.normal)],
            None => [Deque::new(), Deque::new()],
        };
        LiftedMail {
            urgent: std::mem::take(&mut self.urgent),
            normal: std::mem::replace(&mut self.normal, BlockQueue::new()),
            held,
        }
    }

    /// Puts back the messages that stay.
    pub(super) fn set_down(&mut self, mut stay: LiftedMail<A, K>) {
        set_down_in(&mut self.urgent, stay.urgent);
        let mut later = std::mem::replace(&mut self.normal, BlockQueue::new());
        while later.front().is_some_and(Entry::is_retry)
            && let Some(retry) = later.pop_front()
        {
            self.normal.push_back(retry);
        }
        self.normal.append(&mut stay.normal);
        self.normal.append(&mut later);
        let [mut urgent, mut normal] = stay.held;
        if let Some(held) = self.tagged.held.as_deref_mut() {
            set_down_in(&mut held.urgent, urgent);
            set_down_in(&mut held.normal, normal);
            return;
        }
        while let Some(entry) = urgent.pop_front().or_else(|| normal.pop_front()) {
            self.push(entry);
        }
    }

    /// If a message with a tag is withdrawn while it waits for its retry, the others of its tag no
    /// longer wait for it.
    pub(super) fn forget_retries(&mut self, withdrawn: &Entries<A, K>) {
        for entry in withdrawn.iter() {
            if bears_retry(entry) {
                self.goes_on(entry.hash);
            }
        }
    }

    /// The others of this tag no longer wait for its first message.
    fn goes_on(&mut self, tag: u32) {
        if let Some(held) = self.held_of(tag) {
            held.waits = false;
        }
        self.tagged.turns.forget(tag);
    }

    /// The held messages of this tag, if it is held.
    fn held_of(&mut self, tag: u32) -> Option<&mut Held<A, K>> {
        self.tagged.held.as_deref_mut().filter(|held| held.tag == tag)
    }

    /// Takes out the messages with one of these tags, which are sorted. Those with the `kept` tag
    /// are put aside.
    fn detach(&mut self, tags: &[u32], kept: Option<u32>) -> Bundle<A, K> {
        let mut bundle = Bundle::default();
        let mut urgent = std::mem::take(&mut self.urgent);
        let mut normal = std::mem::replace(&mut self.normal, BlockQueue::new());
        while let Some(entry) = urgent.pop_front().or_else(|| normal.pop_front()) {
            if kept == Some(entry.hash) {
                let tag = entry.hash;
                self.tagged
                    .held
                    .get_or_insert_with(|| Held::new(tag))
                    .queue(entry.urgent)
                    .push_back(entry);
            } else if entry.hash != 0 && tags.binary_search(&entry.hash).is_ok() {
                bundle.entries.push_back(entry);
            } else {
                self.push(entry);
            }
        }
        bundle
    }
}

impl<A: Actor, K> Mailbox<A, K> {
    /// Like `push`, for a message with a tag. `is_here` is called under the lock.
    pub(crate) fn push_tagged(
        &self,
        payload: &mut OutgoingOf<A>,
        tag: u32,
        is_here: impl FnOnce() -> bool,
        stamp: impl FnOnce(u64) -> Stamp,
    ) -> Result<(), Unplaced> {
        let mut letters = self.letters.lock();
        if letters.left || letters.tagged.retired || !is_here() {
            return Err(Unplaced::Moved);
        }
        if letters.closed {
            return Err(Unplaced::Closed);
        }
        let Some(message) = payload.message.take() else { return Err(Unplaced::Closed) };
        let (extra, urgent) = (payload.extra.take(), payload.class.is_urgent());
        let stamp = stamp(letters.accepted);
        letters.accepted += 1;
        let entry = Entry { message, extra, key: None, hash: tag, urgent, stamp };
        match letters.held_of(tag) {
            Some(held) => held.queue(urgent).push_back(entry),
            None => letters.push(entry),
        }
        self.told(&letters);
        Ok(())
    }

    /// The tag of the message that the worker has in hand, if it has one. Called by that worker.
    pub(crate) fn tag_in_hand(&self) -> Option<u32> {
        let tag = self.letters.lock().tagged.in_hand;
        (tag != 0).then_some(tag)
    }

    /// Puts the message in hand back to the front, where it waits until it is due.
    pub(crate) fn park(&self, entry: Queued<A, K>) -> Result<(), Queued<A, K>> {
        let mut letters = self.letters.lock();
        if letters.left {
            return Err(entry);
        }
        self.permits.take_back();
        let (tag, urgent) = (entry.hash, entry.urgent);
        match letters.held_of(tag) {
            Some(held) => {
                held.queue(urgent).push_front(entry);
                held.waits = true;
            }
            None => {
                letters.tagged.turns.waiting.push(tag);
                match urgent {
                    true => letters.urgent.push_front(entry),
                    false => letters.normal.push_front(entry),
                }
            }
        }
        self.told(&letters);
        Ok(())
    }

    /// The first message of a tag is due. The caller then wakes the worker.
    pub(crate) fn is_due(&self, tag: u32) {
        let mut letters = self.letters.lock();
        letters.goes_on(tag);
        if letters.len() > 0 {
            self.slot_state.order(MAIL);
        }
    }

    /// Takes out the messages with one of these tags, which are sorted, and `release`s each tag,
    /// under the lock. If the worker may have a message with one of the tags in hand, that tag
    /// stays, its queued messages are put aside, and the worker is ordered to hand it over; returns
    /// true then. The caller then wakes the worker and serves waiters.
    pub(crate) fn detach(
        &self,
        tags: &[u32],
        mut release: impl FnMut(u32),
    ) -> (Bundle<A, K>, bool) {
        let mut letters = self.letters.lock();
        let held_before = letters.tagged.held.as_ref().map(|held| held.tag);
        let in_hand = letters.tagged.in_hand;
        let is_kept = |tag: u32| tag == in_hand || Some(tag) == held_before;
        tags.iter().copied().filter(|tag| !is_kept(*tag)).for_each(&mut release);
        let begins = held_before.is_none() && tags.binary_search(&in_hand).is_ok();
        if begins {
            letters.tagged.held = Some(Held::new(in_hand));
            self.slot_state.order(HAND_OVER);
        }
        let mut bundle = letters.detach(tags, begins.then_some(in_hand));
        let (gone, stay): (Vec<u32>, Vec<u32>) = std::mem::take(&mut letters.tagged.turns.waiting)
            .into_iter()
            .partition(|tag| tags.binary_search(tag).is_ok());
        letters.tagged.turns.waiting = stay;
        for tag in gone {
            match letters.held_of(tag) {
                Some(held) => held.waits = true,
                None => bundle.waiting.push(tag),
            }
        }
        self.has_given(bundle.entries.len());
        self.told(&letters);
        (bundle, begins)
    }

    /// The worker has nothing in hand: the messages held for it go, and its tag is `release`d under
    /// the lock.
    pub(crate) fn let_go(&self, release: impl FnOnce(u32)) -> Option<(u32, Bundle<A, K>)> {
        let mut letters = self.letters.lock();
        letters.tagged.in_hand = 0;
        self.slot_state.done(HAND_OVER);
        let held = *letters.tagged.held.take()?;
        release(held.tag);
        let waiting = if held.waits { vec![held.tag] } else { Vec::new() };
        let Held { tag, urgent: mut entries, mut normal, .. } = held;
        entries.append(&mut normal);
        self.has_given(entries.len());
        self.told(&letters);
        Some((tag, Bundle { entries, waiting }))
    }

    /// Like `clear`. If not `for_good`, and the worker may have a message with a tag in hand, the
    /// mailbox stays: later messages with that tag wait here for that one and its retry. The caller
    /// then serves waiters.
    pub(crate) fn drain(&self, for_good: bool) -> (Entries<A, K>, Option<Cleared>) {
        let mut letters = self.letters.lock();
        if for_good || letters.tagged.in_hand == 0 {
            let (rest, cleared) = self.close_up(&mut letters);
            return (rest, Some(cleared));
        }
        let rest = letters.lift().into_entries();
        letters.forget_retries(&rest);
        self.has_given(rest.len());
        self.told(&letters);
        (rest, None)
    }

    /// Takes in the messages of another mailbox, and runs `claim` under the lock. The caller then
    /// wakes the worker.
    pub(crate) fn attach(
        &self,
        mut bundle: Bundle<A, K>,
        claim: impl FnOnce(),
    ) -> Result<(), Bundle<A, K>> {
        let mut letters = self.letters.lock();
        if letters.left {
            return Err(bundle);
        }
        while let Some(entry) = bundle.entries.pop_front() {
            self.permits.take_back();
            letters.push(entry);
        }
        letters.tagged.turns.waiting.extend(bundle.waiting);
        // It has tags again: a worker that was killed in its start has handed over tags that it did
        // not have.
        letters.tagged.retired = false;
        claim();
        self.told(&letters);
        Ok(())
    }

    /// The worker has no tags any more. A message with a tag that comes too late is refused.
    pub(crate) fn retire(&self) {
        self.letters.lock().tagged.retired = true;
    }

    /// The number of messages that wait to go elsewhere once the worker has finished the one in
    /// hand.
    pub(crate) fn held(&self) -> usize {
        self.letters.lock().tagged.held.as_ref().map_or(0, |held| held.len())
    }

    /// This many messages have left. Call it under the lock.
    pub(super) fn has_given(&self, messages: usize) {
        let taken = self.taken.load(Ordering::Relaxed) + messages as u64;
        self.taken.store(taken, Ordering::Relaxed);
    }
}
