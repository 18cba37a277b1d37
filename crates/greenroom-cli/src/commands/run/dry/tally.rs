//! Counts the events that were read, and derives sizes from them.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    fmt::Write,
    sync::Arc,
    time::Duration,
};

use greenroom::event_pool::Engine;
use greenroom_bus::{
    engine,
    event::{Event, OrderBy},
    handler::pass::PassFactory,
    router::{Route, Router},
    source::{Partition, Taken},
};

use super::moment;
use crate::{
    config::{Config, plural},
    report::{grouped, mebibytes, printable, seconds, table_of},
    run::assemble,
};

/// Keys that are counted individually. Later keys are counted together, to limit memory.
const MOST_KEYS: usize = 1_000_000;

/// The hottest keys that are shown.
const HOTTEST: usize = 10;

/// A key of an input with a handler: its events form one line.
type KeyedLine = (u32, usize, Arc<str>);

/// The events read so far.
pub(super) struct DryTally {
    router: Router,
    /// In the order of the configuration.
    handlers: Vec<HandlerTally>,
    pools: Vec<PoolTally>,
    /// The names of the inputs.
    inputs: Vec<String>,
    read: u64,
    /// For each partition of each input.
    partitions: BTreeMap<(u32, Partition), u64>,
    left_out: LeftOut,
    lines: HashMap<KeyedLine, u64>,
    /// Events of keys that are not counted individually.
    untold: u64,
    largest: Option<Largest>,
    /// The earliest and the latest `time`.
    span: Option<(f64, f64)>,
    /// Events with a `time`.
    timed: u64,
}

/// The events that no handler would get.
#[derive(Default)]
struct LeftOut {
    malformed: u64,
    unhandled: u64,
    rejected: u64,
}

struct HandlerTally {
    name: String,
    pool: usize,
    /// The order of its pool, if any.
    order_by: Option<OrderBy>,
    key_required: bool,
    events: u64,
    without_key: u64,
    /// Events that would become dead letters because they lack a key.
    key_missing: u64,
}

struct PoolTally {
    name: String,
    workers: usize,
}

struct Largest {
    /// The approximate size in memory.
    weight: usize,
    /// As JSON.
    bytes: usize,
    id: String,
    source: String,
}

