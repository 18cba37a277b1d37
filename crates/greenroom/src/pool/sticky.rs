//! Sticky pools: the same key goes to the same worker.
//!
//! A worker that keeps something for each of its keys (a cache, a connection, a session) needs all
//! messages of a key, and no key should be spread over workers. Keys are hashed onto the slots of a
//! fixed table, and table slots belong to workers:
//!
//! ```text
//! key ──hash──▶ table slot ──plan──▶ worker's own mailbox ──▶ worker
//!               1 of 4,096           │
//!                                    └─ while a table slot moves: outside that mailbox, until its worker has finished
//!                                       the message of it that it has in hand; then to the new worker, in order
//! ```
//!
//! # The price
//! **Keys of one worker wait for one another**, by design. One slow order stops all orders that
//! share its worker, even while others are idle. A message that waits for its retry stops its
//! worker's mailbox (only urgent messages go before it); one that is retried without a wait takes
//! turns with the worker's other keys. A key cannot be parked here either: a pool with
//! [`FinalAction::ParkKey`](crate::FinalAction::ParkKey) is not started. If a key needs order but
//! no worker of its own, use [`ordered_by`](crate::PoolBuilder::ordered_by): there any free worker
//! takes the next key.
//!
//! Use sticky workers if a worker has something that others would first have to fetch: a cache per
//! key, a connection or a file per key, or state that is kept in the worker.
//!
//! # When workers come and go
//! A table slot moves only when it must. A worker that joins takes its share from those with the
//! most; the table slots of a worker that is removed or disabled go to those with the fewest. A
//! worker that is being restarted keeps its own.
//!
//! A move takes along the queued messages of that table slot, in order and before anything newer.
//! It has to wait only if the old worker has a message of the table slot in hand: messages of that
//! table slot are then held (accepted, and counted as queued) until it is done. That is at most one
//! table slot per worker, so a stuck worker holds up only the keys of that table slot. After a
//! second that is reported as [`PoolEvent::SlotHeld`](crate::PoolEvent::SlotHeld), and
//! [`PoolStats::held`](crate::PoolStats::held) counts the messages that wait for this.
//!
//! # The protocol
//! A message carries its *tag*: its table slot, counted from 1. The owner of a table slot is in
//! `owners`, which is read without a lock and written under the lock of the mailbox that loses or
//! gains it:
//!
//! 1. A sender reads the owner, takes a place there and a permit of the pool, and pushes. Under the
//!    lock of the mailbox it checks again: if the table slot has gone, it gives back place and
//!    permit and starts over.
//! 2. A mover of table slots holds the lock of the `moves`, so there is one at a time. Under the
//!    lock of the old mailbox it takes the messages out and writes `LIMBO`; under the lock of the
//!    new one it puts them in and writes the new owner. A sender that reads `LIMBO` waits for the
//!    lock of the moves.
//! 3. If the worker has a message of that table slot in hand, or may have one, the owner stays, and
//!    present and later messages are put aside in its mailbox. The slot is ordered to hand over;
//!    the worker does so when it looks for its next message, or has died, or left.
//!
//! So no table slot is ever queued in two places, and none of its messages is started while an
//! older one is in hand. Without workers, table slots have no owner, and their messages wait in the
//! pool until a worker joins.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hash},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use greenroom_queue::lock::Mutex;
use tokio::{sync::Notify, time::Instant};

pub(crate) use self::table::NOBODY;
use self::table::Table;
use crate::policy::{About, Choice, Crew, Policy};

mod table;

/// On its way from one worker to another; only while the lock of the moves is held.
pub(crate) const LIMBO: u32 = u32::MAX - 1;

/// How long messages are held for a worker that does not finish until that is reported.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// The default number of table slots: 16 for each of 256 workers, so that shares differ by at most
/// a sixteenth.
pub(crate) const DEFAULT_SLOTS: usize = 4_096;

/// The most table slots: 16 for each of the most workers.
pub(crate) const MAX_SLOTS: usize = 1 << 20;

type Hasher = foldhash::quality::SeedableRandomState;

/// The hash of a message's key, if it has one. Runs user code.
type HashOf<M> = Box<dyn Fn(&M, &Hasher) -> Option<u64> + Send + Sync>;

