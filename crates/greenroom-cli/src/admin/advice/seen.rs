//! The input of the rules: plain figures of the engine, its settings and its layers.

use std::time::Duration;

use greenroom::advisor::Advice;
use greenroom_bus::{
    engine::{
        Control, HandlerView, HeldByShare, InputView, LongestLine, OnFull, OutageCause, OutputView,
        PausedShare, PoolView, ToldLetter,
    },
    handler::CrashLoop,
    sink::Trouble,
    source::InputState,
};

use super::{
    busy_shares::BusyShare,
    lines::ConfigFormat,
    recent::{Came, Recent, Took},
};
use crate::{
    config::{Autotune, Config},
    run::{layers::HandlerLayers, reload::Reload},
};

/// A worker that has had an event in hand for this long is wedged, unless the admin listener sets
/// another limit.
const WEDGED_AFTER: Duration = Duration::from_secs(60);

/// This share of dead letters is worth a look, unless the admin listener sets another one.
const LETTER_SHARE: f64 = 0.01;

/// The observed state at one moment.
#[derive(Debug, Clone)]
pub(in super::super) struct Seen {
    pub(super) format: ConfigFormat,
    pub(super) pools: Vec<Pool>,
    pub(super) handlers: Vec<Handler>,
    pub(super) outputs: Vec<Output>,
    pub(super) inputs: Vec<Input>,
    pub(super) parked: Parked,
    pub(super) letters: LettersSeen,
    /// Stores that have failed for good, apart from outputs.
    pub(super) failures: Vec<String>,
    /// Why there is no progress, if parked keys hold everything.
    pub(super) standstill: Option<String>,
    pub(super) wedged_after: Duration,
}

#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) autotune: Autotune,
    pub(super) advice: Option<Advice>,
    pub(super) workers: usize,
    pub(super) now: PoolNow,
    pub(super) on_full: OnFull,
    /// Starts per second, if they are limited.
    pub(super) rate: Option<f64>,
    /// How many events may wait.
    pub(super) capacity: usize,
    /// The file has `inbox_size`, so `queue` cannot be used with it.
    pub(super) says_inbox_size: bool,
    pub(super) autoscales: bool,
    pub(super) has_timeout: bool,
    pub(super) max_restarts: u32,
}

/// The state of a pool.
#[derive(Debug, Clone)]
pub(super) struct PoolNow {
    pub(super) live: usize,
    pub(super) busy: usize,
    pub(super) queued: u64,
    pub(super) paused: bool,
    /// Workers that have held one event for too long.
    pub(super) wedged: usize,
    /// The longest time that a worker has held one.
    pub(super) longest: Option<Duration>,
    /// The key of that one, if it was held for too long and is known.
    pub(super) wedged_key: Option<String>,
    /// How long the oldest waiting event has waited.
    pub(super) oldest: Option<Duration>,
    /// The key of most waiting events, if workers are idle at the same time.
    pub(super) hot: Option<HotKey>,
    /// Shares that wait for a resume, those with the most waiting events first.
    pub(super) paused_shares: Vec<PausedShare>,
    /// The share with most workers, if nobody gave it limits.
    pub(super) share: Option<BusyShare>,
    /// How many events it has had, if none of them had a share.
    pub(super) nameless: Option<u64>,
}

/// A key that only one worker at a time handles, while others are idle.
#[derive(Debug, Clone)]
pub(super) struct HotKey {
    pub(super) key: String,
    pub(super) handler: String,
    pub(super) waiting: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) name: String,
    pub(super) pool: String,
    pub(super) paused: bool,
    pub(super) outage: Option<Outage>,
    pub(super) crash_loop: Option<CrashLoop>,
    /// The recent and earlier durations of its attempts.
    pub(super) took: Option<Took>,
    /// How often a circuit breaker of it that is open has opened.
    pub(super) open: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Outage {
    pub(super) lasted: Duration,
    pub(super) error: String,
    pub(super) cause: OutageCause,
}

#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) trouble: Option<Trouble>,
    /// Why it no longer stores anything.
    pub(super) failure: Option<String>,
    pub(super) removed: bool,
    /// Workers that wait for room in it, by pool.
    pub(super) waiting: Vec<(String, u64)>,
}

#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) name: String,
    /// Bytes of events that were read and are not settled.
    pub(super) in_flight_bytes: u64,
    pub(super) held_back: u64,
    pub(super) last_settled: Option<Duration>,
    /// Files that are lost if they are removed.
    pub(super) files_at_risk: usize,
    /// The state of its connection, since when, and in which words; if that is worth reporting.
    pub(super) unconnected: Option<(InputState, Duration, String)>,
    /// A further remark of its source.
    pub(super) remark: Option<String>,
    pub(super) parked: InputParked,
    /// It reads nothing, and for a while none of its events has finished, or a share has stopped
    /// it.
    pub(super) stands_still: bool,
    /// The pool that most of its events wait for.
    pub(super) held_by: Option<String>,
    /// The share that stops it.
    pub(super) held_by_share: Option<HeldByShare>,
    /// Why its log cannot be written.
    pub(super) log_trouble: Option<String>,
}