impl DryTally {
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let mut router = Router::new(engine::PoolConfig::default());
        let mut handlers = Vec::new();
        for handler in &config.handlers {
            // Only the route is computed, and nothing is handled.
            let routed = assemble::routed(handler, Arc::new(PassFactory))?;
            router.add_handler(&handler.name, routed).map_err(|error| error.to_string())?;
            let pool = config.pools.iter().position(|pool| pool.name == handler.pool);
            let pool = pool.ok_or_else(|| format!("there is no pool `{}`", handler.pool))?;
            let ordered = config.pools[pool].engine != Engine::Shared;
            let order_by = handler.order_by.as_ref().filter(|_| ordered);
            let order_by = order_by.map(|by| by.parse::<OrderBy>()).transpose();
            handlers.push(HandlerTally {
                name: handler.name.clone(),
                pool,
                order_by: order_by.map_err(|error| error.to_string())?,
                key_required: handler.key_required,
                events: 0,
                without_key: 0,
                key_missing: 0,
            });
        }
        let pool = |pool: &crate::config::PoolConfig| PoolTally {
            name: pool.name.clone(),
            workers: pool.workers,
        };
        Ok(Self {
            router,
            handlers,
            pools: config.pools.iter().map(pool).collect(),
            inputs: config.inputs.iter().map(|input| input.name.clone()).collect(),
            read: 0,
            partitions: BTreeMap::new(),
            left_out: LeftOut::default(),
            lines: HashMap::new(),
            untold: 0,
            largest: None,
            span: None,
            timed: 0,
        })
    }

    /// Items of one partition of an input.
    pub(super) fn add(
        &mut self,
        (input, partition): (u32, Partition),
        batch: impl Iterator<Item = Taken>,
    ) {
        let before = self.read;
        for taken in batch {
            self.read += 1;
            match taken.event {
                Ok(event) => self.event(input, &event),
                Err(_) => self.left_out.malformed += 1,
            }
        }
        if self.read > before {
            *self.partitions.entry((input, partition)).or_default() += self.read - before;
        }
    }

    fn event(&mut self, input: u32, event: &Event) {
        self.weigh(event);
        if let Some(at) = event.time().and_then(moment::seconds) {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
            self.timed += 1;
        }
        match self.router.route(event) {
            Route::One(place) => self.routed(input, event, place),
            Route::Several(places) => {
                places.iter().for_each(|place| self.routed(input, event, *place));
            }
            Route::NoHandler => self.left_out.unhandled += 1,
            _ => self.left_out.rejected += 1,
        }
    }

    fn routed(&mut self, input: u32, event: &Event, place: usize) {
        let handler = &mut self.handlers[place];
        handler.events += 1;
        let Some(order_by) = &handler.order_by else { return };
        match order_by.key(event) {
            Ok(Some(key)) => self.line((input, place, key)),
            Ok(None) if !handler.key_required => handler.without_key += 1,
            _ => handler.key_missing += 1,
        }
    }

    fn weigh(&mut self, event: &Event) {
        let weight = event.approximate_bytes();
        if self.largest.as_ref().is_some_and(|largest| largest.weight >= weight) {
            return;
        }
        let mut json = Vec::new();
        event.write_json(&mut json);
        let (id, source) = (event.id().to_owned(), event.source().to_owned());
        self.largest = Some(Largest { weight, bytes: json.len(), id, source });
    }

    fn line(&mut self, line: KeyedLine) {
        let is_full = self.lines.len() >= MOST_KEYS;
        match self.lines.entry(line) {
            Entry::Occupied(mut events) => *events.get_mut() += 1,
            Entry::Vacant(_) if is_full => self.untold += 1,
            Entry::Vacant(place) => {
                place.insert(1);
            }
        }
    }

    /// All of it, as text.
    pub(super) fn render(&self, elapsed: Duration) -> String {
        let mut out = String::new();
        self.summary(elapsed, &mut out);
        self.by_partition(&mut out);
        self.hottest(&mut out);
        self.concurrency(&mut out);
        out
    }

    // Writing into a String cannot fail.
    fn summary(&self, elapsed: Duration, out: &mut String) {
        let per_second = |events: u64, time: f64| grouped((events as f64 / time.max(1e-9)) as u64);
        let took = elapsed.as_secs_f64();
        let _ = writeln!(
            out,
            "read           {} in {}, {}/s",
            plural(self.read as usize, "event"),
            seconds(took),
            per_second(self.read, took)
        );
        if let Some((first, last)) = self.span.filter(|(first, last)| last > first) {
            let _ = writeln!(
                out,
                "made           {} with a `time`, over {}: {:.2}/s",
                plural(self.timed as usize, "event"),
                seconds(last - first),
                self.timed as f64 / (last - first)
            );
        }
        if let Some(largest) = &self.largest {
            let size = match largest.bytes {
                bytes @ ..1_000_000 => format!("{} bytes", grouped(bytes as u64)),
                bytes => mebibytes(bytes as u64),
            };
            let (id, source) = (printable(&largest.id), printable(&largest.source));
            let _ = writeln!(out, "largest event  {size}: id {id} of {source}");
        }
        let sum = |of: fn(&HandlerTally) -> u64| self.handlers.iter().map(of).sum::<u64>();
        self.share("without a key", sum(|h| h.without_key), "handled without order", out);
        let unordered =
            self.handlers.iter().filter(|h| h.order_by.is_none()).map(|h| h.events).sum();
        self.share("unordered", unordered, "their handler or pool keeps no order", out);
        self.share("key missing", sum(|h| h.key_missing), "would become dead letters", out);
        self.share("malformed", self.left_out.malformed, "would become dead letters", out);
        self.share("no handler", self.left_out.unhandled, "as `no_handler` says", out);
        self.share("rejected", self.left_out.rejected, "as `handler_rejected` says", out);
    }

    fn share(&self, what: &str, events: u64, then: &str, out: &mut String) {
        if events > 0 || what == "without a key" {
            let share = percent(events, self.read);
            let _ = writeln!(out, "{what:<13}  {} ({share}): {then}", grouped(events));
        }
    }

    /// For inputs that have several: an even spread lets a group share the work.
    fn by_partition(&self, out: &mut String) {
        let of = |input: u32| self.partitions.iter().filter(move |((of, _), _)| *of == input);
        let several = (0..self.inputs.len() as u32).filter(|input| of(*input).count() > 1);
        let rows: Vec<_> = several
            .flat_map(|input| {
                let all: u64 = of(input).map(|(_, events)| events).sum();
                of(input).map(move |(of, events)| (of, *events, all))
            })
            .map(|((input, partition), events, all)| {
                let input = self.inputs[*input as usize].clone();
                vec![input, partition.to_string(), grouped(events), percent(events, all)]
            })
            .collect();
        if rows.is_empty() {
            return;
        }
        out.push('\n');
        table_of(out, &["input", "partition", "events", "share"], rows);
    }

    fn hottest(&self, out: &mut String) {
        if self.lines.is_empty() {
            return;
        }
        let mut lines: Vec<_> = self.lines.iter().collect();
        // Keys that are equally hot keep a fixed order.
        lines.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        let rows = lines.iter().take(HOTTEST).map(|((_, handler, key), events)| {
            let handler = &self.handlers[*handler];
            vec![
                printable(key),
                handler.name.clone(),
                grouped(**events),
                percent(**events, handler.events),
            ]
        });
        let keys = plural(self.lines.len(), "key");
        let _ = writeln!(out, "\n{keys}; the hottest, with their share of their handler's events:");
        table_of(out, &["key", "handler", "events", "share"], rows.collect());
        if self.untold > 0 {
            let _ = writeln!(
                out,
                "further keys are not counted individually; they have {}",
                plural(self.untold as usize, "event")
            );
        }
    }

    /// A key is handled one event at a time, so a pool is done no sooner than its hottest key: more
    /// workers than all its events divided by those of that key would be idle in the long run.
    fn concurrency(&self, out: &mut String) {
        let mut hottest = vec![0; self.handlers.len()];
        for ((_, handler, _), events) in &self.lines {
            hottest[*handler] = (*events).max(hottest[*handler]);
        }
        let rows = self.pools.iter().enumerate().filter_map(|(place, pool)| {
            let own = || (0..self.handlers.len()).filter(|at| self.handlers[*at].pool == place);
            let events: u64 = own().map(|at| self.handlers[at].events).sum();
            let longest = own().map(|at| hottest[at]).max().unwrap_or(0);
            (events > 0).then_some((pool, events, longest))
        });
        let rows: Vec<_> = rows
            .map(|(pool, events, longest)| {
                let useful = events.checked_div(longest).map(|useful| useful.max(1));
                let useful_workers = useful.map_or("any number".to_owned(), grouped);
                let idle = useful.map_or(0, |useful| (pool.workers as u64).saturating_sub(useful));
                let advice = match (useful, idle) {
                    (None, _) => "events have no order: only the target limits it".to_owned(),
                    (Some(_), 0) => "every worker is busy".to_owned(),
                    (Some(_), idle) => {
                        format!(
                            "{} may be idle: the hottest key is the limit",
                            plural(idle as usize, "worker")
                        )
                    }
                };
                [
                    pool.name.clone(),
                    grouped(events),
                    pool.workers.to_string(),
                    useful_workers,
                    advice,
                ]
            })
            .collect();
        if rows.is_empty() {
            return;
        }
        out.push_str("\nuseful concurrency, if every event takes equally long:\n");
        let heads = ["pool", "events", "workers", "useful"];
        let mut table = String::new();
        table_of(&mut table, &heads, rows.iter().map(|row| row[..4].to_vec()).collect());
        let advice = std::iter::once("").chain(rows.iter().map(|row| row[4].as_str()));
        for (line, advice) in table.lines().zip(advice) {
            let _ = writeln!(out, "{}", format!("{line}  {advice}").trim_end());
        }
        out.push('\n');
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests;
