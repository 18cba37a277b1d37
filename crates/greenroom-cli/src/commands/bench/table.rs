//! The figures: a table for people, or one JSON object.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{
    load::Load,
    machine,
    measure::{Measured, Side},
};
use crate::{
    cli::BenchArgs,
    report::{grouped, mebibytes, seconds, table_of},
};

/// The average message that estimates of memory are for, in bytes.
const AVERAGE_MESSAGE: u64 = 200;
/// Below this part of the rate, the machine did not keep up.
const KEPT_UP: f64 = 0.9;

/// What was measured, and with what.
pub(super) struct Report {
    outcome: Outcome,
    json: bool,
    presets: bool,
}

/// Everything, for other programs to read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
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
    /// What the process grew by meanwhile; null where the system does not tell.
    memory_bytes: Option<u64>,
    /// At a rate, where one was given.
    open_loop: Option<OpenLoop>,
    /// Why it was not measured.
    skipped: Option<String>,
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
    pub(super) fn new(side: Side, load: &Load) -> Self {
        let (workers, inbox) = match side {
            Side::Floor => (0, 0),
            Side::Pool => (load.workers, load.inbox),
        };
        Self { name: side.name().to_owned(), workers, inbox, ..Self::blank() }
    }

    /// A row that was not measured.
    pub(super) fn skipped(name: &str, workers: u32, inbox: u32, why: String) -> Self {
        let (workers, inbox) = (workers as usize, inbox as usize);
        Self { name: name.to_owned(), workers, inbox, skipped: Some(why), ..Self::blank() }
    }

    /// The same under another name.
    pub(super) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    fn blank() -> Self {
        Self {
            name: String::new(),
            workers: 0,
            inbox: 0,
            events: 0,
            elapsed_s: 0.0,
            events_per_s: 0.0,
            peak_in_flight: 0,
            memory_bytes: None,
            open_loop: None,
            skipped: None,
        }
    }

    pub(super) fn fast(&mut self, measured: &Measured) {
        self.events = measured.events;
        self.elapsed_s = measured.elapsed.as_secs_f64();
        self.events_per_s = self.events as f64 / self.elapsed_s;
        self.peak_in_flight = measured.peak_in_flight;
        self.memory_bytes = measured.grown;
    }

    pub(super) fn open_loop(&mut self, rate: f64, measured: &Measured) {
        let elapsed_s = measured.elapsed.as_secs_f64();
        let [p50_us, p99_us, p999_us] = measured
            .latency
            .map_or([0.0; 3], |times| times.map(|time| time.as_nanos() as f64 / 1e3));
        self.open_loop = Some(OpenLoop {
            rate,
            events: measured.events,
            elapsed_s,
            events_per_s: measured.events as f64 / elapsed_s,
            p50_us,
            p99_us,
            p999_us,
            peak_in_flight: measured.peak_in_flight,
        });
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
        let outcome = Outcome {
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
        Self { outcome, json: args.json, presets: args.presets }
    }

    pub(super) fn render(&self) -> String {
        if self.json {
            // Every key is text, and numbers that are no numbers become null: nothing in here can fail.
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
        let Outcome { version, processor, cores, keys, zipf, work_ns, senders, .. } = &self.outcome;
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
        let heads = [&head, "workers x inbox", "events/s", "of the first", "peak in flight"];
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
        let rows = self.outcome.rows.iter().map(|row| {
            let estimate = AVERAGE_MESSAGE * row.workers as u64 * row.inbox as u64;
            let open = |of: fn(&OpenLoop) -> f64| {
                row.open_loop.as_ref().map_or_else(|| "-".to_owned(), |open| time(of(open)))
            };
            let figure = |text: String| if row.skipped.is_some() { "-".to_owned() } else { text };
            vec![
                row.name.clone(),
                row.size(),
                figure(per_second(row.events_per_s)),
                open(|open| open.p50_us),
                open(|open| open.p99_us),
                figure(row.memory_bytes.map_or_else(|| "unknown".to_owned(), mebibytes)),
                if row.workers == 0 { String::new() } else { mebibytes(estimate) },
            ]
        });
        let heads =
            ["preset", "workers x inbox", "events/s", "p50", "p99", "memory", "full, of 200 bytes"];
        out.push('\n');
        table_of(out, &heads, rows.collect());
        for row in &self.outcome.rows {
            if let Some(why) = &row.skipped {
                let _ =
                    writeln!(out, "{}: left out, as it may need too much memory: {why}", row.name);
            }
        }
        let rate = self.outcome.rows.iter().find_map(|row| Some(row.open_loop.as_ref()?.rate));
        let _ = writeln!(
            out,
            "events/s: as fast as it goes, {}; p50 and p99: from arrival to handled, {} a second; memory: growth meanwhile",
            self.length(),
            per_second(rate.unwrap_or_default())
        );
    }
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
