//! Reads the configuration again while it runs (C09): what can change does, what cannot is named and left.
//!
//! ```text
//! SIGHUP ─────────────┐                      ┌─ mistakes ──▶ all are told; the old one goes on
//!                     ├─▶ load, as `check` ──┤
//! POST /api/reload ───┘                      └─ compare ───▶ live settings are set, the rest is named
//! ```

mod ends;

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use greenroom_bus::engine::{ChangeError, Control};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::assemble;
use crate::{
    cli::Source,
    config::{self, Config, HandlerConfig, PoolConfig, Problems},
};

/// Why a setting is left that can only be set before the start.
const BEFORE_THE_START: &str =
    "it can only be set before the start: stop greenroom and start it anew";

/// The files of outputs that were removed and store what they accepted.
type Leaving = Arc<Mutex<HashSet<PathBuf>>>;

/// Reads the configuration again when it is told to.
pub(crate) struct Reload {
    source: Source,
    control: Control,
    /// The engine's.
    runtime: Handle,
    leaving: Leaving,
    /// What holds: the configuration of the start, with what was changed since. Locked for a moment only.
    config: Mutex<Arc<Config>>,
    /// Held by who reloads, so that one comes after the other.
    turn: Mutex<()>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// The configuration cannot be used. Nothing has changed.
    Mistakes(Problems),
    /// It holds, but for what was left.
    Done {
        /// For example `pools.erp.workers`.
        changed: Vec<String>,
        left: Vec<Left>,
    },
}

/// A setting that stays what it was.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// For example `pools.erp.engine`.
    pub(crate) what: String,
    pub(crate) why: String,
}

impl Reload {
    /// The runtime is the one that the engine runs on.
    pub(crate) fn new(source: Source, control: Control, config: Config, runtime: Handle) -> Self {
        let (config, turn) = (Mutex::new(Arc::new(config)), Mutex::new(()));
        Self { source, control, runtime, leaving: Leaving::default(), config, turn }
    }

    /// The configuration that holds.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.lock().clone()
    }

    /// Has outputs looked at, which may have been rotated, reads the configuration again and
    /// changes what can be. Reads files; the log tells what came of it.
    pub(crate) fn now(&self) -> Reloaded {
        let _turn = self.turn.lock();
        self.control.reopen_outputs();
        let (wanted, problems) = config::load(&self.source.file, &self.source.settings);
        tell_problems(&problems);
        let Some(wanted) = wanted else {
            tracing::error!(
                problems = problems.summary(),
                "the configuration has mistakes: nothing was changed, the old one holds"
            );
            return Reloaded::Mistakes(problems);
        };
        let mut turn = Turn {
            control: &self.control,
            runtime: &self.runtime,
            leaving: &self.leaving,
            config: (*self.config()).clone(),
            changed: Vec::new(),
            left: Vec::new(),
        };
        turn.pools(&wanted);
        turn.handlers(&wanted);
        turn.ends(&wanted);
        turn.fixed(&wanted);
        let Turn { config, changed, left, .. } = turn;
        *self.config.lock() = Arc::new(config);
        for Left { what, why } in &left {
            tracing::warn!(what, why, "left as it was");
        }
        tracing::info!(?changed, left = left.len(), "the configuration was read again");
        Reloaded::Done { changed, left }
    }
}

fn tell_problems(problems: &Problems) {
    for problem in problems.sorted() {
        let (at, help) = (problems.place(problem), problem.help.as_deref().unwrap_or_default());
        match problem.severity {
            config::Severity::Error => tracing::error!(at, help, "{}", problem.message),
            config::Severity::Warning => tracing::warn!(at, help, "{}", problem.message),
        }
    }
}

/// One reload under way.
struct Turn<'a> {
    control: &'a Control,
    runtime: &'a Handle,
    leaving: &'a Leaving,
    /// What holds, changed as it goes on.
    config: Config,
    changed: Vec<String>,
    left: Vec<Left>,
}

