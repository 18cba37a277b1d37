//! Pools of workers.

use std::time::Duration;

use greenroom::{
    advisor::Advisor,
    autoscale::Autoscale,
    event_pool::{Engine, Preset},
    limits::{Adaptive, Mode},
};
use greenroom_bus::engine::OnFull;
use greenroom_config::{
    At, CountOr, count, count_or, duration, durations, each, flag, group, number, options, rate, size,
    text,
    units::{DAY_MS, GIB},
    units::{DurationRange, Rate},
    word, words,
};

use super::advisor::{AdvisorConfig, Autotune};

/// What a pool can hold.
const MAX_QUEUE: usize = 100_000_000;

/// In `shares`, what holds for all that are not named.
const DEFAULT_SHARE: &str = "default";

options! {
    /// Workers that share a queue. A pool that is full or slow does not stop another.
    pub struct PoolConfig named name = "a pool", then PoolConfig::sized {
        /// Sizes by what the pool is for, `workers` x `inbox_size`: `low_latency` 256 x 100,
        /// `standard` 256 x 1000, `high_throughput` 512 x 5000, `ultra_throughput` 1024 x
        /// 10000, `memory_limited` 128 x 500; `orders` 256 x 500, `logs` 512 x 10000, `iot`
        /// 1024 x 5000, `edge` 128 x 200. `workers`, `queue` and `inbox_size` override it.
        preset: Option<Preset> = word().live().optional();
        /// How many events the pool handles at a time. With a `preset`, as many as that says.
        workers: usize = count(1..=65_536).alias(&["pool_size"]).live().default("1");
        /// How many events may wait, in all; as many as `buffer` (at the top) says when neither
        /// this nor `inbox_size` nor a `preset` is given.
        queue: usize = count(1..=10_000_000).live().inherits("1000");
        /// How many events may wait for each worker: another way to write `queue`, which is
        /// then workers x inbox_size.
        inbox_size: Option<usize> = count(1..=10_000_000).live().optional();
        /// How many events may wait behind one key (a value of `order_by`) that is being
        /// handled, waits for another attempt or is parked, so that one key cannot fill the
        /// queue; a quarter of it when this is not given. What comes above that is refused
        /// behind a parked key, and otherwise treated as `on_full` says; it delays no other
        /// key.
        max_per_key: Option<usize> = count(1..=10_000_000).optional();
        /// What order there is: `keyed` keeps that of each `order_by` value, whichever worker
        /// is free handles it; `sticky` gives each value to the same worker, so that those of
        /// one worker wait for one another; `shared` keeps none, whatever handlers say.
        engine: Engine = word().default("keyed");
        /// What orders the events of its handlers that have no `order_by` of their own; takes
        /// what that takes.
        order_by: Option<String> = text().optional();
        /// What names the share of the events of its handlers that have no `share_by` of their own:
        /// a tenant, an account, an endpoint; takes what `order_by` takes. While several shares
        /// have events, each gets the same part of the workers' time, however many it has.
        share_by: Option<String> = text().optional();
        /// What single shares may, by their values of `share_by`, and in `default` what all others
        /// may: `{ default: { in_hand: 5, rate: 20/s }, acme: { weight: 3 } }`.
        shares: Vec<ShareConfig> = each().live().or_empty();
        /// What happens when the queue is full: `pause` lets its events wait and, after a
        /// while, their input; `reject` refuses them to the source; `dead_letter` stores them.
        on_full: OnFull = word().default("pause");
        /// How often a worker that panics may be restarted before it is given up.
        max_restarts: u32 = count(0..=1_000_000).default("3");
        /// Whether the log tells what happens to the pool: workers that are restarted or given
        /// up, a queue that is full.
        event_stream as "enable_event_stream": bool = flag().default("true");
        /// What happens to a key whose event failed for good: `skip` stores the event as a dead
        /// letter and goes on with the next; `park` keeps the event and all that follow it of its
        /// key until an operator decides (docs/admin.md), and refuses them when the run ends, so
        /// that nothing of the key is ever handled out of order; other keys go on meanwhile
        /// (docs/order.md); that needs `engine: keyed`; `stop` stores the event, stops the pool,
        /// and ends the run.
        on_final_failure: OnFinalFailure = word().default("skip");
        /// How many attempts are started in such a time, at most. Without it, as many as the
        /// workers manage.
        rate: Option<Rate> = rate().live().optional();
        /// How many events are in hand at once, at most, where that is to be fewer than the
        /// workers: a number, or `adaptive` to have it found out. Unlike `workers`, it leaves
        /// the processes of an `exec` handler running when it is lowered.
        limit: Option<CountOr<LimitConfig>> = count_or(1..=65_536).live().optional();
        /// The pool's share of the starts of handlers, where the handlers of several pools
        /// compute and compete for threads: with three times the weight, three times the
        /// starts. As soon as one pool has a weight, those without have 1. Attempts that wait
        /// for something (`http`, `exec`) take no thread, and no share.
        weight: Option<u32> = count(1..=10_000).optional();
        /// Runs the workers on so many threads of the pool's own, for handlers that compute or
        /// block: otherwise they hold up the inputs and every other pool. As many as there are
        /// cores for those that compute, as many as workers for those that block.
        dedicated_threads: Option<usize> = count(1..=1_024).optional();
        /// What happens after a failed attempt of its handlers, each of which may override any
        /// part of it.
        retry: Option<Retry> = group().live().optional();
        /// How long an attempt may take in this pool, whatever its handler is; without limit
        /// when this is not given. What it did until then is not known. `exec` and `http` have
        /// timeouts of their own, which name what happened.
        timeout: Option<Duration> = duration(1..=DAY_MS).optional();
        /// Lets the pool change its workers by itself, between bounds. It begins with
        /// `workers`, or with `min` when neither that nor a `preset` is given.
        autoscale: Option<AutoscaleConfig> = group().optional();
        /// Whether an advisor looks at the pool for minutes at a time and says what to change in
        /// its `queue` and `workers` (`greenroom advise`, the dashboard): `off` or `say`. As
        /// `autotune` at the top says when this is not given.
        autotune: Autotune = word().live().inherits("say");
        /// When the sizes of this pool are worth advice, where that is to differ from `advisor` at
        /// the top.
        advisor: AdvisorConfig = group().live().inherits("{}");
        /// Hands a handler several events of one key at once. `http` posts them together, as a
        /// batch of CloudEvents; other handlers get them one after the other, without a turn of
        /// the pool between them.
        batch: Option<Batch> = group().optional();
    }
}