/// The builder's setting: keys are of one type, which no other part needs to know.
pub(crate) struct StickyBy<M> {
    hash_of: HashOf<M>,
    /// Named only by the builder: a program without sticky pools contains none of its code.
    make: fn(HashOf<M>, slots: usize, workers: usize, seed: u64) -> Box<Sticky<M>>,
}

impl<M> StickyBy<M> {
    pub(crate) fn new<K: Hash>(key: impl Fn(&M) -> Option<K> + Send + Sync + 'static) -> Self {
        let hash_of: HashOf<M> =
            Box::new(move |message, hasher| key(message).map(|key| hasher.hash_one(key)));
        Self { hash_of, make: Sticky::new }
    }

    /// The table of a pool.
    pub(crate) fn table(self, slots: usize, workers: usize, seed: u64) -> Box<Sticky<M>> {
        (self.make)(self.hash_of, slots, workers, seed)
    }
}

/// The owners of keys.
pub(crate) struct Sticky<M> {
    hash_of: HashOf<M>,
    /// Seeded only by the pool's seed: the same seed makes the same table in every process.
    hasher: Hasher,
    /// By tag: the slot of the worker with its messages, [`NOBODY`], or [`LIMBO`]. Written under
    /// the lock of the moves and that of the queue that loses or gains it.
    owners: Box<[AtomicU32]>,
    pub(crate) moves: Mutex<Moves>,
    /// Notified after each move, for senders that wait for room at a key's old worker.
    pub(crate) moved: Notify,
}

/// The state that moves change.
pub(crate) struct Moves {
    /// The planned owner of each table slot.
    pub(crate) table: Table,
    /// Workers that have a message in hand of a table slot that is to move.
    pub(crate) holds: BTreeMap<u32, HeldSince>,
    /// Tags without an owner whose first message waits for its retry.
    pub(crate) waiting: Vec<u32>,
    /// The messages that wait for a worker to join are lifted.
    pub(crate) held_is_lifted: bool,
    /// Tags that have not moved because their waiting messages are lifted: they move when these are
    /// back.
    pub(crate) deferred: Vec<u32>,
}

/// Messages are held because a worker has not finished.
pub(crate) struct HeldSince {
    pub(crate) since: Instant,
    /// True once this was reported.
    pub(crate) told: bool,
}

impl Moves {
    /// The first messages of these tags no longer wait.
    pub(crate) fn forget(&mut self, tags: &[u32]) {
        self.waiting.retain(|tag| !tags.contains(tag));
    }
}

impl<M> Sticky<M> {
    /// Deals all table slots out to the initial workers of the pool.
    fn new(hash_of: HashOf<M>, slots: usize, workers: usize, seed: u64) -> Box<Self> {
        let table = Table::new(slots, workers);
        let owner = |tag| AtomicU32::new(if tag == 0 { NOBODY } else { table.to(tag) });
        Box::new(Self {
            hash_of,
            hasher: Hasher::with_seed(seed, foldhash::SharedSeed::global_fixed()),
            owners: (0..=slots as u32).map(owner).collect(),
            moves: Mutex::new(Moves {
                table,
                holds: BTreeMap::new(),
                waiting: Vec::new(),
                held_is_lifted: false,
                deferred: Vec::new(),
            }),
            moved: Notify::new(),
        })
    }

    /// The tag of a message with a key. Runs user code: call it under no lock.
    pub(crate) fn tag(&self, message: &M) -> Option<u32> {
        let hash = (self.hash_of)(message, &self.hasher)?;
        Some(1 + ((hash >> 32) as u32 & (self.owners.len() as u32 - 2)))
    }

    pub(crate) fn owner(&self, tag: u32) -> u32 {
        self.owners[tag as usize].load(Ordering::Acquire)
    }

    /// Call it under the lock of the moves, and that of the queue that loses or gains it.
    pub(crate) fn set_owner(&self, tag: u32, owner: u32) {
        self.owners[tag as usize].store(owner, Ordering::Release);
    }

    /// True if messages of this table slot wait for the one that this worker has in hand, or will
    /// have.
    pub(crate) fn is_assigned_to(&self, tag: u32, slot: u32) -> bool {
        self.owner(tag) == slot || self.moves.lock().table.to(tag) == slot
    }
}

/// Tells only that the pool chooses workers, and strictly. It is never asked itself.
pub(crate) struct Stuck;

impl<M> Policy<M> for Stuck {
    fn choose(&self, _: &M, _: &About<'_>, _: &Crew<'_>) -> Choice {
        Choice::Any
    }
}