/// The share of an input that parked keys hold.
#[derive(Debug, Clone, Default)]
pub(super) struct InputParked {
    pub(super) events: u64,
    /// They hold everything that it may have in flight: it is not read.
    pub(super) hold_all: bool,
    /// Further events of these keys are refused.
    pub(super) refuses: bool,
}

/// The state of dead letters.
#[derive(Debug, Clone)]
pub(super) struct LettersSeen {
    /// Within the last minute.
    pub(super) came: Came,
    /// One of the latest.
    pub(super) told: Option<ToldLetter>,
    /// They are reported from this share of all finished events.
    pub(super) share: f64,
    /// Why they cannot be stored at present.
    pub(super) trouble: Option<Trouble>,
}

/// A parked key.
#[derive(Debug, Clone, Default)]
pub(super) struct ParkedFirst {
    pub(super) key: String,
    pub(super) handler: String,
    pub(super) since: Duration,
    pub(super) error: String,
    /// The id of the event that failed.
    pub(super) event: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Parked {
    pub(super) keys: u64,
    pub(super) events: u64,
    /// The one that has waited longest.
    pub(super) first: Option<ParkedFirst>,
}

impl Seen {
    /// Observes the state. Locks each pool for a moment.
    pub(in super::super) fn now(
        control: &Control,
        reload: &Reload,
        layers: &HandlerLayers,
        recent: &Recent,
    ) -> Self {
        let config = reload.config();
        let admin = config.admin.as_ref();
        let wedged_after = admin.map_or(WEDGED_AFTER, |admin| admin.metrics.wedged_after);
        let pools = control.pool_views();
        let handlers = control.handler_views().into_iter();
        let outputs: Vec<_> = control.output_views().into_iter().map(output).collect();
        Self {
            format: if reload.is_toml() { ConfigFormat::Toml } else { ConfigFormat::Yaml },
            pools: pools
                .iter()
                .map(|view| pool(view, control, (&config, wedged_after), recent))
                .collect(),
            handlers: handlers.map(|of| handler(of, layers, recent)).collect(),
            failures: other_failures(control, &outputs),
            outputs,
            inputs: control.input_views().iter().map(|view| input(view, reload)).collect(),
            parked: parked(control),
            letters: LettersSeen {
                came: recent.came(&control.progress()),
                told: control.told_letter(),
                share: admin.map_or(LETTER_SHARE, |admin| admin.dead_letter_share),
                trouble: control.dead_letter_trouble(),
            },
            standstill: control.standstill(),
            wedged_after,
        }
    }

    /// The pool whose event has been handled for longest.
    pub(super) fn slowest(&self) -> Option<&Pool> {
        self.pools.iter().max_by_key(|pool| (pool.now.longest, pool.now.queued))
    }

    /// The output that workers of this pool wait for.
    pub(in super::super) fn output_of(&self, pool: &str) -> Option<&str> {
        let pool = self.pools.iter().find(|found| found.name == pool)?;
        self.output_waited_for(pool).map(|(output, _)| &*output.name)
    }

