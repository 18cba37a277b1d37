//! The way of a message: by its key, its sender, or a choice.

use std::{
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize},
    },
};

use foldhash::{SharedSeed, quality::SeedableRandomState};
use greenroom_queue::lock::{Mutex, MutexGuard};
use greenroom_queue::{key_lines::KeyLines, lock::user_code_follows, places::Places};
use parking_lot::RwLock;

use super::{
    builder::{config::PoolConfig, settings::Settings},
    membership::live_members::LiveMembers,
    pool_payload::{Entries, Key},
    sticky::Sticky,
};
use crate::Actor;

/// The information that is needed about a message before it is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WayIn {
    /// Nothing.
    Plain,
    /// Its key.
    ByKey,
    /// A policy or a sticky table, or its bytes; and its key if there are keys.
    Checked,
}

impl WayIn {
    fn of<A: Actor, K>(settings: &Settings<A, K>) -> Self {
        match (settings.derived.is_checked, &settings.key_of) {
            (true, _) => Self::Checked,
            (false, Some(_)) => Self::ByKey,
            (false, None) => Self::Plain,
        }
    }
}

/// The way of a message: by its key, its sender, or a choice.
pub(crate) struct Routing<A: Actor, K> {
    /// The information that is needed about a message before it is queued.
    pub(crate) way_in: WayIn,
    /// The owners of keys, in a sticky pool.
    pub(crate) sticky: Option<Box<Sticky<A::Message>>>,
    /// The shards that addresses send to, for messages without a key.
    pub(crate) places: Places,
    /// The hash of keys. Seeded per pool.
    pub(crate) hasher: SeedableRandomState,
    /// Senders that wait for room behind a key.
    pub(crate) key_lines: KeyLines,
    /// How many messages may wait behind one key. Written under the lock of the members.
    pub(crate) max_per_key: AtomicUsize,
    /// The workers that a policy may choose.
    pub(crate) live_members: RwLock<Option<Arc<LiveMembers<A, K>>>>,
    /// Messages that the policy has not given to any worker yet, or of keys without an owner.
    pub(crate) held: Mutex<Entries<A, K>>,
    /// Whether the policy has been asked about all of them.
    pub(crate) asking: Asking,
}

/// Whether a policy has been asked about all messages that it has not given to any worker.
#[derive(Default)]
pub(crate) struct Asking {
    /// There are held messages, or have been. Written under the lock of `held`.
    pub(crate) holds: AtomicBool,
    /// The member change that it was last asked after.
    pub(crate) asked: AtomicU64,
    /// The callers that want it to be asked; the first of them asks.
    pub(crate) callers: AtomicUsize,
}

impl<A: Actor, K> Routing<A, K> {
    pub(super) fn new(config: &PoolConfig, settings: &mut Settings<A, K>) -> Self {
        let (workers, seed) = (config.size.workers, settings.derived.seed);
        let (sticky, slots) = (settings.functions.sticky.take(), settings.derived.table_slots);
        let shared = match config.seed.is_some() {
            true => SharedSeed::global_fixed(),
            false => SharedSeed::global_random(),
        };
        Self {
            way_in: WayIn::of(settings),
            sticky: sticky.map(|by| by.table(slots, workers, seed)),
            places: Places::new(workers),
            hasher: SeedableRandomState::with_seed(seed, shared),
            key_lines: KeyLines::default(),
            max_per_key: AtomicUsize::new(settings.derived.key_bounds.waiting),
            live_members: RwLock::default(),
            held: Mutex::default(),
            asking: Asking::default(),
        }
    }
}

impl<A: Actor, K: Key> Routing<A, K> {
    /// The hash of a key. Runs user code.
    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u32 {
        user_code_follows();
        (self.hasher.hash_one(key) >> 32) as u32
    }

    /// The messages that are held.
    pub(crate) fn held(&self) -> MutexGuard<'_, Entries<A, K>> {
        self.held.lock()
    }
}
