//! Rereads the configuration during a run (C09): changes every live option, and names those that
//! cannot change.
//!
//! ```text
//! SIGHUP ─────────────┐                      ┌─ mistakes ──▶ all are listed; the old one stays
//!                     ├─▶ load, as `check` ──┤
//! POST /api/reload ───┘                      └─ compare ───▶ live settings are set, the rest is named
//! ```

mod ends;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use greenroom_bus::engine::{ChangeError, Control, PoolControl};
use greenroom_config::{Chosen, Listed, Registered};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::{assemble, targets::Targets};
use crate::{
    cli::Source,
    config::{self, Config, HandlerConfig, Kinds, Options, PoolConfig, Problems},
    report::Answers,
    shell::quoted,
};

/// Why a setting is left that can only be set before the start.
const BEFORE_THE_START: &str =
    "it can only be set before the start: stop greenroom and start it again";

/// The files of removed outputs that still store accepted events, and the logs of removed inputs
/// that are not settled.
type Leaving = Arc<Mutex<HashSet<PathBuf>>>;

/// Rereads the configuration on request.
pub(crate) struct Reload {
    source: Source,
    control: Control,
    /// The engine's runtime.
    runtime: Handle,
    leaving: Leaving,
    targets: Arc<Targets>,
    /// The configuration in effect: that of the start, with later changes. Locked only for a
    /// moment.
    config: Mutex<Arc<Config>>,
    /// Held during a reload, so that reloads do not overlap.
    under_way: Mutex<()>,
}

/// The result of a reload.
#[derive(Debug)]
pub(crate) enum Reloaded {
    /// The configuration cannot be used. Nothing has changed.
    Mistakes(Problems),
    /// It is in effect, except for the parts that were left.
    Done {
        /// For example `pools.erp.workers`.
        changed: Vec<String>,
        left: Vec<Left>,
    },
}

/// A setting that did not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// For example `pools.erp.engine`.
    pub(crate) what: String,
    pub(crate) why: String,
}

impl Reload {
    /// The runtime is the one that the engine runs on.
    pub(crate) fn new(
        source: Source,
        control: Control,
        config: Config,
        runtime: Handle,
        targets: Arc<Targets>,
    ) -> Self {
        let (config, under_way) = (Mutex::new(Arc::new(config)), Mutex::new(()));
        Self { source, control, runtime, leaving: Leaving::default(), targets, config, under_way }
    }

    /// The configuration in effect.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.lock().clone()
    }

    /// Whether the file is TOML; otherwise it is YAML.
    pub(crate) fn is_toml(&self) -> bool {
        self.source.file.extension().is_some_and(|extension| extension == "toml")
    }

    /// How many requests an `http` input has answered with each status.
    pub(crate) fn answers(&self, input: &str) -> Option<Answers> {
        self.targets.answers(input)
    }

    /// Why the log of an `http` input has no room, if so.
    pub(crate) fn trouble(&self, input: &str) -> Option<String> {
        self.targets.trouble(input)
    }

    /// Makes outputs check whether their files were rotated, rereads the configuration and applies
    /// every possible change. Reads files; the log shows the result.
    pub(crate) fn now(&self) -> Reloaded {
        let _under_way = self.under_way.lock();
        self.control.reopen_outputs();
        let (wanted, problems) = config::load(&self.source.file, &self.source.settings);
        tell_problems(&problems);
        let Some(wanted) = wanted else {
            tracing::error!(
                problems = problems.summary(),
                "the configuration has mistakes: nothing was changed, the old one stays in effect"
            );
            return Reloaded::Mistakes(problems);
        };
        let mut turn = self.turn();
        turn.pools(&wanted);
        turn.handlers(&wanted);
        turn.ends(&wanted);
        turn.fixed(&wanted);
        let Turn { config, changed, left, .. } = turn;
        *self.config.lock() = Arc::new(config);
        for Left { what, why } in &left {
            tracing::warn!(what, why, "left unchanged");
        }
        tracing::info!(?changed, left = left.len(), "the configuration was read again");
        Reloaded::Done { changed, left }
    }

    fn turn(&self) -> Turn<'_> {
        Turn {
            control: &self.control,
            runtime: &self.runtime,
            leaving: &self.leaving,
            targets: &self.targets,
            config: (*self.config()).clone(),
            changed: Vec::new(),
            left: Vec::new(),
        }
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
    targets: &'a Targets,
    /// The configuration in effect, updated step by step.
    config: Config,
    changed: Vec<String>,
    left: Vec<Left>,
}

