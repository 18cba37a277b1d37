//! Counts the waiting messages of each key of a shard once one key may have too many. It enforces
//! the bound behind one key (K10) and limits the line behind a parked key (K08).
//!
//! Counting costs a table lookup for each message, so a shard counts only when it has to:
//!
//! ```text
//!              as many wait in the shard as one key may have, or a key is parked
//!   not counted ───────────────────────────────────────────────────────────────▶ counted
//!              ◀──────────────────────────────────────────────────────────────
//!              half as many wait, no key is parked, and no sender waits for a key
//! ```
//!
//! While messages are counted, a sender takes both locks of the shard, so the count is exact.
//! Before that, a shard is not given permits for more messages than one key may have, so no sender
//! gets past the count.
//!
//! Keys are identified by their hashes here. Two keys of a pool with the same hash (one pair in
//! four billion) share a bound. Messages that wait for a retry or are in hand are not counted: the
//! bound is on the messages *behind* them.

use std::{collections::HashMap, sync::Arc};

use super::{entry::Entry, payload::Payload, permits::Refused};
use crate::sync::Notify;

/// How many messages may wait behind one key.
#[derive(Debug, Clone, Copy)]
pub struct KeyBounds {
    /// Behind any key.
    pub waiting: usize,
    /// Behind a parked key.
    pub parked: usize,
    /// Messages behind parked keys hold no permit of the pool.
    pub apart: bool,
}

impl KeyBounds {
    /// While messages behind parked keys hold permits, a parked key may have no more of them than
    /// other keys. Otherwise it could fill the pool.
    #[inline]
    fn of_parked(self) -> usize {
        if self.apart { self.parked } else { self.parked.min(self.waiting) }
    }

    /// For pools without keys.
    pub const NONE: Self = Self { waiting: usize::MAX, parked: usize::MAX, apart: false };
}

/// The waiting messages of each key of one shard.
#[derive(Debug)]
pub struct Backlog {
    by_hash: HashMap<u32, KeyLine, foldhash::fast::FixedState>,
    bounds: KeyBounds,
    /// Keys that are parked.
    parked: usize,
    /// Senders that wait for room behind a key.
    senders: usize,
    /// The rooms in each of which one sender is to be woken once no lock is held.
    freed: Vec<Arc<Notify>>,
}

/// The waiting messages of one key.
#[derive(Debug, Default)]
struct KeyLine {
    messages: usize,
    parked: bool,
    senders: usize,
    /// The room of waiting senders; present while there are some.
    room: Option<Arc<Notify>>,
}

/// Wakes one sender in each of these rooms. Call it under no lock.
pub fn wake_in(freed: &[Arc<Notify>]) {
    for room in freed {
        room.notify_one();
    }
}

impl Backlog {
    /// A backlog for a shard in which no message has been counted yet.
    pub fn new(bounds: KeyBounds) -> Self {
        Self { by_hash: HashMap::default(), bounds, parked: 0, senders: 0, freed: Vec::new() }
    }

    /// Counts a message that is already in the shard.
    pub fn count<T: Payload, K>(&mut self, entry: &Entry<T, K>) {
        if entry.key.is_some() {
            self.count_of(entry.hash, entry);
        }
    }

    /// Like `count`, for a message in a lane whose key has this hash.
    pub fn count_of<T: Payload, K>(&mut self, hash: u32, entry: &Entry<T, K>) {
        if !entry.is_retry() {
            self.count_one(hash);
        }
    }

    /// Counts a message of this hash.
    #[inline]
    pub fn count_one(&mut self, hash: u32) {
        self.by_hash.entry(hash).or_default().messages += 1;
    }

