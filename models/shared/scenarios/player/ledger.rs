//! What became of each message, and whether that may be.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    PoolOf,
    message::{Keyed, URGENT, key_of},
};

/// What nobody but the model sees.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) in_hand: BTreeSet<u32>,
    /// The last message of each key and class.
    pub(super) last: BTreeMap<(u32, bool), u32>,
    pub(super) handled: BTreeSet<u32>,
    /// Or put back.
    pub(super) failed: BTreeSet<u32>,
    /// Signals.
    pub(super) heard: usize,
    /// The key over which the pool has ended.
    pub(super) barred: Option<u32>,
}

impl Ledger {
    pub(super) fn done(&self) -> usize {
        self.handled.len() + self.heard
    }
}

impl<K: Keyed> PoolOf<K> {
    pub(super) fn begins(&self, number: u32) {
        let mut ledger = self.ledger();
        let key = key_of(number);
        if !self.has_order(key) {
            return;
        }
        assert!(ledger.in_hand.insert(key), "one message of a key at a time");
        assert_ne!(ledger.barred, Some(key), "nothing comes after what has ended the pool");
        let last = ledger.last.insert((key, number < URGENT), number);
        let again = last == Some(number) && ledger.failed.contains(&number);
        assert!(again || last.is_none_or(|last| last < number), "in order of acceptance");
    }

    /// A message of this key ends the pool.
    pub(super) fn bars(&self, key: u32) {
        self.ledger().barred = Some(key);
    }

    /// True when this was the last message of all.
    pub(super) fn ends(&self, number: u32, handled: bool) -> bool {
        let mut ledger = self.ledger();
        ledger.in_hand.remove(&key_of(number));
        let first = match handled {
            true => ledger.handled.insert(number),
            false => ledger.failed.insert(number),
        };
        assert!(first, "every message is handled once");
        handled && ledger.done() == self.expected
    }

    /// True when this signal was the last of all.
    pub(super) fn hears(&self) -> bool {
        let mut ledger = self.ledger();
        ledger.heard += 1;
        ledger.done() == self.expected
    }
}
