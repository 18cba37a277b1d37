//! The layers of a handler: from checked records to what they are, schemas read included.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use greenroom_bus::layer::Validation;
use greenroom_config::{
    problem::{Problem, Problems},
    record::{Places, Record},
    units::Rate,
};
use serde_json::Value;

use super::pattern;

/// A slower rate is a mistake, and its waits would be beyond what a clock counts to.
const SLOWEST: f64 = 1.0 / 86_400.0;

/// One layer around a handler.
#[derive(Debug, Clone, PartialEq)]
pub enum LayerConfig {
    /// How long an attempt may take.
    Timeout(Duration),
    /// How many attempts are made in such a time.
    Rate(Rate),
    /// Attempts wait while what they call is down.
    CircuitBreaker(Breaker),
    /// What was acknowledged is not handled again.
    Deduplication {
        /// For so long.
        within: Duration,
        /// Of at most so many events.
        remember: usize,
    },
    /// Data is checked against the schemas of its type.
    Validation(Vec<Schema>),
    /// An event without a correlation id begins a flow.
    Correlation,
    /// A span for each attempt.
    Tracing,
    /// Counts and times.
    Metrics,
}

/// When attempts wait for what they call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// So many failures in a row.
    pub failures: u32,
    /// For so long.
    pub open_for: Duration,
    /// Breakers of the same name are one.
    pub shared: Option<String>,
}

/// A JSON Schema, and the types that it is for. It was read, and is a valid one.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// A type or pattern.
    pub on: String,
    /// Where it was read.
    pub path: PathBuf,
    /// The schema.
    pub document: Arc<Value>,
}

impl LayerConfig {
    /// What the configuration calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Rate(_) => "rate",
            Self::CircuitBreaker(_) => "circuit_breaker",
            Self::Deduplication { .. } => "deduplication",
            Self::Validation(_) => "validation",
            Self::Correlation => "correlation",
            Self::Tracing => "tracing",
            Self::Metrics => "metrics",
        }
    }
}

/// Builds the layers of all handlers.
pub(super) struct Layers<'a> {
    /// Where relative paths start.
    pub(super) directory: &'a Path,
    pub(super) places: &'a Places,
    pub(super) problems: &'a mut Problems,
    /// The breakers that have a name, and where each was met first.
    pub(super) shared: &'a mut HashMap<String, (Breaker, String)>,
}

impl Layers<'_> {
    /// The layers of a handler, without those that had a problem.
    pub(super) fn of(&mut self, handler: &str, records: Vec<Record>) -> Vec<LayerConfig> {
        let layers = records.into_iter().enumerate().filter_map(|(place, record)| {
            self.layer(&format!("handlers.{handler}.layers.{place}"), record)
        });
        layers.collect()
    }

    fn layer(&mut self, path: &str, mut record: Record) -> Option<LayerConfig> {
        if let Some(timeout) = record.duration("timeout") {
            return Some(LayerConfig::Timeout(timeout));
        }
        if let Some(rate) = record.rate("rate") {
            return self.rate(path, rate);
        }
        if let Some(breaker) = record.group("circuit_breaker") {
            return self.breaker(path, breaker).map(LayerConfig::CircuitBreaker);
        }
        if let Some(mut seen) = record.group("deduplication") {
            let within = seen.duration("within")?;
            let remember = seen.count("remember").and_then(|most| usize::try_from(most).ok())?;
            return Some(LayerConfig::Deduplication { within, remember });
        }
        if let Some(schemas) = record.variables("validation") {
            return self.validation(path, schemas);
        }
        let bare = [
            ("correlation", LayerConfig::Correlation),
            ("tracing", LayerConfig::Tracing),
            ("metrics", LayerConfig::Metrics),
        ];
        bare.into_iter().find_map(|(name, layer)| record.group(name).map(|_| layer))
    }

    fn error(&mut self, path: &str, message: String, help: &str) {
        self.problems.push(Problem::error(message, self.places.at(path).place).help(help));
    }

    fn rate(&mut self, path: &str, rate: Rate) -> Option<LayerConfig> {
        if rate.per_second >= SLOWEST {
            return Some(LayerConfig::Rate(rate));
        }
        let text = "this is less than one attempt a day".to_owned();
        self.error(&format!("{path}.rate"), text, "for example `20/s`, `100/min` or `1/h`");
        None
    }

    fn breaker(&mut self, path: &str, mut record: Record) -> Option<Breaker> {
        let breaker = Breaker {
            failures: u32::try_from(record.count("failures")?).ok()?,
            open_for: record.duration("open_for")?,
            shared: record.text("shared"),
        };
        let Some(name) = &breaker.shared else { return Some(breaker) };
        let at = format!("{path}.circuit_breaker");
        match self.shared.get(name) {
            Some((first, where_first)) if *first != breaker => {
                let shown = self.places.at(&format!("{at}.shared")).show(name);
                let text =
                    format!("the circuit breaker `{shown}` has other settings in `{where_first}`");
                self.error(
                    &at,
                    text,
                    "one breaker has one `failures` and one `open_for`: write the same",
                );
                return None;
            }
            Some(_) => {}
            None => drop(self.shared.insert(name.clone(), (breaker.clone(), at))),
        }
        Some(breaker)
    }

    fn validation(&mut self, path: &str, written: Vec<(String, String)>) -> Option<LayerConfig> {
        let path = format!("{path}.validation");
        if !self.places.has_below(&path) {
            let help = "name a type or pattern and a file: `{ \"order.*\": order.schema.json }`";
            self.error(&path, "there is no schema".to_owned(), help);
            return None;
        }
        let count = written.len();
        let schemas = written.into_iter().filter_map(|(on, file)| self.schema(&path, on, &file));
        let schemas: Vec<_> = schemas.collect();
        (schemas.len() == count).then_some(LayerConfig::Validation(schemas))
    }

    fn schema(&mut self, path: &str, on: String, file: &str) -> Option<Schema> {
        let at = format!("{path}.{on}");
        if let Err(why) = pattern::validate(&on) {
            let text = format!("`{on}` is not a type or pattern: {why}");
            self.error(&at, text, "for example `order.created`, `order.*` or `**`");
            return None;
        }
        let path = self.directory.join(file);
        let shown = self.places.at(&at).show(&path.display().to_string());
        let document = match read(&path) {
            Ok(document) => document,
            Err((why, help)) => {
                self.error(&at, format!("cannot use `{shown}`: {why}"), help);
                return None;
            }
        };
        let checked = on
            .parse()
            .map_err(|why| format!("{why}"))
            .and_then(|on| Validation::new().schema(on, &document).map_err(|error| error.reason));
        if let Err(why) = checked {
            let help =
                "mend the file: drafts 4 to 2020-12 are read, and a `$ref` stays within its file";
            self.error(&at, format!("`{shown}` is no JSON Schema: {why}"), help);
            return None;
        }
        Some(Schema { on, path, document: Arc::new(document) })
    }
}

/// The document, or why there is none, and what to do.
fn read(path: &Path) -> Result<Value, (String, &'static str)> {
    let start = "name a file; paths start at the directory of the configuration file";
    let text = fs::read_to_string(path).map_err(|error| (error.to_string(), start))?;
    serde_json::from_str(&text)
        .map_err(|error| (format!("it is not JSON: {error}"), "write the JSON Schema as JSON"))
}