    /// The output that most waiting workers of a pool wait for, and their number, if they are half
    /// of the pool or the output is in trouble.
    pub(super) fn output_waited_for(&self, pool: &Pool) -> Option<(&Output, u64)> {
        let waits = |output: &Output| {
            let mut waiting = output.waiting.iter();
            waiting.find(|(name, _)| *name == pool.name).map_or(0, |(_, workers)| *workers)
        };
        let most = self.outputs.iter().max_by_key(|output| waits(output))?;
        let workers = waits(most);
        let is_known = most.trouble.is_some() && workers > 0;
        (is_known || workers > 0 && workers * 2 >= pool.workers as u64).then_some((most, workers))
    }
}

fn pool(
    view: &PoolView,
    control: &Control,
    (config, wedged_after): (&Config, Duration),
    recent: &Recent,
) -> Pool {
    let written = config.pools.iter().find(|pool| pool.name == view.name);
    let workers = match view.stats.busy {
        0 => Vec::new(),
        _ => control.pool(&view.name).map(|pool| pool.worker_stats()).unwrap_or_default(),
    };
    let shares = control.pool(&view.name).ok().and_then(|pool| pool.shares());
    let busy = || workers.iter().filter_map(|worker| worker.busy_for);
    Pool {
        name: view.name.clone(),
        autotune: written.map_or(Autotune::Off, |pool| pool.autotune),
        advice: view.advice,
        workers: view.stats.configured,
        now: PoolNow {
            live: view.stats.live,
            busy: view.stats.busy,
            queued: view.stats.queued,
            paused: view.paused,
            wedged: busy().filter(|time| *time >= wedged_after).count(),
            longest: busy().max(),
            wedged_key: busy()
                .any(|time| time >= wedged_after)
                .then(|| longest_key(control, &view.name))
                .flatten(),
            oldest: view.stats.oldest,
            hot: hot_key(view, control),
            share: shares.as_ref().and_then(|shares| recent.shares.busiest(&view.name, shares)),
            paused_shares: shares.as_ref().map_or_else(Vec::new, |shares| shares.paused()),
            nameless: shares.as_ref().and_then(|shares| shares.all_nameless()),
        },
        on_full: view.config.on_full,
        rate: written.and_then(|pool| pool.rate).map(|rate| rate.per_second),
        capacity: view.stats.capacity,
        says_inbox_size: written.is_some_and(|pool| pool.inbox_size.is_some()),
        autoscales: view.config.autoscale.is_some(),
        has_timeout: view.config.timeout.is_some(),
        max_restarts: view.config.restarts.max,
    }
}

/// A key is hot if this many of its events wait, and half of all waiting ones are its own.
const HOT: usize = 50;

/// The key of the event that a worker of this pool has held for longest.
fn longest_key(control: &Control, pool: &str) -> Option<String> {
    let workers = control.pool(pool).ok()?.workers().into_iter();
    let longest = workers.max_by_key(|worker| worker.stats.busy_for)?;
    Some(longest.key?.key.to_string())
}

/// Looks at all waiting events, but only if workers are idle.
fn hot_key(view: &PoolView, control: &Control) -> Option<HotKey> {
    let keys =
        view.keys.as_ref().filter(|keys| keys.waiting + view.stats.queued as usize >= HOT)?;
    if view.stats.busy * 2 > view.stats.live || view.paused {
        return None;
    }
    let line = control.pool(&view.name).ok()?.longest_line()?;
    let most = (keys.waiting.max(view.stats.queued as usize)) / 2;
    let LongestLine { key, handler, events, .. } = line;
    (events >= HOT && events >= most).then_some(HotKey { key, handler, waiting: events })
}

fn handler(view: HandlerView, layers: &HandlerLayers, recent: &Recent) -> Handler {
    let HandlerView { name, pool, paused, outage, crash_loop, .. } = view;
    let took = recent.took(&name);
    let outage = outage.map(|outage| Outage {
        lasted: outage.lasted,
        error: outage.error,
        cause: outage.cause,
    });
    Handler { open: layers.opened(&name), name, pool, paused, outage, crash_loop, took }
}

/// Failures of outputs are reported with the outputs.
fn other_failures(control: &Control, outputs: &[Output]) -> Vec<String> {
    let mut all = control.failures();
    all.retain(|failure| outputs.iter().all(|output| output.failure.as_ref() != Some(failure)));
    all
}

fn output(view: OutputView) -> Output {
    let OutputView { name, trouble, failure, removed, waiting, .. } = view;
    Output { name, trouble, failure, removed, waiting }
}

fn input(view: &InputView, reload: &Reload) -> Input {
    Input {
        name: view.name.clone(),
        in_flight_bytes: view.in_flight_bytes,
        held_back: view.held_back,
        last_settled: view.last_settled,
        files_at_risk: view.files_at_risk,
        unconnected: view
            .trouble()
            .map(|status| (status.state, status.lasted, status.detail.clone())),
        remark: view.status.as_ref().and_then(|status| status.remark.clone()),
        parked: InputParked {
            events: view.parked,
            hold_all: view.waits_for_parked_keys(),
            refuses: view.refuses_parked,
        },
        stands_still: view.stands_still() || view.stands_long_for_share(),
        held_by: view.held_by.clone(),
        held_by_share: view.stands_for_share().cloned(),
        log_trouble: reload.trouble(&view.name),
    }
}

fn parked(control: &Control) -> Parked {
    let progress = control.progress();
    if progress.parked_keys == 0 {
        return Parked::default();
    }
    let first = control.parked().into_iter().next();
    let first = first.map(|first| ParkedFirst {
        key: first.key,
        handler: first.handler,
        since: first.since,
        error: first.error.unwrap_or_default(),
        event: first.event.map_or(String::new(), |failed| failed.event.id().to_owned()),
    });
    Parked { keys: progress.parked_keys, events: progress.parked_events, first }
}