impl Turn<'_> {
    fn leave(&mut self, what: String, why: impl ToString) {
        self.left.push(Left { what, why: why.to_string() });
    }

    /// What is wanted cannot be had while it runs, where it differs.
    fn compare(&mut self, what: String, differs: bool) {
        if differs {
            self.leave(what, BEFORE_THE_START);
        }
    }

    /// Notes what was set, or why it was not.
    fn note(&mut self, what: String, done: Result<(), ChangeError>) -> bool {
        match done {
            Ok(()) => self.changed.push(what),
            Err(why) => {
                self.leave(what, why);
                return false;
            }
        }
        true
    }

    /// Names what was added and what is gone.
    fn names(&mut self, section: &str, is: &[String], wanted: &[String]) {
        for name in wanted.iter().filter(|name| !is.contains(name)) {
            self.leave(format!("{section}.{name}"), format!("it is new; {BEFORE_THE_START}"));
        }
        for name in is.iter().filter(|name| !wanted.contains(name)) {
            self.leave(
                format!("{section}.{name}"),
                format!("it is gone from the file, and goes on; {BEFORE_THE_START}"),
            );
        }
    }

    fn pools(&mut self, wanted: &Config) {
        let names = |config: &Config| config.pools.iter().map(|pool| pool.name.clone()).collect();
        let (is, to): (Vec<_>, Vec<_>) = (names(&self.config), names(wanted));
        self.names("pools", &is, &to);
        for place in 0..self.config.pools.len() {
            let name = &self.config.pools[place].name;
            if let Some(to) = wanted.pools.iter().find(|pool| pool.name == *name) {
                self.pool(place, to);
            }
        }
    }

    fn pool(&mut self, place: usize, to: &PoolConfig) {
        let is = self.config.pools[place].clone();
        let path = |what: &str| format!("pools.{}.{what}", is.name);
        let pool = match self.control.pool(&is.name) {
            Ok(pool) => pool,
            Err(why) => return self.leave(path("*"), why),
        };
        if is.workers != to.workers && self.note(path("workers"), pool.resize(to.workers).map(drop))
        {
            self.config.pools[place].workers = to.workers;
        }
        if is.queue != to.queue && self.note(path("queue"), pool.set_queue(to.queue)) {
            self.config.pools[place].queue = to.queue;
        }
        if is.rate != to.rate {
            let set = pool.set_rate(to.rate.map(assemble::rate));
            if self.note(path("rate"), set) {
                self.config.pools[place].rate = to.rate;
            }
        }
        if is.limit != to.limit {
            let set = pool.set_concurrency(to.limit);
            if self.note(path("limit"), set) {
                self.config.pools[place].limit = to.limit;
            }
        }
        self.compare(path("engine"), is.engine != to.engine);
        self.compare(path("max_per_key"), is.max_per_key != to.max_per_key);
        self.compare(path("batch"), is.batch != to.batch);
        self.compare(path("on_full"), is.on_full != to.on_full);
        self.compare(path("timeout"), is.timeout != to.timeout);
        self.compare(path("weight"), is.weight != to.weight);
        self.compare(path("limit.adaptive"), is.adaptive != to.adaptive);
        self.compare(path("autoscale"), is.autoscale != to.autoscale);
        self.compare(path("dedicated_threads"), is.dedicated_threads != to.dedicated_threads);
        self.compare(path("order_by"), is.order_by != to.order_by);
        if is.retry != to.retry {
            // Its handlers carry it out, each that inherits from it.
            self.changed.push(path("retry"));
            self.config.pools[place].retry = to.retry;
        }
        self.compare(path("max_restarts"), is.max_restarts != to.max_restarts);
        self.compare(path("on_final_failure"), is.on_final_failure != to.on_final_failure);
        self.compare(path("enable_event_stream"), is.event_stream != to.event_stream);
        // What nothing above names is not passed over either.
        let named = PoolConfig {
            workers: is.workers,
            queue: is.queue,
            rate: is.rate,
            limit: is.limit,
            engine: is.engine,
            max_per_key: is.max_per_key,
            batch: is.batch,
            on_full: is.on_full,
            timeout: is.timeout,
            weight: is.weight,
            adaptive: is.adaptive,
            autoscale: is.autoscale,
            dedicated_threads: is.dedicated_threads,
            order_by: is.order_by.clone(),
            retry: is.retry,
            max_restarts: is.max_restarts,
            on_final_failure: is.on_final_failure,
            event_stream: is.event_stream,
            ..to.clone()
        };
        self.compare(format!("pools.{} (another setting)", is.name), named != is);
    }

    fn handlers(&mut self, wanted: &Config) {
        let names =
            |config: &Config| config.handlers.iter().map(|handler| handler.name.clone()).collect();
        let (is, to): (Vec<_>, Vec<_>) = (names(&self.config), names(wanted));
        self.names("handlers", &is, &to);
        for place in 0..self.config.handlers.len() {
            let name = &self.config.handlers[place].name;
            if let Some(to) = wanted.handlers.iter().find(|handler| handler.name == *name) {
                self.handler(place, to);
            }
        }
    }

    fn handler(&mut self, place: usize, to: &HandlerConfig) {
        let is = self.config.handlers[place].clone();
        let path = |what: &str| format!("handlers.{}.{what}", is.name);
        let retry =
            |handler: &HandlerConfig| (handler.attempts, handler.backoff, handler.retry_total);
        if retry(&is) != retry(to) {
            let set = self.control.handler(&is.name);
            let set = set.and_then(|handler| handler.set_retry(assemble::retry(to)));
            if self.note(path("retry"), set) {
                let handler = &mut self.config.handlers[place];
                (handler.attempts, handler.backoff, handler.retry_total) = retry(to);
            }
        }
        self.compare(path("on"), is.on != to.on);
        self.compare(path("pool"), is.pool != to.pool);
        self.compare(path("order_by"), is.order_by != to.order_by);
        self.compare(path("key_required"), is.key_required != to.key_required);
        self.compare(path("match"), is.matches != to.matches);
        self.compare(path("fan_out"), is.fan_out != to.fan_out);
        self.compare(path("ack"), is.ack_on_success != to.ack_on_success);
        self.compare(path("loopback"), is.loopback != to.loopback);
        self.compare(path("layers"), is.layers != to.layers);
        self.compare(path("(its kind)"), is.kind != to.kind);
        let named = HandlerConfig {
            attempts: is.attempts,
            backoff: is.backoff,
            on: is.on.clone(),
            pool: is.pool.clone(),
            order_by: is.order_by.clone(),
            key_required: is.key_required,
            retry_total: is.retry_total,
            matches: is.matches.clone(),
            fan_out: is.fan_out,
            ack_on_success: is.ack_on_success,
            loopback: is.loopback,
            layers: is.layers.clone(),
            kind: is.kind.clone(),
            ..to.clone()
        };
        self.compare(format!("handlers.{} (another setting)", is.name), named != is);
    }

    /// What cannot change while it runs.
    fn fixed(&mut self, to: &Config) {
        let is = self.config.clone();
        let differs = |what: &str, differs: bool| (what.to_owned(), differs);
        let settings = [
            differs("no_handler", is.no_handler != to.no_handler),
            differs("handler_rejected", is.handler_rejected != to.handler_rejected),
            differs("loopback", is.loopback != to.loopback),
            differs("dead_letters", is.dead_letters != to.dead_letters),
            differs("shutdown", is.shutdown_deadline != to.shutdown_deadline),
            differs("outage", is.outage != to.outage),
            differs("admin", is.admin != to.admin),
            differs("all_outputs", is.all_outputs != to.all_outputs),
        ];
        for (what, differs) in settings {
            self.compare(what, differs);
        }
    }
}
