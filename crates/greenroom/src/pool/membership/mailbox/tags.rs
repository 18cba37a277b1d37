//! The state of a mailbox for tags: in a sticky pool, messages have tags and may move to another
//! worker.

use std::collections::HashSet;

use greenroom_queue::{block_queue::BlockQueue, deque::Deque, entry::Entry, payload::Payload};

use crate::{
    Actor,
    pool::pool_payload::{Entries, Queued},
};

/// The number of messages that are searched for one with another tag than the retries.
const LOOK_AHEAD: usize = 1_024;

/// Why a message with a tag was not queued.
pub(crate) enum Unplaced {
    /// The mailbox no longer accepts messages.
    Closed,
    /// The tag is no longer here.
    Moved,
}

/// Messages of some tags on their way from one mailbox to another, in order within each tag.
pub(crate) struct Bundle<A: Actor, K> {
    pub(crate) entries: Entries<A, K>,
    /// Tags whose first message waits for its retry.
    pub(crate) waiting: Vec<u32>,
}

impl<A: Actor, K> Default for Bundle<A, K> {
    fn default() -> Self {
        Self { entries: Entries::<A, K>::new(), waiting: Vec::new() }
    }
}

/// The messages of a mailbox while they are examined for a withdrawal, or those that stay.
pub(crate) struct LiftedMail<A: Actor, K> {
    pub(crate) urgent: Entries<A, K>,
    pub(crate) normal: BlockQueue<Queued<A, K>>,
    /// Those of a tag that is to move, by class.
    pub(crate) held: [Entries<A, K>; 2],
}

impl<A: Actor, K> LiftedMail<A, K> {
    pub(crate) fn into_entries(mut self) -> Entries<A, K> {
        let mut entries = Entries::<A, K>::new();
        let [urgent, normal] = &mut self.held;
        while let Some(entry) = self.urgent.pop_front().or_else(|| self.normal.pop_front()) {
            entries.push_back(entry);
        }
        while let Some(entry) = urgent.pop_front().or_else(|| normal.pop_front()) {
            entries.push_back(entry);
        }
        entries
    }
}

/// Messages outside the queue: those of a tag that is to move, while the worker may have one of
/// them in hand.
pub(crate) struct Held<A: Actor, K> {
    pub(super) tag: u32,
    pub(crate) urgent: Entries<A, K>,
    pub(crate) normal: Entries<A, K>,
    /// The first one waits for its retry.
    pub(super) waits: bool,
}

/// The fields that only tags need.
pub(crate) struct Tagged<A: Actor, K> {
    /// The tag of the message that the worker took last; the worker may have finished it since. 0
    /// if it had none.
    pub(crate) in_hand: u32,
    pub(crate) turns: TagTurns,
    pub(crate) held: Option<Box<Held<A, K>>>,
    /// The worker has no tags any more, and gets none. Set once.
    pub(super) retired: bool,
}

impl<A: Actor, K> Default for Tagged<A, K> {
    fn default() -> Self {
        Self { in_hand: 0, turns: TagTurns::default(), held: None, retired: false }
    }
}

/// The turns between tags while messages with tags are retried.
#[derive(Default)]
pub(crate) struct TagTurns {
    /// Tags whose first message waits for its retry.
    pub(crate) waiting: Vec<u32>,
    /// The last message that was taken while others waited behind it was a retry.
    after_retry: bool,
}

/// True for a message that has a tag and is a retry.
pub(super) fn bears_retry<T: Payload, K>(entry: &Entry<T, K>) -> bool {
    entry.hash != 0 && entry.is_retry()
}

/// The tag of a message, and whether it is a retry.
pub(super) fn retry_of<T: Payload, K>(entry: &Entry<T, K>) -> (u32, bool) {
    (entry.hash, bears_retry(entry))
}

impl TagTurns {
    /// The place of the `next` message to take, if the first one has a tag and is a retry. `None`
    /// if that one waits for its time: the others wait with it. A retry that is due at once would
    /// get every turn, so the next message with another tag gets every other turn.
    #[cold]
    pub(super) fn choose(
        &mut self,
        next: &mut dyn FnMut() -> Option<(u32, bool)>,
    ) -> Option<usize> {
        let (mut tags, mut leads, mut last) = (HashSet::new(), true, None);
        for place in 0..LOOK_AHEAD {
            let Some((tag, is_retry)) = next() else { break };
            if is_retry {
                tags.insert(tag);
                if leads && !self.waiting.contains(&tag) {
                    // It has waited longer than those that were put before it.
                    last = Some(place);
                }
                last?;
            } else if !self.after_retry {
                break;
            } else if tags.contains(&tag) {
                leads = false;
            } else {
                self.after_retry = false;
                return Some(place);
            }
        }
        self.after_retry = true;
        last
    }

    /// The first message of this tag no longer waits.
    pub(super) fn forget(&mut self, tag: u32) {
        self.waiting.retain(|waiting| *waiting != tag);
    }
}

impl<A: Actor, K> Held<A, K> {
    pub(super) fn new(tag: u32) -> Box<Self> {
        Box::new(Self { tag, urgent: Deque::new(), normal: Deque::new(), waits: false })
    }

    pub(crate) fn len(&self) -> usize {
        self.urgent.len() + self.normal.len()
    }

    pub(super) fn queue(&mut self, urgent: bool) -> &mut Entries<A, K> {
        match urgent {
            true => &mut self.urgent,
            false => &mut self.normal,
        }
    }

    /// Takes out the normal message that has waited longest.
    pub(crate) fn evict(&mut self) -> Option<Queued<A, K>> {
        let mut place = 0;
        while self.normal.get(place)?.is_retry() {
            place += 1;
        }
        self.normal.remove(place)
    }
}
