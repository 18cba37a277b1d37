//! The plain settings of a pool, each defined in one place.

pub(super) mod checked;

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use crate::pool::{
    limits::{AtOnce, Rate},
    membership::restart::{Restarts, WhenExhausted},
    shares::ShareConfig,
};
use crate::{
    FinalAction, PoolEvents, RestartPolicy,
    control::{advisor::Advisor, autoscale::Autoscale},
    dead_letters::DEFAULT_BOUND,
    size::MAX_WORKERS,
};

/// The default number of workers.
const DEFAULT_WORKERS: usize = 3;
/// The default number of messages per worker that may wait.
const DEFAULT_MAILBOX: usize = 1_000;
/// The default number of workers that one message may kill.
const DEFAULT_POISON_LIMIT: u32 = 2;
/// The default number of messages that may wait behind a parked key.
const DEFAULT_MAX_PARKED: usize = 1_000;

/// The plain settings of a pool, as its builder sets them and as the pool uses them. Copied freely.
#[derive(Clone)]
pub(crate) struct PoolConfig {
    /// Its name in logs.
    pub(crate) name: Arc<str>,
    pub(crate) size: SizeConfig,
    pub(crate) keys: KeyConfig,
    /// Present if there are limits, or may be some later. Taken out when the pool is made.
    pub(crate) limits: Option<Box<LimitConfig>>,
    /// Present if the pool has settings for shares. Taken out when the pool is made.
    pub(crate) shares: Option<Box<ShareConfig>>,
    pub(crate) failure: FailureConfig,
    pub(crate) handling: HandlingConfig,
    /// The receiver of its events.
    pub(crate) notices: PoolEvents,
    /// The seed, if one was given: random choices are then the same each time.
    pub(crate) seed: Option<u64>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            name: Arc::from("pool"),
            size: SizeConfig::default(),
            keys: KeyConfig::default(),
            limits: None,
            shares: None,
            failure: FailureConfig::default(),
            handling: HandlingConfig::default(),
            notices: PoolEvents::global(),
            seed: None,
        }
    }
}

/// The number of workers, and how many messages may wait.
#[derive(Clone)]
pub(crate) struct SizeConfig {
    /// The initial number of workers, and the allowed numbers.
    pub(crate) workers: usize,
    pub(crate) bounds: RangeInclusive<usize>,
    /// How many messages may wait in a worker's own mailbox.
    pub(crate) mailbox: usize,
    /// The total for all workers. By default it follows the size.
    pub(crate) capacity: Option<usize>,
    /// Without workers, messages are accepted up to the capacity, and wait.
    pub(crate) holds_when_empty: bool,
    /// Present if the pool sizes itself. Boxed, because there are many actors.
    pub(crate) autoscale: Option<Box<Autoscale>>,
    /// Present if the pool is advised. Boxed, because there are many actors.
    pub(crate) advisor: Option<Box<Advisor>>,
    /// Present if it has threads of its own.
    pub(crate) dedicated_threads: Option<usize>,
}

impl Default for SizeConfig {
    fn default() -> Self {
        Self {
            workers: DEFAULT_WORKERS,
            bounds: 0..=MAX_WORKERS,
            mailbox: DEFAULT_MAILBOX,
            capacity: None,
            holds_when_empty: false,
            autoscale: None,
            advisor: None,
            dedicated_threads: None,
        }
    }
}

/// The settings for keys.
#[derive(Clone)]
pub(crate) struct KeyConfig {
    /// A message without a key is refused.
    pub(crate) key_required: bool,
    /// How many messages may wait behind one key. By default it follows the capacity.
    pub(crate) max_per_key: Option<usize>,
    /// The same behind a parked key.
    pub(crate) max_parked: usize,
    /// Messages behind parked keys take no room.
    pub(crate) parked_apart: bool,
    /// The number of table slots that sticky keys are hashed onto.
    pub(crate) sticky_table: Option<usize>,
}

impl Default for KeyConfig {
    fn default() -> Self {
        Self {
            key_required: false,
            max_per_key: None,
            max_parked: DEFAULT_MAX_PARKED,
            parked_apart: false,
            sticky_table: None,
        }
    }
}

/// The limits on pace and on messages in hand.
#[derive(Clone, Default)]
pub(crate) struct LimitConfig {
    pub(crate) rate: Option<Rate>,
    pub(crate) at_once: Option<AtOnce>,
    /// Limits may be set while the pool runs.
    pub(crate) adjustable: bool,
    /// Messages have shares, with limits of their own.
    pub(crate) shared: bool,
}

/// The consequences when a handler fails, or its worker ends.
#[derive(Clone)]
pub(crate) struct FailureConfig {
    /// The final action if no further attempt is made, whatever the policy says.
    pub(crate) finally: Option<FinalAction>,
    /// How many workers one message may kill.
    pub(crate) poison_limit: u32,
    /// How long a handler may take.
    pub(crate) time_limit: Option<Duration>,
    pub(crate) restarts: Restarts,
    pub(crate) restart_policy: RestartPolicy,
    /// The consequence when a slot's budget is used up.
    pub(crate) when_exhausted: WhenExhausted,
    /// How many dead letters the pool keeps, if no hook takes them.
    pub(crate) dead_letters: usize,
}

impl Default for FailureConfig {
    fn default() -> Self {
        Self {
            finally: None,
            poison_limit: DEFAULT_POISON_LIMIT,
            time_limit: None,
            restarts: Restarts::default(),
            restart_policy: RestartPolicy::default(),
            when_exhausted: WhenExhausted::default(),
            dead_letters: DEFAULT_BOUND,
        }
    }
}

/// How messages get to their handlers.
#[derive(Clone, Default)]
pub(crate) struct HandlingConfig {
    /// The pool is a single actor, and ends with it.
    pub(crate) single: bool,
    /// Present if handlers were declared quick or slow; otherwise that is measured.
    pub(crate) quick: Option<bool>,
}