impl PoolConfig {
    /// How many events it holds at most: in its queue, and with its workers.
    pub(super) fn holds(&self) -> usize {
        let workers = self.autoscale.map_or(self.workers, |autoscale| autoscale.max);
        self.queue + workers * self.batch.map_or(1, |batch| batch.events)
    }

    /// What the shares may that are not named.
    pub fn share_defaults(&self) -> Option<&ShareConfig> {
        self.shares.iter().find(|share| share.name == DEFAULT_SHARE)
    }

    /// The shares of which something of their own is said.
    pub fn named_shares(&self) -> impl Iterator<Item = &ShareConfig> {
        self.shares.iter().filter(|share| share.name != DEFAULT_SHARE)
    }

    /// Who looks at the pool; `None` for `off`.
    pub fn advised(&self) -> Option<Advisor> {
        (self.autotune == Autotune::Say).then(|| self.advisor.advisor())
    }

    /// The bound of events in hand, where it is a number.
    pub fn fixed_limit(&self) -> Option<usize> {
        match &self.limit {
            Some(CountOr::Count(limit)) => Some(*limit),
            Some(CountOr::Or(_)) | None => None,
        }
    }

    /// The same, where it is found out while the pool works.
    pub fn adaptive_limit(&self) -> Option<AdaptiveConfig> {
        match &self.limit {
            Some(CountOr::Or(limit)) => Some(limit.adaptive),
            Some(CountOr::Count(_)) | None => None,
        }
    }

    /// Puts in place what a preset, the bounds of its workers and `inbox_size` say of its sizes.
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
                let text = "`inbox_size` and `queue` are two ways to say the same";
                at.error("inbox_size", text, "keep `queue`, which counts for the whole pool");
                return None;
            }
            Some(each) if !at.has("queue") => self.workers.saturating_mul(each),
            _ => self.queue,
        };
        self.fits(at)
    }

    fn fits(self, at: &mut At<'_>) -> Option<Self> {
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
    /// What happens to a key whose event failed for good.
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
    /// In place of a number.
    pub struct LimitConfig = "a limit" {
        /// As many as the target bears, found out by how long attempts take and how many fail.
        adaptive: AdaptiveConfig = group();
    }
}