impl Turn<'_> {
    fn leave(&mut self, what: String, why: impl ToString) {
        self.left.push(Left { what, why: why.to_string() });
    }

    /// Leaves a setting that cannot change during a run, if it differs.
    fn compare(&mut self, what: String, differs: bool) {
        if differs {
            self.leave(what, BEFORE_THE_START);
        }
    }

    /// Notes a change, or why it was not made.
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

    /// Names the parts that were added or removed.
    fn names(&mut self, section: &str, is: &[String], wanted: &[String]) {
        for name in wanted.iter().filter(|name| !is.contains(name)) {
            self.leave(format!("{section}.{name}"), format!("it is new; {BEFORE_THE_START}"));
        }
        for name in is.iter().filter(|name| !wanted.contains(name)) {
            self.leave(
                format!("{section}.{name}"),
                format!("it is gone from the file, but continues; {BEFORE_THE_START}"),
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
        for option in is.differs(to) {
            // `workers` and `queue` contain their effect.
            if ["preset", "inbox_size"].contains(&option) {
                continue;
            }
            let adaptive = option == "limit" && to.adaptive_limit().is_some();
            let what = path(if adaptive { "limit.adaptive" } else { option });
            match change(&pool, option, &is, to) {
                None => self.leave(what, BEFORE_THE_START),
                Some((set, take)) => {
                    if self.note(what, set) {
                        take(&mut self.config.pools[place], to);
                        if option == "shares" {
                            self.shares_by_hand(&pool, &is, to);
                        }
                    }
                }
            }
        }
    }

    /// Names the shares whose other limits have no effect, because an operator has set them.
    fn shares_by_hand(&mut self, pool: &PoolControl, is: &PoolConfig, to: &PoolConfig) {
        let limits = |pool: &PoolConfig, share: &str| {
            let named = pool.named_shares().find(|named| named.name == share);
            assemble::share_limits(named, pool)
        };
        let by_hand = pool.shares().map(|shares| shares.by_hand()).unwrap_or_default();
        for share in by_hand.keys().filter(|share| limits(is, share) != limits(to, share)) {
            let (pool, name) = (quoted(&is.name), quoted(share));
            self.leave(
                format!("pools.{}.shares.{share}", is.name),
                format!("it is set by hand: `greenroom share reset {pool} {name}`"),
            );
        }
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
        let (mut is, mut to) = (self.config.handlers[place].clone(), to.clone());
        let what = format!("handlers.{}", is.name);
        self.live_options(&what, &mut is.kind, &mut to.kind);
        for option in is.differs(&to) {
            let what = format!("{what}.{option}");
            if option != "retry" {
                self.leave(what, BEFORE_THE_START);
                continue;
            }
            let set = self.control.handler(&is.name);
            let set = set.and_then(|handler| handler.set_retry(to.retry));
            if self.note(what, set) {
                is.retry = to.retry;
            }
        }
        self.config.handlers[place] = is;
    }

    /// Applies the live options of a kind, and names the others that differ. Afterwards, both
    /// arguments are the options in effect. Called for each: its files may have new contents.
    /// Another kind, or one without live options, is left to the caller.
    fn live_options<R: Registered>(
        &mut self,
        place: &str,
        is: &mut Chosen<R>,
        wanted: &mut Chosen<R>,
    ) {
        if !is.is_as(wanted) || !is.has_live() {
            return;
        }
        let what = format!("{place}.{}", is.key());
        let taken = is.with_live(wanted);
        for option in is.fixed_that_differ(wanted) {
            self.leave(format!("{what}.{option}"), BEFORE_THE_START);
        }
        match self.targets.reconfigure(place, wanted.options()) {
            None if taken == *is => {}
            None => self.leave(what, BEFORE_THE_START),
            Some(Err(why)) => self.leave(what, why),
            Some(Ok(changed)) => {
                self.changed.extend(changed.then_some(what));
                *is = taken;
            }
        }
        *wanted = is.clone();
    }

    /// Settings that cannot change during a run. Sections with parts are compared part by part;
    /// pools include the options that they inherit.
    fn fixed(&mut self, to: &Config) {
        let compared = ["inputs", "pools", "handlers", "outputs", "buffer", "autotune", "advisor"];
        for option in self.config.differs(to) {
            if !compared.contains(&option) {
                self.leave(option.to_owned(), BEFORE_THE_START);
            }
        }
    }
}

/// The result of a change, and how to record it in the configuration in effect.
type Change = (Result<(), ChangeError>, fn(&mut PoolConfig, &PoolConfig));

/// Applies a change to an option of a pool. `None`: it cannot change during a run.
fn change(pool: &PoolControl, option: &str, is: &PoolConfig, to: &PoolConfig) -> Option<Change> {
    if !is_live::<PoolConfig>(option) {
        return None;
    }
    Some(match option {
        "workers" => (pool.resize(to.workers).map(drop), |is, to| is.workers = to.workers),
        "queue" => (pool.set_queue(to.queue), |is, to| is.queue = to.queue),
        "rate" => (pool.set_rate(to.rate.map(assemble::rate)), |is, to| is.rate = to.rate),
        "limit" if is.adaptive_limit() == to.adaptive_limit() => {
            (pool.set_concurrency(to.fixed_limit()), |is, to| is.limit.clone_from(&to.limit))
        }
        "share_queue" => {
            pool.set_share_queue(to.share_queue);
            (Ok(()), |is, to| is.share_queue = to.share_queue)
        }
        "shares" => (set_shares(pool, to), |is, to| is.shares.clone_from(&to.shares)),
        "autotune" => (pool.set_advisor(to.advised()), |is, to| is.autotune = to.autotune),
        "advisor" => (pool.set_advisor(to.advised()), |is, to| is.advisor = to.advisor),
        // Each of its handlers that inherits it applies it.
        "retry" => (Ok(()), |is, to| is.retry = to.retry),
        _ => return None,
    })
}

fn set_shares(pool: &PoolControl, to: &PoolConfig) -> Result<(), ChangeError> {
    let Some(shares) = pool.shares() else { return Ok(()) };
    let limits = |share| assemble::share_limits(share, to);
    let named = to.named_shares().map(|share| (share.name.as_str().into(), limits(Some(share))));
    shares.configure(limits(None), named.collect())
}

/// Whether the option is declared live.
fn is_live<T: Options>(option: &str) -> bool {
    T::GROUP.find(option).is_some_and(|option| option.live)
}
