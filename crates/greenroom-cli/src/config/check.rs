//! Checks across several values: names that must exist, types taken twice, patterns, URLs.
//! [`reach`](super::reach) checks the world outside the file.

use std::{collections::HashMap, net::SocketAddr, path::Path};

use greenroom::event_pool::Engine;
use greenroom_bus::{
    http::{check_headers, check_scheme, check_target},
    source::RecordShape,
};
use greenroom_config::{At, Kinds, Places, Problem, Problems, near, plural};

use super::{
    options::{Breaker, Config, HandlerConfig, LayerConfig, OtlpConfig, PoolConfig, RecordsConfig},
    pattern,
};

/// Reports every problem of a configuration that shows without looking outside of it.
pub(super) fn check(config: &Config, places: &Places, problems: &mut Problems) {
    let mut checker = Checker { config, places, problems };
    checker.empty_sections();
    checker.records();
    checker.listeners();
    checker.pools();
    checker.types_taken_twice();
    for handler in &config.handlers {
        checker.handler(handler);
    }
    for output in &config.outputs {
        checker.patterns(&format!("outputs.{}.on", output.name), &output.on);
    }
    if let Some(loopback) = &config.loopback {
        checker.patterns("loopback.on", &loopback.on);
    }
    if let Some(otlp) = config.otlp() {
        checker.otlp("telemetry.otlp", otlp);
    }
    checker.breakers();
}

struct Checker<'a> {
    config: &'a Config,
    places: &'a Places,
    problems: &'a mut Problems,
}

