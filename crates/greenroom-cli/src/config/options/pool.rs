//! Pools of workers.

use std::time::Duration;

use greenroom::{
    advisor::Advisor,
    autoscale::Autoscale,
    event_pool::{Engine, Preset},
    limits::{Adaptive, Mode},
};
use greenroom_bus::engine::{OnFull, Retry};
use greenroom_config::{
    At, CountOr, count, count_or, duration, each, flag, group, number, options, rate, size, text,
    units::Rate,
    units::{DAY_MS, GIB},
    word, words,
};

use super::advisor::{AdvisorConfig, Autotune};

/// The most events that a pool can hold.
const MAX_QUEUE: usize = 100_000_000;

/// In `shares`, the limits of all that are not named.
pub const DEFAULT_SHARE: &str = "default";

options! {
    /// Workers that share a queue. A pool that is full or slow does not hold up another.
    pub struct PoolConfig named name = "a pool", then PoolConfig::sized {
        /// Sizes by the purpose of the pool, `workers` x `inbox_size`: `low_latency` 256 x 100,
        /// `standard` 256 x 1000, `high_throughput` 512 x 5000, `ultra_throughput` 1024 x 10000,
        /// `memory_limited` 128 x 500; `orders` 256 x 500, `logs` 512 x 10000, `iot` 1024 x 5000,
        /// `edge` 128 x 200. `workers`, `queue` and `inbox_size` override it.
        preset: Option<Preset> = word().live().optional();
        /// How many events the pool handles at a time. A `preset` sets it too.
        workers: usize = count(1..=65_536).alias(&["pool_size"]).live().default("1");
        /// How many events may wait, in total; the `buffer` of the top level if neither this nor
        /// `inbox_size` nor a `preset` is given.
        queue: usize = count(1..=10_000_000).live().inherits("1000");
        /// How many events may wait per worker: another way to write `queue`, which is then workers
        /// x inbox_size.
        inbox_size: Option<usize> = count(1..=10_000_000).live().optional();
        /// How many events may wait behind one key (a value of `order_by`) that is being handled,
        /// waits for another attempt or is parked, so that one key cannot fill the queue; a quarter
        /// of the queue by default. Further events are refused behind a parked key, and otherwise
        /// treated according to `on_full`; they delay no other key.
        max_per_key: Option<usize> = count(1..=10_000_000).optional();
        /// The order of events: `keyed` keeps the order of each `order_by` value, and any free
        /// worker handles it; `sticky` gives each value to the same worker, so that the events of
        /// one worker wait for one another; `shared` keeps no order, whatever handlers say.
        engine: Engine = word().default("keyed");
        /// The order of the events whose handlers have no `order_by`; takes the same values.
        order_by: Option<String> = text().optional();
        /// The share of the events whose handlers have no `share_by`: a tenant, an account, an
        /// endpoint; takes the same values as `order_by`. While several shares have events, each
        /// gets the same part of the workers' time, however many events it has.
        share_by: Option<String> = text().optional();
        /// The limits of single shares, by their values of `share_by`, and of all others in
        /// `default`: `{ default: { in_hand: 5, rate: 20/s }, acme: { weight: 3 } }`.
        shares: Vec<ShareConfig> = each().live().or_empty();
        /// How many events of one share may wait in the pool, so that one share cannot fill it; a
        /// quarter of the queue by default, and less while others fill it. The events of a share
        /// that has as many are treated according to `on_share_full`; they delay no other share.
        share_queue: Option<usize> = count(1..=10_000_000).live().optional();
        /// Events whose share has as many waiting as `share_queue` says: the same words as for
        /// `on_full`, and by default what that says. With `pause` they wait beside the pool, up to
        /// the `run_ahead` of their input.
        on_share_full: Option<OnFull> = word().optional();
        /// Events when the queue is full: `pause` lets them wait and, after a while, pauses their
        /// input; `reject` refuses them to the source; `dead_letter` stores them.
        on_full: OnFull = word().default("pause");
        /// How often a worker that panics may be restarted before it is given up.
        max_restarts: u32 = count(0..=1_000_000).default("3");
        /// Whether the events of the pool are logged: workers that are restarted or given up, a
        /// queue that is full.
        event_stream as "enable_event_stream": bool = flag().default("true");
        /// The treatment of a key whose event failed for good: `skip` stores the event as a dead
        /// letter and continues with the next; `park` keeps the event and all later ones of its key
        /// until an operator decides (docs/admin.md), and refuses them when the run ends, so that
        /// nothing of the key is ever handled out of order; other keys continue (docs/order.md);
        /// that needs `engine: keyed`; `stop` stores the event, stops the pool, and ends the run.
        on_final_failure: OnFinalFailure = word().default("skip");
        /// The most attempts to start per second, minute or hour. Without it, as many as the
        /// workers manage.
        rate: Option<Rate> = rate().live().optional();
        /// The most events in hand at once, if fewer than the workers: a number, or `adaptive` to
        /// find it automatically. Unlike `workers`, lowering it keeps the processes of an `exec`
        /// handler running.
        limit: Option<CountOr<LimitConfig>> = count_or(1..=65_536).live().optional();
        /// The pool's share of the starts of handlers, when handlers of several pools compute and
        /// compete for threads: three times the weight gets three times the starts. As soon as one
        /// pool has a weight, the others have 1. Attempts that wait for something (`http`, `exec`)
        /// take neither a thread nor a share.
        weight: Option<u32> = count(1..=10_000).optional();
        /// Runs the workers on this many threads of the pool's own, for handlers that compute or
        /// block, which would otherwise hold up the inputs and every other pool. One per core for
        /// handlers that compute, one per worker for those that block.
        dedicated_threads: Option<usize> = count(1..=1_024).optional();
        /// The reaction to a failed attempt of its handlers, each of which may override any part of
        /// it.
        retry: Option<Retry> = group().live().optional();
        /// How long an attempt may take in this pool, whatever its handler is; unlimited by
        /// default. The effects of an attempt that timed out are unknown. `exec` and `http` have
        /// their own timeouts, with more precise errors.
        timeout: Option<Duration> = duration(1..=DAY_MS).optional();
        /// Lets the pool change its number of workers by itself, within bounds. It starts with
        /// `workers`, or with `min` if neither that nor a `preset` is given.
        autoscale: Option<Autoscale> = group().optional();
        /// Whether an advisor watches the pool for minutes at a time and recommends changes to its
        /// `queue` and `workers` (`greenroom advise`, the dashboard): `off` or `say`. By default,
        /// the `autotune` of the top level.
        autotune: Autotune = word().live().inherits("say");
        /// The rules for advice on the sizes of this pool, if they differ from `advisor` at the
        /// top.
        advisor: AdvisorConfig = group().live().inherits("{}");
        /// Hands a handler several events of one key at once. `http` posts them together, as a
        /// batch of CloudEvents; other handlers get them one after the other, without a turn of the
        /// pool in between.
        batch: Option<Batch> = group().optional();
    }
}

