//! Options that have no effect because of another. Nonsense is an error, a useless option a
//! warning.

use std::time::Duration;

use greenroom::event_pool::Engine;
use greenroom_bus::{
    engine::{Finish, OnFull},
    handler::Makes,
    http::Verdict,
};
use greenroom_config::{Kinds, Places, Problem, Problems, plural};

use super::options::{
    Autotune, Config, HandlerConfig, InputConfig, LayerConfig, OnFinalFailure, OtlpConfig,
    PoolConfig,
};

/// Reports each option that was written but does nothing.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut effect = Effect { config, places, problems };
    effect.root();
    for input in &config.inputs {
        effect.input(&format!("inputs.{}", input.name), input);
    }
    for pool in &config.pools {
        effect.pool(&format!("pools.{}", pool.name), pool);
    }
    for handler in &config.handlers {
        effect.handler(&format!("handlers.{}", handler.name), handler);
    }
    if let Some(otlp) = config.otlp() {
        effect.otlp("telemetry.otlp", otlp);
    }
}

struct Effect<'a> {
    config: &'a Config,
    places: &'a Places,
    problems: &'a mut Problems,
}

impl<'a> Effect<'a> {
    /// A warning at an option, if it was written.
    fn useless(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        if self.places.has(path) {
            self.problems.push(Problem::warning(message, self.places.at(path).place).help(help));
        }
    }

