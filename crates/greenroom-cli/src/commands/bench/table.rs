//! The figures: a table for people, or one JSON object.

use std::{fmt::Write, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    full,
    load::Load,
    machine,
    measure::{BenchSide, Measured},
};
use crate::{
    cli::BenchArgs,
    report::{grouped, mebibytes, seconds, table_of},
};

/// Below this part of the rate, the machine did not keep up.
const KEPT_UP: f64 = 0.9;

/// What was measured, and with what.
pub(super) struct Report {
    outcome: BenchOutcome,
    json: bool,
    presets: bool,
}

/// Everything, for other programs to read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BenchOutcome {
    version: String,
    processor: Option<String>,
    cores: usize,
    /// False for a build with debug assertions, whose figures mean nothing.
    optimised: bool,
    keys: u32,
    zipf: f64,
    work_ns: u64,
    seconds: f64,
    senders: usize,
    pub(super) rows: Vec<Row>,
}

/// One measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Workers, and messages that may wait for each; 0 without an engine.
    workers: usize,
    inbox: usize,
    /// As fast as it goes.
    events: u64,
    elapsed_s: f64,
    events_per_s: f64,
    peak_in_flight: u64,
    /// What the process grows by when all inboxes are full of messages of 200 bytes; null
    /// where it was not measured.
    memory_bytes: Option<u64>,
    /// At a rate, where one was given.
    open_loop: Option<OpenLoop>,
}

/// Latency of arrivals that wait for nobody.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenLoop {
    /// Messages per second that should have arrived, and that were handled.
    rate: f64,
    events: u64,
    elapsed_s: f64,
    events_per_s: f64,
    /// From arrival to handled, in microseconds.
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    peak_in_flight: u64,
}

impl OpenLoop {
    fn kept_up(&self) -> bool {
        self.events_per_s >= KEPT_UP * self.rate
    }
}

impl Row {
    pub(super) fn new(side: BenchSide, load: &Load, fast: &Measured) -> Self {
        let (workers, inbox) = match side {
            BenchSide::Floor => (0, 0),
            BenchSide::Pool => (load.workers, load.inbox),
        };
        Self {
            name: side.name().to_owned(),
            workers,
            inbox,
            events: fast.events,
            elapsed_s: fast.elapsed.as_secs_f64(),
            events_per_s: fast.events_per_s(),
            peak_in_flight: fast.peak_in_flight,
            memory_bytes: None,
            open_loop: None,
        }
    }

    /// With what it came to at a rate.
    pub(super) fn open_loop(self, rate: f64, measured: &Measured) -> Self {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let [p50_us, p99_us, p999_us] = measured.latency.map_or([0.0; 3], |all| all.map(micros));
        let open_loop = OpenLoop {
            rate,
            events: measured.events,
            elapsed_s: measured.elapsed.as_secs_f64(),
            events_per_s: measured.events_per_s(),
            p50_us,
            p99_us,
            p999_us,
            peak_in_flight: measured.peak_in_flight,
        };
        Self { open_loop: Some(open_loop), ..self }
    }

    pub(super) fn with_memory(self, memory_bytes: Option<u64>) -> Self {
        Self { memory_bytes, ..self }
    }

    /// The same under another name.
    pub(super) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// What a full pool is estimated to take (H03).
    fn estimate(&self) -> u64 {
        (self.workers * self.inbox * full::MESSAGE) as u64
    }

    /// `256 x 1,000`.
    fn size(&self) -> String {
        match self.workers {
            0 => String::new(),
            workers => format!("{} x {}", grouped(workers as u64), grouped(self.inbox as u64)),
        }
    }
}

impl Report {
    pub(super) fn new(args: &BenchArgs, rows: Vec<Row>) -> Self {
        let outcome = BenchOutcome {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: machine::processor(),
            cores: machine::cores(),
            optimised: !cfg!(debug_assertions),
            keys: args.keys,
            zipf: args.zipf,
            work_ns: args.work.as_nanos() as u64,
            seconds: args.seconds.0.as_secs_f64(),
            senders: machine::cores(),
            rows,
        };
        Self { outcome, json: args.json, presets: args.presets.is_some() }
    }

    pub(super) fn render(&self) -> String {
        if self.json {
            // Every key is text, and numbers that are no numbers become null:
            // nothing in here can fail.
            return serde_json::to_string(&self.outcome).unwrap_or_default() + "\n";
        }
        let mut out = self.heading();
        if self.presets {
            self.preset_table(&mut out);
        } else {
            self.fast_table(&mut out);
            self.open_loop_table(&mut out);
        }
        out
    }

