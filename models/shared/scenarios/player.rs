//! A pool that is played: the product's queues, permits, wake-ups and drivers of workers, and
//! handlers that do what a script says.

#[path = "player/checks.rs"]
mod checks;
#[path = "player/clock.rs"]
mod clock;
#[path = "player/ledger.rs"]
mod ledger;
#[path = "player/message.rs"]
mod message;
#[path = "player/operator.rs"]
mod operator;
#[path = "player/senders.rs"]
mod senders;
#[path = "player/worker.rs"]
mod worker;
#[path = "player/workers.rs"]
mod workers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ledger::Ledger;
use message::{Keyed, NO_KEY, key_of};

use crate::pool::core::{Core, Plan};

pub(super) use message::{Key, Numbers};

/// It is not known after how many messages all is done.
const UNKNOWN: usize = usize::MAX;

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    Returns,
    /// Once, and then it returns.
    Suspends,
    /// It lets others run without saying so, as one that computes does.
    Computes,
    /// As `Suspends`, and wants to be told once a message of its key waits behind it.
    Collects,
    /// It fails the first time, and is parked.
    Fails,
    /// It fails for good the first time, and its key is parked.
    ParksKey,
    /// The message is not for its worker: the first time, it is put back for any other.
    PutsBack,
    /// As `Suspends`, and then it fails for good and ends the pool.
    EndsPool,
}

/// Which message is handled how.
type Script = fn(u32) -> Handler;

pub(super) struct PoolOf<K> {
    pub(super) core: Arc<Core<Numbers, K>>,
    plan: Plan,
    script: Script,
    /// Messages and signals after which all is done.
    expected: usize,
    ledger: Mutex<Ledger>,
}

pub(super) type Pool = PoolOf<Key>;

/// Whose keys are plain.
pub(super) type PlainPool = PoolOf<u32>;

impl<K: Keyed> PoolOf<K> {
    pub(super) fn new(plan: Plan, expected: usize, script: Script) -> Arc<Self> {
        let core = Arc::new(Core::new(&plan, Self::key, |key| key.number()));
        Arc::new(Self { core, plan, script, expected, ledger: Mutex::default() })
    }

    /// A pool that ends once it is stopped. For that, its workers count what they have settled.
    pub(super) fn until_stopped(plan: Plan, script: Script) -> Arc<Self> {
        Self::new(plan, UNKNOWN, script)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The core's key function.
    fn key(number: &u32) -> Option<K> {
        let key = key_of(*number);
        (key != NO_KEY).then(|| K::from(key))
    }

    fn has_order(&self, key: u32) -> bool {
        self.plan.keyed && key != NO_KEY
    }
}