    fn handlers_of(&self, pool: &PoolConfig) -> Vec<&'a HandlerConfig> {
        self.config.handlers.iter().filter(|handler| handler.pool == pool.name).collect()
    }

    fn is_used(&self, pool: &PoolConfig) -> bool {
        !self.handlers_of(pool).is_empty()
    }

    fn root(&mut self) {
        let config = self.config;
        if config.all_outputs && config.outputs.len() < 2 {
            let text = "`all_outputs` makes no difference with fewer than two outputs";
            self.useless("all_outputs", text, "leave it out");
        }
        let takes_all = |handler: &&HandlerConfig| {
            handler.on.iter().any(|on| on == "**") && handler.takes_all()
        };
        if let Some(all) = config.handlers.iter().find(takes_all) {
            let text = format!("every event has a handler: `{}` takes them all", all.name);
            self.useless("no_handler", text, "leave `no_handler` out");
        }
        if config.handlers.iter().all(HandlerConfig::takes_all) {
            let text = "no handler rejects an event: none of them has a `match` or `where`";
            self.useless("handler_rejected", text, "leave `handler_rejected` out");
        }
        if config.pools.iter().all(|pool| !self.is_used(pool) || self.names_its_queue(pool)) {
            let text = "every pool sets its own number of waiting events";
            self.useless("buffer", text, "leave `buffer` out");
        }
        if config.shutdown.finish == Some(Finish::InHand)
            && config.inputs.iter().all(|input| input.kind.keeps_positions())
        {
            let text = "every input keeps its positions: a stop waits for no more anyway";
            self.useless("shutdown.finish", text, "leave `finish` out");
        }
        if config.pools.iter().all(|pool| pool.autotune == Autotune::Off) {
            let text = "the sizes of pools are not watched: the `autotune` of each is `off`";
            self.useless("advisor", text, "write `autotune: say`, or leave `advisor` out");
        }
        let used = config.pools.iter().filter(|pool| self.is_used(pool));
        if used.clone().all(|pool| pool.on_full != OnFull::Pause) {
            let text = "no event waits for a full pool: every pool's `on_full` refuses them";
            for input in &config.inputs {
                let path = format!("inputs.{}.run_ahead", input.name);
                self.useless(&path, text, "leave `run_ahead` out");
            }
        }
    }

    fn names_its_queue(&self, pool: &PoolConfig) -> bool {
        let written = |option| self.places.has(&format!("pools.{}.{option}", pool.name));
        ["queue", "inbox_size", "preset"].into_iter().any(written)
    }

    fn input(&mut self, path: &str, input: &InputConfig) {
        if !input.kind.keeps_positions() {
            let text = "this input has no positions to store";
            let help = "leave `commit_every` out; a file keeps them with `checkpoint`";
            self.useless(&format!("{path}.commit_every"), text, help);
        }
    }

    fn pool(&mut self, path: &str, pool: &PoolConfig) {
        self.sizes(path, pool);
        self.limits(path, pool);
        self.keys(path, pool);
        if pool.autotune == Autotune::Off {
            let text = "the sizes of this pool are not watched: its `autotune` is `off`";
            let help = "write `autotune: say`, or leave this out";
            self.useless(&format!("{path}.advisor"), text, help);
        }
        self.retry(&format!("{path}.retry"), pool.retry.map(|retry| retry.attempts));
        let others = self.config.pools.iter().filter(|other| other.name != pool.name);
        if pool.dedicated_threads.is_none() && !others.clone().any(|other| self.is_used(other)) {
            let text = "no other pool has handlers, so this one has no competitor";
            self.useless(&format!("{path}.weight"), text, "leave `weight` out");
        }
        if let Some(timeout) = pool.timeout {
            for handler in self.handlers_of(pool) {
                self.shadowed(&handler.name, timeout, &format!("the pool `{}`", pool.name));
            }
        }
    }

    fn sizes(&mut self, path: &str, pool: &PoolConfig) {
        let written = |option: &str| self.places.has(&format!("{path}.{option}"));
        if written("workers") && (written("queue") || written("inbox_size")) {
            let text = "both sizes of the preset are overridden";
            self.useless(&format!("{path}.preset"), text, "leave `preset` out, or one of them");
        }
        if let Some(bounds) = pool.autoscale.filter(|bounds| bounds.min == bounds.max) {
            let text = format!(
                "its minimum and maximum are both {}: nothing scales",
                plural(bounds.min, "worker")
            );
            let help = "raise `max`, or write `workers` instead";
            self.useless(&format!("{path}.autoscale"), text, help);
        }
        if let Some(batch) = pool.batch.filter(|batch| batch.events > pool.queue) {
            let text = format!(
                "a batch of {} is never full: {} may wait",
                batch.events,
                plural(pool.queue, "event")
            );
            let help = "lower `events`, or raise the pool's `queue`";
            self.useless(&format!("{path}.batch.events"), text, help);
        }
    }

    fn limits(&mut self, path: &str, pool: &PoolConfig) {
        let most = pool.autoscale.map_or(pool.workers, |autoscale| autoscale.max);
        let help = "a limit is below the workers; lower it, leave it out, or raise `workers`";
        if let Some(limit) = pool.fixed_limit().filter(|limit| *limit >= most) {
            let text =
                format!("a limit of {limit} holds nothing back with {}", plural(most, "worker"));
            self.useless(&format!("{path}.limit"), text, help);
        }
        let Some(adaptive) = pool.adaptive_limit() else { return };
        if adaptive.min >= most {
            let text = format!(
                "this limit holds nothing back: its `min` is {}, with {}",
                adaptive.min,
                plural(most, "worker")
            );
            self.useless(&format!("{path}.limit"), text, help);
        } else if adaptive.max > most {
            let text = format!(
                "a limit of {} is never reached: the pool has {} in all",
                adaptive.max,
                plural(most, "worker")
            );
            let help = format!("write `max: {most}`, or raise `workers`");
            self.useless(&format!("{path}.limit.adaptive.max"), text, help);
        }
    }

    fn keys(&mut self, path: &str, pool: &PoolConfig) {
        let engine = pool.engine;
        let park = format!("{path}.on_final_failure");
        let parks = pool.on_final_failure == OnFinalFailure::Park;
        let bound = format!("{path}.max_per_key");
        if pool.engine != Engine::Keyed {
            let text = format!("events never wait behind a key: the `engine` is `{engine}`");
            self.useless(&bound, text, "leave `max_per_key` out, or write `engine: keyed`");
            if parks {
                let text = format!("a pool whose `engine` is `{engine}` cannot park a key");
                let help = "write `engine: keyed`; otherwise each such event becomes a dead letter, \
                            which is `skip`";
                let place = self.places.at(&park).place;
                self.problems.push(Problem::error(text, place).help(help));
            }
            return;
        }
        if let Some(most) = pool.max_per_key.filter(|most| *most > pool.queue) {
            let text = format!(
                "{most} events never wait behind a key: the queue holds {} in all",
                pool.queue
            );
            self.useless(&bound, text, "lower `max_per_key`, or raise the pool's `queue`");
        }
        let handlers = self.handlers_of(pool);
        if !handlers.is_empty() && handlers.iter().all(|handler| handler.order_by.is_none()) {
            let help = "set the key: `order_by: subject`";
            let text = "no handler of this pool has an `order_by`, so no event has a key";
            self.useless(&bound, text, help);
            if parks {
                let text =
                    format!("{text} to park: each that fails for good becomes a dead letter");
                self.useless(&park, text, help);
            }
        }
    }

    /// `attempts`: the attempts of this `retry`, if it was written.
    fn retry(&mut self, path: &str, attempts: Option<u32>) {
        if attempts == Some(1) {
            let text = "with a single attempt there is nothing to wait for";
            for option in ["backoff", "total"] {
                let help = format!("leave `{option}` out, or raise `attempts`");
                self.useless(&format!("{path}.{option}"), text, help);
            }
        }
    }

    fn handler(&mut self, path: &str, handler: &HandlerConfig) {
        self.retry(&format!("{path}.retry"), Some(handler.retry.attempts));
        if let Some(total) = handler.retry.total
            && total < handler.retry.backoff.first
            && handler.retry.attempts > 1
        {
            let text = "no second attempt is ever made: the first wait is longer than this";
            let help = "raise `total`, or lower `backoff`";
            self.useless(&format!("{path}.retry.total"), text, help);
        }
        self.makes_events(path, handler);
        self.layers(path, handler);
        self.parks_without_a_key(path, handler);
        self.has_too_few_workers(path, handler);
    }

    fn otlp(&mut self, path: &str, otlp: &OtlpConfig) {
        if !(otlp.traces || otlp.metrics || otlp.logs) {
            let text = "nothing is sent: traces, metrics and logs are all off";
            self.useless(path, text, "leave `otlp` out, or write `traces: true`");
            return;
        }
        for (signal, is_sent, options) in [
            ("traces", otlp.traces, ["sample", "keys"].as_slice()),
            ("metrics", otlp.metrics, &["every"]),
        ] {
            for option in options.iter().filter(|_| !is_sent) {
                let text = format!("`{signal}: false` leaves nothing for this to act on");
                let help = format!("leave `{option}` out, or write `{signal}: true`");
                self.useless(&format!("{path}.{option}"), text, help);
            }
        }
    }

    fn makes_events(&mut self, path: &str, handler: &HandlerConfig) {
        match handler.kind.makes() {
            Makes::Nothing => {
                let text = "this handler makes no events";
                self.useless(&format!("{path}.ack"), text, "leave `ack` out");
                self.useless(&format!("{path}.loopback"), text, "leave `loopback` out");
            }
            Makes::Same if handler.loopback > 1 => {
                let text = "this handler makes one event from each: room for more is never used";
                self.useless(&format!("{path}.loopback"), text, "write `loopback: 1`");
            }
            Makes::Same | Makes::Answers => {}
        }
    }

    fn layers(&mut self, path: &str, handler: &HandlerConfig) {
        let mut shortest: Option<Duration> = None;
        for (place, layer) in handler.layers.iter().enumerate() {
            let LayerConfig::Timeout(timeout) = layer else { continue };
            if shortest.is_some_and(|outer| outer <= *timeout) {
                let text = "this timeout never occurs: one around it is as short";
                let at = format!("{path}.layers.{place}");
                self.useless(&at, text, "shorten it, or remove it");
            }
            shortest = Some(shortest.map_or(*timeout, |outer| outer.min(*timeout)));
        }
        if let Some(timeout) = shortest {
            self.shadowed(&handler.name, timeout, "its layer `timeout`");
        }
    }

    /// A timeout of the handler's kind that an outer one always precedes.
    fn shadowed(&mut self, handler: &str, outer: Duration, whose: &str) {
        let handlers = &self.config.handlers;
        let Some(found) = handlers.iter().find(|found| found.name == handler) else { return };
        let (kind, Some(own)) = (found.kind.key(), found.kind.timeout()) else { return };
        if outer <= own {
            let text = format!("this timeout never occurs: that of {whose} is as short");
            let help = "shorten it, or lengthen the other: the error of this one is more precise";
            self.useless(&format!("handlers.{handler}.{kind}.timeout"), text, help);
        }
    }

    /// Each event in flight to a process occupies a worker.
    fn has_too_few_workers(&mut self, path: &str, handler: &HandlerConfig) {
        let Some(in_flight) = handler.kind.in_flight() else { return };
        let pool = self.config.pools.iter().find(|pool| pool.name == handler.pool);
        let Some(pool) = pool.filter(|pool| pool.autoscale.is_none()) else { return };
        if in_flight > pool.workers {
            let text = format!("the pool's workers limit the events in flight: {}", pool.workers);
            let help = "raise the `workers` of the pool: processes times `in_flight`";
            self.useless(&format!("{path}.{}.in_flight", handler.kind.key()), text, help);
        }
    }

    fn parks_without_a_key(&mut self, path: &str, handler: &HandlerConfig) {
        let Some(status) = handler.kind.status() else { return };
        let pool = self.config.pools.iter().find(|pool| pool.name == handler.pool);
        let keyed = pool.is_some_and(|pool| pool.engine == Engine::Keyed);
        if keyed && handler.order_by.is_some() {
            return;
        }
        for (on, _) in status.iter().filter(|(_, verdict)| verdict == Verdict::Park.as_str()) {
            let text = "no event has a key to park here: each becomes a dead letter";
            let help =
                "give the handler an `order_by` and its pool `engine: keyed`, or write `reject`";
            self.useless(&format!("{path}.{}.status.{on}", handler.kind.key()), text, help);
        }
    }
}
