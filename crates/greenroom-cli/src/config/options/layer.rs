//! Layers around every attempt of a handler. Schemas are read with the configuration.

use std::{
    fs,
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

#[cfg(feature = "json-schema")]
use greenroom_bus::layer::Validation;
use greenroom_config::{
    At, Take, Typed, bare, count, duration, group, options, path, rate, schema::Group, text,
    units::DAY_MS, units::Rate, variables,
};
use serde_json::Value;

use crate::config::{
    lacking::{built_without, get, lacking},
    pattern,
};

/// A slower rate is a mistake, and its waits would exceed the range of a clock.
const SLOWEST: f64 = 1.0 / 86_400.0;

const NOTHING: &Group = &Group::without_settings("this layer");

options! {
    /// Each item is one layer. A layer without settings may be written as a word: `[tracing, {
    /// timeout: 5s }, metrics]`.
    pub enum LayerConfig = "a layer", then LayerConfig::not_too_slow {
        /// How long an attempt may take inside this layer. It is then dropped at its next await,
        /// and retried like any failure.
        Timeout(Duration) as "timeout" = duration(1..=DAY_MS);
        /// How many attempts are made per second, minute or hour, over all workers. An attempt that
        /// waits for its turn holds its worker; with the `rate` of a pool, it does not.
        Rate(Rate) as "rate" = rate().alias(&["rate_limit"]);
        /// While the system that attempts call is down, they wait, and one at a time tries.
        CircuitBreaker(Breaker) as "circuit_breaker" = group();
        /// An event with the same source and id as an acknowledged one is acknowledged without
        /// being handled.
        Deduplication(DeduplicationConfig) as "deduplication" = group().alias(&["deduplicate"]);
        /// JSON Schemas by event type or pattern: `{ "order.*": order.schema.json }`, each a file.
        /// An event whose data does not fit the schemas of its type becomes a dead letter that
        /// names the problems; an event of a type without a schema passes. The files are read at
        /// startup. Needs a greenroom that was built with `json-schema`.
        Validation(Schemas) as "validation" = variables().to::<Schemas>();
        /// An event without a `correlationid` starts a flow with its own id; the events made from
        /// it share that id.
        Correlation as "correlation" = bare(NOTHING);
        /// Logs a span for each attempt, at the level `info`: type, id, source, pool, handler,
        /// worker, attempt.
        Tracing as "tracing" = bare(NOTHING);
        /// Counts attempts by their outcome, and how long they take. The admin listener shows the
        /// figures (`/api/handlers/NAME`), and the log does at the end.
        Metrics as "metrics" = bare(NOTHING);
    }
}

options! {
    /// An outage of a single handler is noticed without it (`outage`); use it for several handlers
    /// that call the same system.
    pub struct Breaker = "a circuit breaker" {
        /// It opens after this many failed attempts in a row: more than a healthy system ever has.
        failures: u32 = count(1..=1_000_000).default("5");
        /// How long attempts wait before one tries: about as long as the system takes to recover.
        open_for: Duration = duration(1..=DAY_MS).default("10s");
        /// A name. Circuit breakers with the same name are one breaker, in all handlers that use
        /// it, and must have the same settings.
        shared: Option<String> = text().optional();
    }
}

options! {
    /// Without a `store`, memory holds it, and a restart forgets it.
    pub struct DeduplicationConfig = "deduplication" {
        /// How long an acknowledged event is remembered.
        within: Duration = duration(1..=30 * DAY_MS).default("10m");
        /// The most events to remember, at some 100 bytes each; at least as many as arrive `within`
        /// that time.
        remember: usize = count(1..=100_000_000).default("100_000");
        /// A directory that preserves it over restarts, with the same bounds; each layer needs its
        /// own. It is written ten times a second, and no event waits for it: a crash forgets the
        /// latest acknowledgements. Its parent must exist.
        store: Option<PathBuf> = path().optional();
    }
}

impl LayerConfig {
    fn not_too_slow(self, at: &mut At<'_>) -> Option<Self> {
        match &self {
            Self::Rate(rate) if rate.per_second < SLOWEST => {
                let text = "this is less than one attempt a day";
                at.error("rate", text, "for example `20/s`, `100/min` or `1/h`");
                None
            }
            _ => Some(self),
        }
    }
}

/// The schemas of a layer, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Schemas(Vec<Schema>);

/// A valid JSON Schema that was read, and the types that it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// A type or pattern.
    pub on: String,
    /// The path that it was read from.
    pub path: PathBuf,
    /// The schema.
    pub document: Arc<Value>,
}

impl Deref for Schemas {
    type Target = [Schema];

    fn deref(&self) -> &[Schema] {
        &self.0
    }
}

impl Take for Schemas {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = Vec::<(String, String)>::take(found, at)?;
        if !at.has_any() {
            let help = "name a type or pattern and a file: `{ \"order.*\": order.schema.json }`";
            at.error("", "there is no schema", help);
            return None;
        }
        if lacking("json-schema").is_some() {
            at.error("", built_without("json-schema"), get("json-schema"));
            return None;
        }
        let schemas: Vec<_> =
            written.into_iter().map(|(on, file)| Schema::read(on, &file, at)).collect();
        schemas.into_iter().collect::<Option<_>>().map(Self)
    }
}

impl Schema {
    fn read(on: String, file: &str, at: &mut At<'_>) -> Option<Self> {
        if let Err(why) = pattern::validate(&on) {
            let text = format!("`{on}` is not a type or pattern: {why}");
            at.error(&on, text, "for example `order.created`, `order.*` or `**`");
            return None;
        }
        let path = at.directory().join(file);
        let shown = at.written(&on).show(&path.display().to_string());
        let document = match document(&path) {
            Ok(document) => document,
            Err((why, help)) => {
                at.error(&on, format!("cannot use `{shown}`: {why}"), help);
                return None;
            }
        };
        #[cfg(feature = "json-schema")]
        if let Err(why) = is_schema(&on, &document) {
            let help = "fix the file: drafts 4 to 2020-12 are supported, and a `$ref` must stay within its file";
            at.error(&on, format!("`{shown}` is no JSON Schema: {why}"), help);
            return None;
        }
        Some(Self { on, path, document: Arc::new(document) })
    }
}

/// # Errors
/// Why it is not valid.
#[cfg(feature = "json-schema")]
fn is_schema(on: &str, document: &Value) -> Result<(), String> {
    let on = on.parse().map_err(|why| format!("{why}"))?;
    Validation::new().schema(on, document).map(drop).map_err(|error| error.reason)
}

/// The document, or why there is none, and how to fix it.
fn document(path: &Path) -> Result<Value, (String, &'static str)> {
    let start = "name a file; paths start at the directory of the configuration file";
    let text = fs::read_to_string(path).map_err(|error| (error.to_string(), start))?;
    serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| (format!("it is not JSON: {error}"), "write the JSON Schema as JSON"))
}