options! {
    /// Grows while attempts take no longer than at rest, and shrinks when they do, or when many
    /// fail. The admin listener tells where it stands.
    #[derive(Copy)]
    pub struct AdaptiveConfig = "an adaptive limit", then AdaptiveConfig::ordered {
        /// The largest limit; more than there are workers is never used.
        max: usize = count(1..=65_536);
        /// The smallest limit.
        min: usize = count(1..=65_536).default("1");
        /// The limit at the start; 20, or what is nearest to that within the bounds, when this
        /// is not given.
        initial: Option<usize> = count(1..=65_536).optional();
        /// The least time between two decisions. A window is never shorter than attempts take.
        window: Duration = duration(1..=3_600_000).default("200ms");
        /// How many times slower than at rest attempts may be. A higher one bears more of a
        /// spread, and more of a queue at the target.
        tolerance: f64 = number(1.0..=100.0).default("1.5");
        /// With `true`, nothing is held back: the admin listener tells what the limit would be.
        observe: bool = flag().default("false");
    }
}

options! {
    /// Looked at once a second: a pool grows when its workers are busy and what waits is late,
    /// and shrinks to what was needed when less was enough for a while.
    #[derive(Copy)]
    pub struct AutoscaleConfig = "autoscale", then AutoscaleConfig::ordered {
        /// The fewest workers.
        min: usize = count(1..=65_536).default("1");
        /// The most workers: as many as the target bears at once.
        max: usize = count(1..=65_536);
        /// How long an event may wait before the pool is late.
        target_age: Duration = duration(1..=DAY_MS).default("100ms");
        /// The least time between a change and the next growth. As long as a worker needs to
        /// start and to show what it can do.
        up_cooldown: Duration = duration(0..=DAY_MS).default("5s");
        /// For how long fewer workers must have been enough before the pool shrinks.
        down_cooldown: Duration = duration(0..=DAY_MS).default("30s");
        /// The share of their time that workers may be busy. A late pool grows only where they
        /// are busier.
        busy_share: f64 = number(0.01..=1.0).default("0.8");
    }
}

options! {
    /// What is left out is as in `default`.
    pub struct ShareConfig named name = "a share" {
        /// Its part of the workers' time, beside others: twice the weight, twice the time; 1 when
        /// this is not given.
        weight: Option<u32> = count(1..=1_000_000).optional();
        /// How many of its events are in hand at once, at most; with 0, none at all.
        in_hand: Option<usize> = count(0..=65_536).optional();
        /// How many attempts at its events are started in such a time, at most.
        rate: Option<Rate> = rate().optional();
    }
}

options! {
    /// Events of one key that wait together are handled together, each with a result of its
    /// own. Events without a key are taken as they lie.
    #[derive(Copy, Eq)]
    pub struct Batch = "a batch" {
        /// The most events of a batch.
        events: usize = count(2..=10_000);
        /// How long a batch that is not full waits for more of its key, which takes up its
        /// worker.
        within: Duration = duration(0..=60_000).default("0ms");
        /// About how many bytes fill a batch, too; the event with which it gets there is its
        /// last.
        bytes: Option<usize> = size(1..=GIB).optional();
    }
}

options! {
    /// A failed event is tried again in its place: later events of its key wait, the worker
    /// does not.
    #[derive(Copy, Eq)]
    pub struct Retry = "retry" {
        /// How often an event is tried in all; then it is a dead letter.
        attempts: u32 = count(1..=1_000_000).default("5");
        /// The wait before the second attempt and the longest wait; it doubles in between, with
        /// jitter.
        backoff: DurationRange = durations().default("200ms..30s");
        /// No further attempt is made once the first failure is so long ago; without limit when
        /// this is not given. An outage does not count.
        total: Option<Duration> = duration(1..=30 * DAY_MS).optional();
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

impl From<AutoscaleConfig> for Autoscale {
    fn from(config: AutoscaleConfig) -> Self {
        let AutoscaleConfig { min, max, target_age, up_cooldown, down_cooldown, busy_share } =
            config;
        Self { min, max, target_age, up_cooldown, down_cooldown, busy_share }
    }
}

impl AutoscaleConfig {
    fn ordered(self, at: &mut At<'_>) -> Option<Self> {
        at.ordered("min", ("min", self.min), ("max", self.max))?;
        Some(self)
    }
}