    /// Counts a message that is about to be queued, unless its key already has as many as it may
    /// have. `waited` is true if the sender has waited in line; a sender that has not must queue
    /// behind those in line.
    pub fn admit(&mut self, hash: u32, waited: bool) -> Result<(), Refused> {
        let line = self.by_hash.entry(hash).or_default();
        let refused = match line.parked {
            true => (line.messages >= self.bounds.of_parked()).then_some(Refused::Parked),
            false => {
                let full = line.messages >= self.bounds.waiting || (line.senders > 0 && !waited);
                full.then_some(Refused::KeyFull)
            }
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        line.messages += 1;
        if waited && (line.parked || line.messages < self.bounds.waiting) {
            // Several places may have become free while no sender listened. Also, no sender waits
            // behind a parked key.
            self.freed.extend(line.room.clone());
        }
        Ok(())
    }

    /// A message was started or taken out: there may be room for one more.
    pub fn left<T: Payload, K>(&mut self, entry: &Entry<T, K>) {
        if entry.is_retry() {
            return;
        }
        let Some(line) = self.by_hash.get_mut(&entry.hash) else { return };
        line.messages = line.messages.saturating_sub(1);
        if line.messages < self.bounds.waiting {
            self.freed.extend(line.room.clone());
        }
        self.forget_empty(entry.hash);
    }

    fn forget_empty(&mut self, hash: u32) {
        let idle = |line: &KeyLine| line.messages == 0 && !line.parked && line.senders == 0;
        if self.by_hash.get(&hash).is_some_and(idle) {
            self.by_hash.remove(&hash);
        }
    }

    /// Adds a sender to the line behind a key. Returns the room in which the sender is woken to try
    /// again.
    pub fn stand(&mut self, hash: u32) -> Arc<Notify> {
        self.senders += 1;
        let line = self.by_hash.entry(hash).or_default();
        line.senders += 1;
        line.room.get_or_insert_default().clone()
    }

    /// True if only one sender waits in this line.
    pub fn is_alone(&self, hash: u32) -> bool {
        self.by_hash.get(&hash).is_some_and(|line| line.senders == 1)
    }

    /// A sender stops waiting. If its wake-up is still unused, `pass_on` wakes the next sender.
    pub fn step_out(&mut self, hash: u32, pass_on: bool) {
        let Some(line) = self.by_hash.get_mut(&hash) else { return };
        self.senders -= 1;
        line.senders -= 1;
        if line.senders == 0 {
            line.room = None;
        } else if pass_on {
            self.freed.extend(line.room.clone());
        }
        self.forget_empty(hash);
    }

    /// The key waits for an operator. Its senders check again: they may have more room, or none at
    /// all.
    pub fn park(&mut self, hash: u32) {
        self.parked += 1;
        let line = self.by_hash.entry(hash).or_default();
        line.parked = true;
        self.freed.extend(std::iter::repeat_n(line.room.clone(), line.senders).flatten());
    }

    /// The key is no longer parked. `others` is true if another parked key has the same hash: its
    /// count stays parked.
    pub fn unpark(&mut self, hash: u32, others: bool) {
        self.parked -= 1;
        if let Some(line) = self.by_hash.get_mut(&hash) {
            line.parked = others;
        }
        self.forget_empty(hash);
    }

    /// True if a key with this hash waits for an operator.
    #[inline]
    pub fn is_parked(&self, hash: u32) -> bool {
        self.by_hash.get(&hash).is_some_and(|line| line.parked)
    }

    /// True if counting is no longer needed with this many messages in the shard.
    #[inline]
    pub fn is_needless(&self, queued: usize) -> bool {
        self.parked == 0 && self.senders == 0 && queued < self.bounds.waiting.div_ceil(2)
    }

    /// Takes the rooms whose senders are to be woken, under no lock.
    pub fn take_freed(&mut self) -> Vec<Arc<Notify>> {
        std::mem::take(&mut self.freed)
    }

    /// Every room with a waiter, for when the pool stops accepting messages.
    pub fn all_rooms(&self) -> Vec<Arc<Notify>> {
        self.by_hash.values().filter_map(|line| line.room.clone()).collect()
    }

    /// True if senders wait for room behind a key.
    #[inline]
    pub fn has_senders(&self) -> bool {
        self.senders > 0
    }

    /// Changes the bounds of all keys.
    pub fn set_bounds(&mut self, bounds: KeyBounds) {
        self.bounds = bounds;
        // Some senders may have room now.
        let waiting = self.by_hash.values().filter(|line| line.messages < bounds.waiting);
        self.freed.extend(waiting.filter_map(|line| line.room.clone()));
    }

    /// The reason why a message of this key would be refused, if it would be.
    pub fn refusal(&self, hash: u32) -> Option<Refused> {
        let line = self.by_hash.get(&hash)?;
        match line.parked {
            true => (line.messages >= self.bounds.of_parked()).then_some(Refused::Parked),
            false => (line.messages >= self.bounds.waiting).then_some(Refused::KeyFull),
        }
    }

    /// All waiting messages were taken out, and no key is parked any more.
    pub fn clear(&mut self) {
        self.parked = 0;
        self.by_hash.values_mut().for_each(|line| (line.messages, line.parked) = (0, false));
        self.by_hash.retain(|_, line| line.senders > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backlog() -> Backlog {
        Backlog::new(KeyBounds { waiting: 2, parked: 3, apart: false })
    }

    fn entry(hash: u32) -> Entry<u64, u8> {
        let (urgent, stamp) = Default::default();
        Entry { message: 0, extra: None, key: Some(0), hash, urgent, stamp }
    }

    #[test]
    fn a_key_has_so_many_and_others_have_room() {
        let mut backlog = backlog();
        assert!(backlog.admit(1, false).is_ok() && backlog.admit(1, false).is_ok());
        assert_eq!(backlog.admit(1, false), Err(Refused::KeyFull));
        assert!(backlog.admit(2, false).is_ok());
        backlog.left(&entry(1));
        assert!(backlog.admit(1, false).is_ok());
    }

    #[test]
    fn who_comes_later_stands_behind_who_waits() {
        let mut backlog = backlog();
        backlog.count(&entry(1));
        backlog.count(&entry(1));
        let room = backlog.stand(1);
        backlog.left(&entry(1));
        assert!(backlog.take_freed().iter().any(|freed| Arc::ptr_eq(freed, &room)));
        assert_eq!(backlog.admit(1, false), Err(Refused::KeyFull), "somebody waits");
        assert!(backlog.admit(1, true).is_ok());
        backlog.step_out(1, false);
        assert!(!backlog.has_senders());
    }

    #[test]
    fn who_gives_up_after_it_was_woken_wakes_the_next() {
        let mut backlog = backlog();
        let (_first, room) = (backlog.stand(1), backlog.stand(1));
        backlog.step_out(1, true);
        assert!(backlog.take_freed().iter().any(|freed| Arc::ptr_eq(freed, &room)));
        backlog.step_out(1, true);
        assert!(backlog.take_freed().is_empty() && backlog.by_hash.is_empty());
    }

    #[test]
    fn a_parked_key_has_a_bound_of_its_own() {
        let mut backlog = backlog();
        backlog.park(1);
        assert!((0..2).all(|_| backlog.admit(1, false).is_ok()), "no more than another may have");
        assert_eq!(backlog.admit(1, false), Err(Refused::Parked));
        assert!(!backlog.is_needless(0));
        backlog.unpark(1, false);
        assert_eq!(backlog.admit(1, false), Err(Refused::KeyFull));
        assert!(backlog.is_needless(0) && !backlog.is_needless(1));
        let mut backlog = Backlog::new(KeyBounds { waiting: 2, parked: 1, apart: false });
        backlog.park(1);
        assert!(backlog.admit(1, false).is_ok());
        assert_eq!(backlog.admit(1, false), Err(Refused::Parked));
    }

    #[test]
    fn a_parked_key_apart_has_its_own_bound_and_no_other() {
        let mut backlog = Backlog::new(KeyBounds { waiting: 2, parked: 3, apart: true });
        backlog.park(1);
        assert!((0..3).all(|_| backlog.admit(1, false).is_ok()));
        assert_eq!(backlog.admit(1, false), Err(Refused::Parked));
    }

    #[test]
    fn a_parked_key_that_was_taken_out_is_not_parked_any_more() {
        let mut backlog = backlog();
        backlog.park(1);
        backlog.clear();
        assert!(!backlog.is_parked(1) && backlog.is_needless(0) && backlog.by_hash.is_empty());
    }

    #[test]
    fn senders_of_a_key_that_was_parked_look_again_one_after_the_other() {
        let mut backlog = backlog();
        backlog.count(&entry(1));
        let room = backlog.stand(1);
        backlog.stand(1);
        backlog.park(1);
        assert_eq!(backlog.take_freed().len(), 2);
        assert!(backlog.admit(1, true).is_ok());
        assert!(backlog.take_freed().iter().any(|freed| Arc::ptr_eq(freed, &room)));
    }
}