impl<'a> Checker<'a> {
    fn error(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::error(message, self.places.at(path).place).help(help));
    }

    fn warning(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::warning(message, self.places.at(path).place).help(help));
    }

    /// A section whose parts are all wrong is not empty: its places are known.
    fn empty_sections(&mut self) {
        for (section, what) in [("inputs", "no input"), ("handlers", "no handler")] {
            if self.places.has(section) && !self.places.has_inside(section) {
                self.error(section, what, format!("name at least one under `{section}`"));
            }
        }
    }

    fn records(&mut self) {
        for input in &self.config.inputs {
            let path = format!("inputs.{}.records", input.name);
            let Some(RecordShape { one, parts }) = input.kind.record() else {
                if self.places.has(&path) {
                    let kind = input.kind.key();
                    let text = format!("a `{kind}` input gives events: there are no records");
                    self.error(&path, text, "leave `records` out");
                }
                continue;
            };
            for (attribute, part) in input.records.iter().flat_map(RecordsConfig::parts) {
                let at = format!("{path}.{attribute}.{part}");
                if let Some((text, help)) = input.kind.lacks(part) {
                    self.error(&at, text, help);
                } else if part != "literal" && !parts.contains(&part) {
                    let shown = if part == "header" { "headers" } else { part };
                    let has: Vec<_> = parts.iter().map(|part| format!("`{part}`")).collect();
                    let help = format!("{one} has {}; or write the text itself", has.join(", "));
                    self.error(&at, format!("{one} has no {shown}"), help);
                }
            }
        }
    }

    /// Only one of two listeners at the same address could start. Port 0 is different each time.
    fn listeners(&mut self) {
        let inputs = self.config.inputs.iter().filter_map(|input| {
            let path = format!("inputs.{}.{}.listen", input.name, input.kind.key());
            Some((path, input.kind.listens()?))
        });
        let admin = self.config.admin.iter();
        let admin = admin.map(|admin| ("admin.listen".to_owned(), admin.listen.0));
        let all: Vec<_> = admin.chain(inputs).filter(|(_, at)| at.port() != 0).collect();
        for (place, (path, at)) in all.iter().enumerate() {
            let clashes = |(_, other): &&(String, SocketAddr)| {
                let (one, other) = (at, other);
                one.port() == other.port()
                    && (one.ip() == other.ip()
                        || one.ip().is_unspecified()
                        || other.ip().is_unspecified())
            };
            if let Some((first, _)) = all[..place].iter().find(clashes) {
                let text = format!("`{first}` listens there already");
                // A default has no place in the file, but its input does.
                let input = path.strip_suffix(".listen").unwrap_or(path);
                let at = if self.places.has(path) { path } else { input };
                self.error(at, text, "give each its own port");
            }
        }
    }

    fn pools(&mut self) {
        for pool in &self.config.pools {
            self.pool(pool);
            let path = format!("pools.{}", pool.name);
            let used = self.config.handlers.iter().any(|handler| handler.pool == pool.name);
            // A handler that could not be read may name the pool, and another one may mean it by a
            // misspelt name.
            let misspelt = self.config.handlers.iter().any(|handler| !self.is_pool(&handler.pool));
            let unread = misspelt || self.incomplete_handlers();
            if !used && !unread && self.places.has(&path) {
                let text = format!("no handler names the pool `{}`", pool.name);
                self.warning(
                    &path,
                    text,
                    format!("write `pool: {}` in a handler, or remove it", pool.name),
                );
            }
        }
    }

    fn pool(&mut self, pool: &PoolConfig) {
        let path = format!("pools.{}", pool.name);
        if let Some(order_by) = &pool.order_by {
            self.order_by(&format!("{path}.order_by"), order_by, pool);
        }
        if let Some(share_by) = &pool.share_by {
            self.share_by(&format!("{path}.share_by"), share_by, Some(pool));
        }
        let shared =
            |handler: &HandlerConfig| handler.pool == pool.name && handler.share_by.is_some();
        if !pool.shares.is_empty() && !self.config.handlers.iter().any(shared) {
            let text = "no event of this pool has a share: nothing says what it is";
            let help = "say what it is: `share_by: /tenant`";
            self.warning(&format!("{path}.shares"), text, help);
        }
        if pool.weight.is_some() && pool.dedicated_threads.is_some() {
            let text = "a pool with its own threads competes with no other";
            let help = "leave `weight` out, or `dedicated_threads`";
            self.warning(&format!("{path}.weight"), text, help);
        }
        let most = pool.autoscale.map_or(pool.workers, |autoscale| autoscale.max);
        if let Some(threads) = pool.dedicated_threads.filter(|threads| *threads > most) {
            let text = format!(
                "{threads} threads for {}: the others never do anything",
                plural(most, "worker")
            );
            let help = format!("write `dedicated_threads: {most}`, or raise `workers`");
            self.warning(&format!("{path}.dedicated_threads"), text, help);
        }
        if let Some(bounds) = pool.autoscale
            && !(bounds.min..=bounds.max).contains(&pool.workers)
        {
            let (min, max, workers) = (bounds.min, bounds.max, pool.workers);
            let text = format!(
                "it would start with {}, but scales from {min} to {max}",
                plural(workers, "worker")
            );
            let at = ["workers", "preset"].map(|name| format!("{path}.{name}"));
            let at = at.iter().find(|at| self.places.has(at)).unwrap_or(&path).clone();
            self.error(&at, text, "leave `workers` out to start with `min`, or widen the bounds");
        }
    }

    fn incomplete_handlers(&self) -> bool {
        !self.places.has("handlers")
            || self.places.names_in("handlers").count() != self.config.handlers.len()
    }

    fn types_taken_twice(&mut self) {
        let mut taken: HashMap<&str, &str> = HashMap::new();
        for handler in self.config.handlers.iter().filter(|handler| !handler.fan_out) {
            for (index, on) in handler.on.iter().enumerate() {
                // A pattern's `match` may leave events to others, and so may the `where` of a type.
                // A condition with a mistake, which has been reported, is not among the handler's.
                let asked = self.places.has_below(&format!("handlers.{}.where", handler.name));
                let leaves_some = match on.contains('*') {
                    true => asked || !handler.takes_all(),
                    false => asked && !taken.contains_key(on.as_str()),
                };
                if leaves_some {
                    continue;
                }
                let path = format!("handlers.{}.on.{index}", handler.name);
                match taken.insert(on, &handler.name) {
                    None => {}
                    Some(first) if first == handler.name => {
                        self.error(&path, "the same entry twice", "remove one of them");
                    }
                    Some(first) => {
                        let shown = self.places.at(&path).show(on);
                        let text = format!("`{shown}` is taken by the handler `{first}` already");
                        self.error(
                            &path,
                            text,
                            "an event goes to one handler; remove one of the two, or put the one with a `where` first",
                        );
                    }
                }
            }
        }
    }

    fn handler(&mut self, handler: &HandlerConfig) {
        let path = format!("handlers.{}", handler.name);
        self.patterns(&format!("{path}.on"), &handler.on);
        self.matches(&format!("{path}.match"), &handler.matches);
        self.loopback(&format!("{path}.loopback"), handler.loopback);
        self.pool_exists(&format!("{path}.pool"), &handler.pool);
        self.order(&path, handler);
        self.share(&path, handler);
    }

    fn breakers(&mut self) {
        // Those with a name, and the place where each appeared first.
        let mut shared: HashMap<&str, (&Breaker, String)> = HashMap::new();
        for handler in &self.config.handlers {
            let breakers = handler.layers.iter().filter_map(|layer| match layer {
                LayerConfig::CircuitBreaker(breaker) => Some(breaker),
                _ => None,
            });
            let places: Vec<_> = self.places_of_breakers(&handler.name).collect();
            for (breaker, at) in breakers.zip(places) {
                self.breaker(at, breaker, &mut shared);
            }
        }
    }

    /// Layers that had a problem are missing from the handler: these are counted as written.
    fn places_of_breakers(&self, handler: &str) -> impl Iterator<Item = String> + use<'_> {
        let path = format!("handlers.{handler}.layers");
        let layers = (0..).map(move |place| format!("{path}.{place}"));
        let written = layers.take_while(|layer| self.places.has(layer));
        let breaker = written.map(|layer| format!("{layer}.circuit_breaker"));
        breaker.filter(|breaker| self.places.has(breaker))
    }

    fn breaker(
        &mut self,
        at: String,
        breaker: &'a Breaker,
        shared: &mut HashMap<&'a str, (&'a Breaker, String)>,
    ) {
        let Some(name) = &breaker.shared else { return };
        match shared.get(name.as_str()) {
            Some((first, where_first)) if *first != breaker => {
                let shown = self.places.at(&format!("{at}.shared")).show(name);
                let text = format!(
                    "the circuit breaker `{shown}` has different settings in `{where_first}`"
                );
                let help =
                    "one breaker has one `failures` and one `open_for`: write the same values";
                self.error(&at, text, help);
            }
            Some(_) => {}
            None => drop(shared.insert(name, (breaker, at))),
        }
    }

    fn matches(&mut self, path: &str, matches: &[(String, String)]) {
        for (name, like) in matches {
            let path = format!("{path}.{name}");
            if !is_attribute(name) {
                let shown = self.places.at(&path).show(name);
                let help = lower_case(name)
                    .filter(|_| self.places.at(&path).origin.is_none())
                    .unwrap_or_else(|| {
                        "lower-case letters and digits, for example `subject`".to_owned()
                    });
                self.error(&path, format!("`{shown}` is not the name of an attribute"), help);
            } else if like.is_empty() {
                let help =
                    "for example `/shop/*`; `*` alone takes each event that has the attribute";
                self.error(&path, "no value matches this", help);
            }
        }
    }

    fn loopback(&mut self, path: &str, declared: usize) {
        match &self.config.loopback {
            None if declared > 0 && !self.places.has("loopback") => {
                let help =
                    "name the events that come back: `loopback: { on: order.again }`, at the top";
                self.error(path, "nothing comes back in", help);
            }
            Some(loopback) if loopback.room < declared => {
                let text = format!("there is room for only {}", plural(loopback.room, "event"));
                self.error(path, text, "raise `loopback.room`");
            }
            _ => {}
        }
    }

    fn is_pool(&self, pool: &str) -> bool {
        pool == "default" || self.places.has(&format!("pools.{pool}"))
    }

    fn pool_exists(&mut self, path: &str, pool: &str) {
        if self.is_pool(pool) {
            return;
        }
        let shown = self.places.at(path).show(pool);
        let mut known: Vec<_> = self.places.names_in("pools").collect();
        known.push("default");
        known.sort_unstable();
        // A value from a reference may be a secret: no name is suggested for it.
        let near = self.places.at(path).origin.is_none().then(|| near::suggestion(pool, known));
        let help = near.flatten().unwrap_or_else(|| {
            "name it under `pools`, or leave `pool` out for `default`".to_owned()
        });
        self.error(path, format!("there is no pool `{shown}`"), help);
    }

    fn patterns(&mut self, path: &str, patterns: &[String]) {
        for (index, text) in patterns.iter().enumerate() {
            if let Err(why) = pattern::validate(text) {
                let path = format!("{path}.{index}");
                let shown = self.places.at(&path).show(text);
                let help = "for example `order.created`, `order.*` or `**`";
                self.error(&path, format!("`{shown}` is not a type or pattern: {why}"), help);
            }
        }
    }

    /// Running without order is a choice; asking for order at the same time is worth a warning.
    fn order_is_kept(&mut self, at: &str, pool: &PoolConfig) {
        if pool.engine == Engine::Shared {
            let text = format!("the pool `{}` keeps no order: its `engine` is `shared`", pool.name);
            let help = "leave `order_by` out, or write `engine: keyed` in the pool";
            self.warning(at, text, help);
        }
    }

    fn order(&mut self, path: &str, handler: &HandlerConfig) {
        let at = format!("{path}.order_by");
        let pool = self.config.pools.iter().find(|pool| pool.name == handler.pool);
        match &handler.order_by {
            None if handler.key_required && pool.is_some() => {
                self.error(
                    &format!("{path}.key_required"),
                    "`key_required` without `order_by`",
                    "set the key, for example `order_by: subject`",
                );
            }
            // An inherited value is checked at its source.
            Some(order_by) if self.places.has(&at) => match pool {
                Some(pool) => self.order_by(&at, order_by, pool),
                None => self.is_key(&at, order_by),
            },
            _ => {}
        }
    }

    fn share(&mut self, path: &str, handler: &HandlerConfig) {
        if let Some(option) = handler.kind.needs_share().filter(|_| handler.share_by.is_none()) {
            let text = format!("`{option}` without `share_by`: nothing says whose secret it is");
            let help = "say whose events they are, for example `share_by: /endpoint/id`";
            self.error(&format!("{path}.{}.{option}", handler.kind.key()), text, help);
        }
        let at = format!("{path}.share_by");
        // An inherited one is checked in the pool.
        if let Some(share_by) = handler.share_by.as_ref().filter(|_| self.places.has(&at)) {
            let pool = self.config.pools.iter().find(|pool| pool.name == handler.pool);
            self.share_by(&at, share_by, pool);
        }
    }

    fn share_by(&mut self, at: &str, share_by: &str, pool: Option<&PoolConfig>) {
        self.is_key(at, share_by);
        if let Some(pool) = pool.filter(|pool| pool.engine == Engine::Sticky) {
            let name = &pool.name;
            let text = format!(
                "the pool `{name}` has no shares: with the `engine` `sticky`, each worker has events of its own"
            );
            self.error(at, text, "leave `share_by` out, or write `engine: keyed` in the pool");
        }
    }

    fn order_by(&mut self, at: &str, order_by: &str, pool: &PoolConfig) {
        self.is_key(at, order_by);
        if order_by != "none" {
            self.order_is_kept(at, pool);
        }
    }

    fn is_key(&mut self, at: &str, order_by: &str) {
        match order_by {
            pointer if pointer.starts_with('/') && !is_pointer(pointer) => {
                let help = "`~` is written `~0` in it, and `/` inside a name `~1`";
                self.error(at, "this is not a JSON pointer", help);
            }
            "specversion" => {
                let help = "name another attribute, for example `subject`";
                self.error(at, "every event has the same `specversion`", help);
            }
            name if !name.starts_with('/') && !is_attribute(name) => {
                let shown = self.places.at(at).show(name);
                let help = match name.strip_prefix("data.") {
                    Some(inner) => {
                        format!("for a field of the data, write `/{}`", inner.replace('.', "/"))
                    }
                    None => lower_case(name)
                        .filter(|_| self.places.at(at).origin.is_none())
                        .unwrap_or_else(|| {
                            "lower-case letters and digits, or a JSON pointer that begins with `/`"
                                .to_owned()
                        }),
                };
                self.error(at, format!("`{shown}` is not the name of an attribute"), help);
            }
            _ => {}
        }
    }

    fn otlp(&mut self, path: &str, otlp: &OtlpConfig) {
        let mut at = At::new(path, self.places, Path::new(""), self.problems);
        check_headers(&mut at, &otlp.headers);
        if let Some(endpoint) = &otlp.endpoint {
            check_target(&mut at, "endpoint", endpoint);
            check_scheme(&mut at, otlp.tls.as_ref(), endpoint);
        }
    }
}

/// CloudEvents 1.0: names are lower-case letters and digits. The data is no attribute.
fn is_attribute(name: &str) -> bool {
    let valid = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    !name.is_empty() && valid && name != "data"
}

/// The attribute that was meant, if only its case or separators differ.
fn lower_case(name: &str) -> Option<String> {
    let meant: String = name.to_lowercase().chars().filter(|c| !matches!(c, '_' | '-')).collect();
    is_attribute(&meant).then(|| format!("did you mean `{meant}`?"))
}

/// RFC 6901, section 3.
fn is_pointer(pointer: &str) -> bool {
    let mut escapes = pointer.split('~').skip(1);
    escapes.all(|rest| rest.starts_with('0') || rest.starts_with('1'))
}
