//! One sample of everything that the page shows.

use std::{collections::HashMap, sync::Arc};

use greenroom::stats::{LatencySnapshot, WorkerStats};
use greenroom_bus::engine::{AttemptsSnapshot, HandlerView, PoolView};
use serde_json::{Value, json};

use super::{
    Daemon,
    events::{Events, unix_millis},
    health, views,
};
use crate::config::Config;

/// Parked keys and hot keys of a sample.
const PARKED: usize = 200;
const HOTTEST: usize = 10;

/// Workers of a sample, of all pools: beyond that, `/api/pools/NAME/workers` shows those of a pool.
const WORKERS: usize = 8_192;

/// With more parked keys, they are looked up in one sample out of this many.
const MANY_PARKED: u64 = 200;
const SELDOM: u64 = 10;

/// Takes samples, with the state that is needed from one to the next.
pub(super) struct Sampler {
    daemon: Arc<Daemon>,
    /// By pool: the measurements up to the last sample.
    latencies: HashMap<String, LatencySnapshot>,
    /// The same, by handler.
    attempts: HashMap<String, AttemptsSnapshot>,
    events: Events,
    taken: u64,
    parked: Value,
}

impl Sampler {
    pub(super) fn new(daemon: Arc<Daemon>) -> Self {
        let (latencies, attempts) = (HashMap::new(), HashMap::new());
        Self { daemon, latencies, attempts, events: Events::new(), taken: 0, parked: json!([]) }
    }

    pub(super) fn sample(&mut self) -> Value {
        let daemon = self.daemon.clone();
        let (control, config) = (&daemon.control, daemon.reload.config());
        let mut room = WORKERS;
        let pools = control.pool_views();
        let pools: Vec<_> = pools.iter().map(|view| self.pool(view, &config, &mut room)).collect();
        let handlers = control.handler_views();
        let attempts = control.handlers().into_iter().map(|handler| handler.attempts());
        let handlers = handlers.iter().zip(attempts);
        let handlers: Vec<_> =
            handlers.map(|(view, now)| self.handler(view, now, &config)).collect();
        let outputs = control.output_views();
        let outputs: Vec<_> = outputs.iter().map(|view| views::output(view, &config)).collect();
        let hottest: Vec<_> = control.hottest(HOTTEST).iter().map(views::hot).collect();
        self.look_at_parked();
        self.taken += 1;
        json!({
            "at_ms": unix_millis(),
            "up_ms": daemon.started.elapsed().as_millis() as u64,
            "health": health::view(&daemon.figures.seen()),
            "run": views::run(&daemon),
            "pools": pools,
            "handlers": handlers,
            "outputs": outputs,
            "parked": self.parked,
            "hottest": hottest,
            "has_letter_store": daemon.has_letter_store(),
            "events": self.events.latest(),
        })
    }

    fn handler(&mut self, view: &HandlerView, now: AttemptsSnapshot, config: &Config) -> Value {
        let mut handler = views::handler(view, &now, config, &self.daemon.layers);
        let before = self.attempts.remove(&view.name).unwrap_or_default();
        let took = now.took_since(&before);
        handler["recent"] = json!({
            "p50_ms": took.map(|took| views::millis(took.p50)),
            "p99_ms": took.map(|took| views::millis(took.p99)),
            "attempts": (now.succeeded + now.failed) - (before.succeeded + before.failed),
        });
        self.attempts.insert(view.name.clone(), now);
        handler
    }

    fn pool(&mut self, view: &PoolView, config: &Config, room: &mut usize) -> Value {
        let mut pool = views::pool(view, config);
        let Ok(control) = self.daemon.control.pool(&view.name) else { return pool };
        let now = control.latency_snapshot();
        let before = self.latencies.insert(view.name.clone(), now.clone());
        // The first sample covers all the time since the start, which is better than nothing.
        let (queueing, handling) = now.since(&before.unwrap_or_default());
        pool["recent"] = json!({
            "queueing_ms": views::spread(&queueing),
            "handling_ms": views::spread(&handling),
            "measured": if view.in_outage { 0 } else { handling.count },
        });
        if stats_fit(view, room) {
            pool["slots"] = control.worker_stats().iter().map(slot).collect();
        }
        pool
    }

    /// Each is looked up in the queue of its pool, so a large number is looked up rarely.
    fn look_at_parked(&mut self) {
        let parked = self.daemon.control.progress().parked_keys;
        if parked <= MANY_PARKED || self.taken.is_multiple_of(SELDOM) {
            let parked = self.daemon.control.parked();
            self.parked = parked.iter().take(PARKED).map(views::parked).collect();
        }
    }
}

fn stats_fit(view: &PoolView, room: &mut usize) -> bool {
    let workers = view.stats.configured.max(1);
    let fits = workers <= *room;
    *room -= if fits { workers } else { 0 };
    fits
}

/// How many milliseconds the worker of a slot has held its event; -1 if it has none, -2 while it is
/// being started, -3 if its slot is disabled, null if the slot is vacant.
fn slot(worker: &WorkerStats) -> Value {
    use greenroom::inspect::WorkerStatus::{Disabled, Starting};
    match (worker.status, worker.busy_for) {
        (None, _) => Value::Null,
        (Some(Disabled), _) => json!(-3),
        (_, Some(busy)) => json!(busy.as_millis() as u64),
        (Some(Starting), None) => json!(-2),
        (Some(_), None) => json!(-1),
    }
}
