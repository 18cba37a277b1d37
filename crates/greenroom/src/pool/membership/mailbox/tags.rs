//! The state of a mailbox for tags: in a sticky pool, messages bear a tag, and may be
//! taken to another worker.

use std::collections::{HashSet, VecDeque};

use greenroom_queue::{block_queue::BlockQueue, entry::Entry, payload::Payload};

use crate::{Actor, pool::pool_payload::Queued};

/// How many messages are searched for one of another tag than the retries'.
const LOOK_AHEAD: usize = 1_024;

/// Why a message with a tag was not queued.
pub(crate) enum Unplaced {
    /// Nothing more is accepted.
    Closed,
    /// The tag is not here any more.
    Moved,
}

/// Messages of some tags on their way from one mailbox to another, those of a tag in their order.
pub(crate) struct Bundle<A: Actor, K> {
    pub(crate) entries: Vec<Queued<A, K>>,
    /// Tags whose first message waits for its next attempt.
    pub(crate) waiting: Vec<u32>,
}

impl<A: Actor, K> Default for Bundle<A, K> {
    fn default() -> Self {
        Self { entries: Vec::new(), waiting: Vec::new() }
    }
}

/// The messages of a mailbox while they are examined for a withdrawal, or those that stay.
pub(crate) struct LiftedMail<A: Actor, K> {
    pub(crate) urgent: VecDeque<Queued<A, K>>,
    pub(crate) normal: BlockQueue<Queued<A, K>>,
    /// Of a tag that is to move, by class.
    pub(crate) held: [VecDeque<Queued<A, K>>; 2],
}

impl<A: Actor, K> LiftedMail<A, K> {
    pub(crate) fn into_entries(mut self) -> Vec<Queued<A, K>> {
        let mut entries = Vec::new();
        let [urgent, normal] = &mut self.held;
        while let Some(entry) = self.urgent.pop_front().or_else(|| self.normal.pop_front()) {
            entries.push(entry);
        }
        while let Some(entry) = urgent.pop_front().or_else(|| normal.pop_front()) {
            entries.push(entry);
        }
        entries
    }
}

/// Messages beside the queue: those of a tag that is to move, while the worker may have
/// one of them in hand.
pub(crate) struct Held<A: Actor, K> {
    pub(super) tag: u32,
    pub(crate) urgent: VecDeque<Queued<A, K>>,
    pub(crate) normal: VecDeque<Queued<A, K>>,
    /// The first one waits for its next attempt.
    pub(super) waits: bool,
}

/// What only tags need.
pub(crate) struct Tagged<A: Actor, K> {
    /// The tag of the message that the worker took last. It may have finished it
    /// since. 0 if it had none.
    pub(crate) in_hand: u32,
    /// Tags whose first message waits for its next attempt.
    pub(crate) waiting: Vec<u32>,
    /// The last message that was taken although others wait behind it was attempted again.
    pub(super) after_retry: bool,
    pub(crate) held: Option<Box<Held<A, K>>>,
    /// The worker has no tags any more, and gets none. Set once.
    pub(super) retired: bool,
}

impl<A: Actor, K> Default for Tagged<A, K> {
    fn default() -> Self {
        Self { in_hand: 0, waiting: Vec::new(), after_retry: false, held: None, retired: false }
    }
}

/// True for a message that bears a tag and is attempted again.
pub(super) fn bears_retry<T: Payload, K>(entry: &Entry<T, K>) -> bool {
    entry.hash != 0 && entry.is_retry()
}

impl<A: Actor, K> Tagged<A, K> {
    /// Which of these is next, if the first one bears a tag and is attempted again. None if that
    /// one waits for its attempt: the others wait with it. A retry that is due at once would have
    /// every turn, so the next one of another tag has every other turn.
    #[cold]
    pub(super) fn choose<'a>(
        &mut self,
        entries: impl Iterator<Item = &'a Queued<A, K>>,
    ) -> Option<usize>
    where
        A: 'a,
        K: 'a,
    {
        let (mut tags, mut leads, mut last) = (HashSet::new(), true, None);
        for (place, entry) in entries.take(LOOK_AHEAD).enumerate() {
            if bears_retry(entry) {
                tags.insert(entry.hash);
                if leads && !self.waiting.contains(&entry.hash) {
                    // It has waited longer than those that were put before it.
                    last = Some(place);
                }
                last?;
            } else if !self.after_retry {
                break;
            } else if tags.contains(&entry.hash) {
                leads = false;
            } else {
                self.after_retry = false;
                return Some(place);
            }
        }
        self.after_retry = true;
        last
    }
}

impl<A: Actor, K> Held<A, K> {
    pub(super) fn new(tag: u32) -> Box<Self> {
        Box::new(Self { tag, urgent: VecDeque::new(), normal: VecDeque::new(), waits: false })
    }

    pub(crate) fn len(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    pub(super) fn queue(&mut self, urgent: bool) -> &mut VecDeque<Queued<A, K>> {
        match urgent {
            true => &mut self.urgent,
            false => &mut self.normal,
        }
    }

    /// Takes out the normal message that has waited longest.
    pub(crate) fn evict(&mut self) -> Option<Queued<A, K>> {
        let place = self.normal.iter().position(|entry| !entry.is_retry())?;
        self.normal.remove(place)
    }
}