impl PoolConfig {
    /// The most events that it holds: in its queue, and with its workers.
    pub(super) fn holds(&self) -> usize {
        let workers = self.autoscale.map_or(self.workers, |autoscale| autoscale.max);
        self.queue + workers * self.batch.map_or(1, |batch| batch.events)
    }

    /// The limits of the shares that are not named.
    pub fn share_defaults(&self) -> Option<&ShareConfig> {
        self.shares.iter().find(|share| share.name == DEFAULT_SHARE)
    }

    /// The shares with limits of their own.
    pub fn named_shares(&self) -> impl Iterator<Item = &ShareConfig> {
        self.shares.iter().filter(|share| share.name != DEFAULT_SHARE)
    }

    /// The advisor of the pool; `None` for `off`.
    pub fn advised(&self) -> Option<Advisor> {
        (self.autotune == Autotune::Say).then(|| self.advisor.advisor())
    }

    /// The bound of events in hand, if it is a number.
    pub fn fixed_limit(&self) -> Option<usize> {
        match &self.limit {
            Some(CountOr::Count(limit)) => Some(*limit),
            Some(CountOr::Or(_)) | None => None,
        }
    }

    /// The same, if it is found while the pool works.
    pub fn adaptive_limit(&self) -> Option<AdaptiveConfig> {
        match &self.limit {
            Some(CountOr::Or(limit)) => Some(limit.adaptive),
            Some(CountOr::Count(_)) | None => None,
        }
    }

    /// Derives its sizes from a preset, the bounds of its workers and `inbox_size`.
    fn sized(mut self, at: &mut At<'_>) -> Option<Self> {
        if !at.has("workers") {
            self.workers = match (self.preset, self.autoscale) {
                (Some(preset), _) => preset.pool_size(),
                (None, Some(autoscale)) => autoscale.min,
                (None, None) => self.workers,
            };
        }
        let each = self.inbox_size.or_else(|| self.preset.map(Preset::inbox_size));
        self.queue = match each {
            Some(_) if at.has("inbox_size") && at.has("queue") => {
                let text = "`inbox_size` and `queue` are two ways to set the same size";
                at.error("inbox_size", text, "keep `queue`, which counts for the whole pool");
                return None;
            }
            Some(each) if !at.has("queue") => self.workers.saturating_mul(each),
            _ => self.queue,
        };
        self.fits(at)
    }