    fn heading(&self) -> String {
        let BenchOutcome { version, processor, cores, keys, zipf, work_ns, senders, .. } =
            &self.outcome;
        let processor = processor.as_deref().unwrap_or("unknown processor");
        let keys = match keys {
            0 => "no order".to_owned(),
            keys => format!("in order by {} keys (Zipf {zipf})", grouped((*keys).into())),
        };
        let work = match work_ns {
            0 => "handlers that do nothing".to_owned(),
            nanos => format!("handlers that compute for {}", time(*nanos as f64 / 1e3)),
        };
        let mut out = format!("greenroom {version}, {cores} cores, {processor}\n");
        let _ = writeln!(out, "{senders} senders, messages of 48 bytes, {keys}, {work}");
        if !self.outcome.optimised {
            out.push_str("built with debug assertions: these figures mean nothing\n");
        }
        out
    }

    fn length(&self) -> String {
        seconds(self.outcome.seconds)
    }

    fn fast_table(&self, out: &mut String) {
        let floor = self.outcome.rows.first().map_or(f64::NAN, |row| row.events_per_s);
        let rows = self.outcome.rows.iter().map(|row| {
            vec![
                row.name.clone(),
                row.size(),
                per_second(row.events_per_s),
                format!("{:.2} x", row.events_per_s / floor),
                grouped(row.peak_in_flight),
            ]
        });
        let head = format!("as fast as it goes, {}", self.length());
        let heads = [&head, "workers x inbox", "events/s", "of no engine", "peak in flight"];
        out.push('\n');
        table_of(out, &heads, rows.collect());
    }

    fn open_loop_table(&self, out: &mut String) {
        let measured: Vec<_> = self
            .outcome
            .rows
            .iter()
            .filter_map(|row| Some((row.name.clone(), row.open_loop.as_ref()?)))
            .collect();
        let Some((_, first)) = measured.first() else { return };
        let rows = measured.iter().map(|(name, open)| {
            let mut row = vec![name.clone(), per_second(open.events_per_s)];
            row.extend([open.p50_us, open.p99_us, open.p999_us].map(time));
            row.push(grouped(open.peak_in_flight));
            row
        });
        let head = format!("{} arrive a second, {}", per_second(first.rate), self.length());
        let heads = [&head, "events/s", "p50", "p99", "p999", "peak in flight"];
        out.push('\n');
        table_of(out, &heads, rows.collect());
        for (name, _) in measured.iter().filter(|(_, open)| !open.kept_up()) {
            let _ = writeln!(
                out,
                "{name}: did not keep up, so its times only tell how long it was overrun"
            );
        }
    }

    fn preset_table(&self, out: &mut String) {
        let row = |row: &Row| {
            let open = row.open_loop.as_ref();
            let at_a_rate =
                |of: fn(&OpenLoop) -> f64| open.map_or_else(none, |open| time(of(open)));
            let of_pool = |bytes| if row.workers == 0 { none() } else { mebibytes(bytes) };
            vec![
                row.name.clone(),
                row.size(),
                per_second(row.events_per_s),
                at_a_rate(|open| open.p50_us),
                at_a_rate(|open| open.p99_us),
                row.memory_bytes.map_or_else(none, mebibytes),
                of_pool(row.estimate()),
            ]
        };
        let heads =
            ["preset", "workers x inbox", "events/s", "p50", "p99", "memory when full", "estimate"];
        out.push('\n');
        table_of(out, &heads, self.outcome.rows.iter().map(row).collect());
        let rate = self.outcome.rows.iter().find_map(|row| Some(row.open_loop.as_ref()?.rate));
        let _ = writeln!(
            out,
            "\nevents/s: as fast as it goes, {}; p50, p99: from arrival to handled, {} a second; memory: all inboxes full of messages of {} bytes",
            self.length(),
            per_second(rate.unwrap_or_default()),
            full::MESSAGE
        );
    }
}

fn none() -> String {
    "-".to_owned()
}

fn per_second(rate: f64) -> String {
    grouped(rate.round() as u64)
}

/// Microseconds, with a unit that suits them.
fn time(micros: f64) -> String {
    match micros {
        below if below < 1.0 => format!("{:.0} ns", below * 1e3),
        below if below < 1e3 => format!("{below:.1} us"),
        below if below < 1e6 => format!("{:.1} ms", below / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_suits_them() {
        assert_eq!([0.3, 12.34, 1_234.0, 2e6].map(time), ["300 ns", "12.3 us", "1.2 ms", "2.00 s"]);
    }
}