    fn fits(self, at: &mut At<'_>) -> Option<Self> {
        if self.on_share_full == Some(OnFull::Pause) && self.on_full != OnFull::Pause {
            let text = "what waits for room of its share waits for the pool as well, and `on_full` does not let it";
            at.error("on_share_full", text, "leave it out, or write `on_full: pause`");
            return None;
        }
        if self.queue <= MAX_QUEUE {
            return Some(self);
        }
        let Self { queue, workers, .. } = self;
        let name = if at.has("inbox_size") { "inbox_size" } else { "workers" };
        let text = format!(
            "{queue} events may wait for these {workers} workers, which is above {MAX_QUEUE}"
        );
        let most = MAX_QUEUE / workers;
        at.error(name, text, format!("`inbox_size` may be {most} at most here"));
        None
    }
}

words! {
    /// The treatment of a key whose event failed for good.
    pub enum OnFinalFailure {
        /// The event becomes a dead letter, and the next one is handled.
        Skip = "skip",
        /// It waits with the event at its head.
        Park = "park",
        /// The event becomes a dead letter, and the pool stops.
        Stop = "stop",
    }
}

options! {
    /// Instead of a number.
    pub struct LimitConfig = "a limit" {
        /// As many as the target can take, measured by how long attempts take and how many fail.
        adaptive: AdaptiveConfig = group();
    }
}

options! {
    /// Grows while attempts take no longer than at rest, and shrinks if they do, or if many fail.
    /// The admin listener shows the current limit.
    #[derive(Copy)]
    pub struct AdaptiveConfig = "an adaptive limit", then AdaptiveConfig::ordered {
        /// The largest limit; a limit above the number of workers is never used.
        max: usize = count(1..=65_536);
        /// The smallest limit.
        min: usize = count(1..=65_536).default("1");
        /// The initial limit; by default 20, or the nearest number within the bounds.
        initial: Option<usize> = count(1..=65_536).optional();
        /// The least time between two decisions. A window is never shorter than an attempt.
        window: Duration = duration(1..=3_600_000).default("200ms");
        /// How many times slower than at rest attempts may be. A higher value tolerates more
        /// variation, and a longer queue at the target.
        tolerance: f64 = number(1.0..=100.0).default("1.5");
        /// With `true`, nothing is held back: the admin listener shows the limit that would apply.
        observe: bool = flag().default("false");
    }
}

options! {
    /// Options that are left out are those of `default`.
    pub struct ShareConfig named name = "a share" {
        /// Its part of the workers' time, relative to other shares: twice the weight, twice the
        /// time; 1 by default.
        weight: Option<u32> = count(1..=1_000_000).optional();
        /// The most events in hand at once; with 0, none.
        in_hand: Option<usize> = count(0..=65_536).optional();
        /// The most attempts to start per second, minute or hour.
        rate: Option<Rate> = rate().optional();
    }
}

options! {
    /// Events of one key that wait together are handled together, each with its own result. Events
    /// without a key are taken in the order of the queue.
    #[derive(Copy, Eq)]
    pub struct Batch = "a batch" {
        /// The most events of a batch.
        events: usize = count(2..=10_000);
        /// How long a batch that is not full waits for more events of its key, which occupies its
        /// worker.
        within: Duration = duration(0..=60_000).default("0ms");
        /// A batch is also full at about this many bytes; the event that reaches them is its last.
        bytes: Option<usize> = size(1..=GIB).optional();
    }
}

impl AdaptiveConfig {
    fn ordered(self, at: &mut At<'_>) -> Option<Self> {
        let (min, max) = (("min", self.min), ("max", self.max));
        at.ordered("min", min, max)?;
        if let Some(initial) = self.initial {
            at.ordered("initial", min, ("initial", initial))?;
            at.ordered("initial", ("initial", initial), max)?;
        }
        Some(self)
    }
}

impl From<AdaptiveConfig> for Adaptive {
    fn from(config: AdaptiveConfig) -> Self {
        let AdaptiveConfig { min, max, initial, window, tolerance, observe } = config;
        let usual = Self::up_to(max);
        Self {
            min,
            max,
            initial: initial.unwrap_or(usual.initial.max(min)),
            window,
            tolerance,
            mode: if observe { Mode::Observe } else { Mode::Enforce },
        }
    }
}
