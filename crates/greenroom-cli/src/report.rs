//! The final report of a run (O11): a table for people, or one JSON object.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;

use crate::cli::ReportFormat;

/// So many slow keys are enough for a reader; JSON has all that were kept.
const KEYS_IN_TEXT: usize = 5;
/// The end of a key tells more than its beginning: paths and numbers differ there.
const KEY_LENGTH: usize = 45;

/// What a run did. `taken = handled + dead_lettered + ignored + refused` (G08).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunReport {
    /// Events taken from the inputs, malformed ones included.
    pub taken: u64,
    /// Handled, and accepted by the outputs.
    pub handled: u64,
    /// Acknowledged without a handler, by policy.
    pub ignored: u64,
    /// Stored as dead letters.
    pub dead_lettered: u64,
    /// Given back to their source, or lost with it where it cannot replay.
    pub refused: u64,
    /// Of the refused ones, events of parked keys.
    pub parked: u64,
    /// Attempts that were followed by another.
    pub retried: u64,
    /// Attempts that did not succeed and may have had an effect: timeouts, lost connections,
    /// processes that died with the event, attempts that a stop has cut off.
    pub repeated_at_most: u64,
    /// Workers restarted, processes included.
    pub restarts: u64,
    /// Events that left an output before an earlier one of their key. Zero, or a defect.
    pub out_of_order: u64,
    /// From the start to the last settlement, in seconds.
    pub elapsed_s: f64,
    /// Events settled in each second of `elapsed_s`.
    pub events_per_s: f64,
    /// From taken to settled, in microseconds: an event is settled when its outcome is stored.
    pub latency_us: Latency,
    /// The 99th percentile of that, in milliseconds.
    pub latency_p99_ms: f64,
    /// The most events that were queued at one time, over all pools, sampled 20 times a second.
    pub peak_queued: u64,
    /// The most bytes of events that one input had taken and not settled.
    pub peak_in_flight_bytes: u64,
    /// The largest resident memory, in bytes; null where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
    /// The keys that took longest, the longest first.
    pub slowest_keys: Vec<SlowKey>,
    /// Dead letters by reason.
    pub dead_letters_by_reason: BTreeMap<String, u64>,
    /// One row for each pool.
    pub pools: Vec<PoolRow>,
    /// One row for each input, in the order in which they were added.
    pub inputs: Vec<InputRow>,
    /// One row for each output, in the order in which they were added.
    pub outputs: Vec<OutputRow>,
    /// One row for each input that keeps its positions.
    pub positions: Vec<PositionsRow>,
    /// Where dead letters are stored.
    pub dead_letters: String,
    /// What somebody should know, although nothing was lost by it.
    pub warnings: Vec<String>,
    /// What went wrong, in words; not empty means exit code 3.
    pub errors: Vec<String>,
}

/// Percentiles, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// 99 of 100 are below.
    pub p99: u64,
    /// 999 of 1000 are below.
    pub p999: u64,
}

/// A key that took long.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowKey {
    /// The key.
    pub key: String,
    /// The handler of its events.
    pub handler: String,
    /// The longest time of one of its events from taken to settled, in milliseconds.
    pub ms: f64,
}

/// What a pool did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// Its workers.
    pub workers: u64,
    /// Events handled.
    pub handled: u64,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Events that became dead letters.
    pub dead_letters: u64,
    /// Workers restarted.
    pub restarts: u64,
}

/// What an input gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InputRow {
    /// Its name.
    pub name: String,
    /// What it reads, for example `file:orders.ndjson`.
    pub source: String,
    /// Items taken from it.
    pub taken: u64,
    /// True where it was removed while greenroom ran.
    pub removed: bool,
}

/// What an output took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OutputRow {
    /// Its name.
    pub name: String,
    /// What it writes to, for example `file:done.ndjson`.
    pub target: String,
    /// Events handed to it; those that it could not store count as refused.
    pub events: u64,
    /// True where it was removed while greenroom ran.
    pub removed: bool,
}

/// How far an input that keeps its positions has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PositionsRow {
    /// What it reads, for example `file:orders.ndjson`.
    pub input: String,
    /// Items that an earlier run had done, and that were skipped.
    pub skipped: u64,
    /// Items that the next run is given again, at most.
    pub delivered_again_at_most: u64,
}

impl RunReport {
    /// The report as it goes to standard output, with a newline at its end.
    pub fn render(&self, format: ReportFormat) -> String {
        match format {
            ReportFormat::Text => self.text(),
            ReportFormat::Json => self.json(),
        }
    }

    fn json(&self) -> String {
        // Numbers that are no numbers become null, and every key is text: nothing in here can fail.
        let text = serde_json::to_string(self)
            .unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
        text + "\n"
    }

    fn text(&self) -> String {
        let mut out = self.verdict();
        for error in &self.errors {
            let _ = writeln!(out, "error: {error}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        if self.refused > 0 {
            out.push_str(
                "refused events were neither handled nor stored: run again to have them handled\n",
            );
        }
        out.push('\n');
        self.ledger(&mut out);
        self.measures(&mut out);
        self.reasons(&mut out);
        self.pool_table(&mut out);
        self.input_table(&mut out);
        self.output_table(&mut out);
        self.positions_table(&mut out);
        self.slowest(&mut out);
        out
    }

    /// What most readers want to know, in one line.
    fn verdict(&self) -> String {
        let how = match (self.out_of_order, self.refused, self.errors.len()) {
            (0, 0, 0) => "done".to_owned(),
            (0, 0, 1) => "ended with an error".to_owned(),
            (0, 0, errors) => format!("ended with {errors} errors"),
            (0, refused, _) => format!("ended with {} refused", grouped(refused)),
            (swapped, ..) => {
                format!("ended with {} out of order (a defect: please report it)", grouped(swapped))
            }
        };
        let mut counts =
            format!("{} taken, {} handled", grouped(self.taken), grouped(self.handled));
        for (count, name) in [(self.dead_lettered, "dead-lettered"), (self.ignored, "ignored")] {
            if count > 0 {
                let _ = write!(counts, ", {} {name}", grouped(count));
            }
        }
        format!("{how}: {counts} in {}\n", seconds(self.elapsed_s))
    }

    fn ledger(&self, out: &mut String) {
        numbers(
            out,
            &[
                ("taken", grouped(self.taken)),
                ("handled", grouped(self.handled)),
                ("ignored", grouped(self.ignored)),
                ("dead-lettered", grouped(self.dead_lettered)),
                ("refused", grouped(self.refused)),
                ("retried", grouped(self.retried)),
                ("repeated at most", grouped(self.repeated_at_most)),
                ("restarts", grouped(self.restarts)),
                ("out of order", grouped(self.out_of_order)),
            ],
        );
    }

    fn measures(&self, out: &mut String) {
        let Latency { p50, p99, p999 } = self.latency_us;
        let memory = self.peak_rss_bytes.map_or_else(|| "unknown".to_owned(), mebibytes);
        let latency = format!("p50 {}, p99 {}, p999 {}", micros(p50), micros(p99), micros(p999));
        out.push('\n');
        rows(
            out,
            &[
                ("elapsed", seconds(self.elapsed_s)),
                ("events/s", grouped(self.events_per_s.round() as u64)),
                ("latency", latency),
                ("peak queued", grouped(self.peak_queued)),
                ("peak memory", memory),
            ],
        );
    }

    fn reasons(&self, out: &mut String) {
        if self.dead_letters_by_reason.is_empty() {
            return;
        }
        out.push('\n');
        let table = self
            .dead_letters_by_reason
            .iter()
            .map(|(reason, count)| vec![reason.clone(), grouped(*count)]);
        table_of(
            out,
            &[&format!("dead letters ({})", self.dead_letters), "items"],
            table.collect(),
        );
    }

    fn pool_table(&self, out: &mut String) {
        let table = self.pools.iter().map(|pool| {
            vec![
                pool.name.clone(),
                grouped(pool.workers),
                grouped(pool.handled),
                grouped(pool.failed_attempts),
                grouped(pool.dead_letters),
                grouped(pool.restarts),
            ]
        });
        // Restarts of worker processes are in the sum above only: they belong to handlers.
        let heads = ["pool", "workers", "handled", "failed attempts", "dead letters", "panics"];
        out.push('\n');
        table_of(out, &heads, table.collect());
    }

    /// Where inputs came and went: of the others, the sum above says enough.
    fn input_table(&self, out: &mut String) {
        if !self.inputs.iter().any(|input| input.removed) {
            return;
        }
        out.push('\n');
        let table = self.inputs.iter().map(|input| {
            let removed = if input.removed { ", removed" } else { "" };
            vec![format!("{} ({}{removed})", input.name, input.source), grouped(input.taken)]
        });
        table_of(out, &["input", "taken"], table.collect());
    }

    fn output_table(&self, out: &mut String) {
        if self.outputs.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.outputs.iter().map(|output| {
            let removed = if output.removed { ", removed" } else { "" };
            vec![format!("{} ({}{removed})", output.name, output.target), grouped(output.events)]
        });
        table_of(out, &["output", "events"], table.collect());
    }

    fn positions_table(&self, out: &mut String) {
        if self.positions.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.positions.iter().map(|row| {
            let again = format!("at most {}", grouped(row.delivered_again_at_most));
            vec![row.input.clone(), grouped(row.skipped), again]
        });
        table_of(out, &["positions kept", "skipped", "delivered again"], table.collect());
    }

    fn slowest(&self, out: &mut String) {
        if self.slowest_keys.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.slowest_keys.iter().take(KEYS_IN_TEXT).map(|slow| {
            let key = shortened(&slow.key.escape_debug().to_string());
            vec![format!("{key} ({})", slow.handler), micros((slow.ms * 1e3) as u64)]
        });
        table_of(out, &["slowest keys (handler)", "taken to settled"], table.collect());
    }
}

/// As [`rows`], with the values to the right.
fn numbers(out: &mut String, numbers: &[(&str, String)]) {
    let width = numbers.iter().map(|(_, value)| value.len()).max().unwrap_or(0);
    let aligned: Vec<_> =
        numbers.iter().map(|(name, value)| (*name, format!("{value:>width$}"))).collect();
    rows(out, &aligned);
}

/// The end of a long key.
fn shortened(key: &str) -> String {
    let length = key.chars().count();
    if length <= KEY_LENGTH {
        return key.to_owned();
    }
    key.chars().skip(length - KEY_LENGTH).fold("...".to_owned(), |mut end, letter| {
        end.push(letter);
        end
    })
}

fn rows(out: &mut String, rows: &[(&str, String)]) {
    let left = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{name:<left$}  {value}");
    }
}

/// The first column to the left, numbers to the right.
pub(crate) fn table_of(out: &mut String, heads: &[&str], table: Vec<Vec<String>>) {
    let mut lines = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
    lines.extend(table);
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    for line in &lines {
        let first = widths[0];
        let _ = write!(out, "{:<first$}", line[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(out, "  {cell:>width$}");
        }
        out.push('\n');
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

pub(crate) fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

pub(crate) fn micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> RunReport {
        RunReport {
            taken: 1_234_567,
            handled: 1_234_560,
            dead_lettered: 7,
            latency_us: Latency { p50: 250, p99: 12_500, p999: 2_000_000 },
            peak_rss_bytes: Some(10 << 20),
            slowest_keys: vec![SlowKey { key: "a\tb".into(), handler: "orders".into(), ms: 12.34 }],
            dead_letters_by_reason: [("malformed".to_owned(), 7)].into(),
            pools: vec![PoolRow { name: "default".into(), workers: 50, ..PoolRow::default() }],
            inputs: vec![InputRow {
                name: "orders".into(),
                source: "file:orders.ndjson".into(),
                taken: 5,
                removed: true,
            }],
            outputs: vec![OutputRow {
                name: "done".into(),
                target: "file:done.ndjson".into(),
                events: 3,
                removed: true,
            }],
            positions: vec![PositionsRow {
                input: "file:orders.ndjson".into(),
                skipped: 4_321,
                delivered_again_at_most: 2,
            }],
            ..RunReport::default()
        }
    }

    #[test]
    fn c16_what_is_delivered_again_is_told() {
        let text = report().render(ReportFormat::Text);
        assert!(text.contains("\nfile:orders.ndjson    4,321        at most 2\n"), "{text}");
        let value: serde_json::Value =
            serde_json::from_str(&report().render(ReportFormat::Json)).unwrap();
        assert_eq!(value["positions"][0]["delivered_again_at_most"], 2);
        let without = RunReport { positions: Vec::new(), ..report() };
        assert!(!without.render(ReportFormat::Text).contains("positions"));
    }

    #[test]
    fn o11_json_has_every_key_on_one_line() {
        let text = report().render(ReportFormat::Json);
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in [
            "taken",
            "handled",
            "ignored",
            "dead_lettered",
            "refused",
            "parked",
            "retried",
            "repeated_at_most",
            "restarts",
            "out_of_order",
            "elapsed_s",
            "events_per_s",
            "latency_us",
            "latency_p99_ms",
            "peak_queued",
            "peak_in_flight_bytes",
            "peak_rss_bytes",
            "slowest_keys",
            "dead_letters_by_reason",
            "pools",
            "inputs",
            "outputs",
        ] {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!(value["latency_us"]["p999"], 2_000_000);
        assert_eq!(value["slowest_keys"][0]["handler"], "orders");
        assert_eq!(value["dead_letters_by_reason"]["malformed"], 7);
        assert_eq!(value["pools"][0]["workers"], 50);
    }

    #[test]
    fn o11_text_is_aligned_and_escapes_keys() {
        let text = report().render(ReportFormat::Text);
        assert!(
            text.contains("taken             1,234,567\nhandled           1,234,560\n"),
            "{text}"
        );
        assert!(text.contains("dead-lettered             7\n"), "{text}");
        assert!(text.contains("latency      p50 250 us, p99 12.5 ms, p999 2.00 s\n"), "{text}");
        assert!(text.contains("default       50        0"), "{text}");
        assert!(text.contains("a\\tb (orders)"), "{text}");
        assert!(text.contains("orders (file:orders.ndjson, removed)      5"), "{text}");
        assert!(text.contains("done (file:done.ndjson, removed)"), "{text}");
        assert!(text.contains("malformed") && text.contains("      7\n"), "{text}");
    }

    #[test]
    fn o11_text_begins_with_a_verdict() {
        let first = |report: &RunReport| {
            report.render(ReportFormat::Text).lines().next().unwrap_or_default().to_owned()
        };
        let good = RunReport { elapsed_s: 0.912, ..report() };
        assert_eq!(
            first(&good),
            "done: 1,234,567 taken, 1,234,560 handled, 7 dead-lettered in 0.91 s"
        );
        let refused = RunReport { refused: 3, errors: vec!["disk full".into()], ..report() };
        assert!(first(&refused).starts_with("ended with 3 refused: 1,234,567 taken"));
        let text = refused.render(ReportFormat::Text);
        assert!(text.contains("\nerror: disk full\nrefused events"), "{text}");
        let failed = RunReport { errors: vec!["an input failed".into()], ..report() };
        assert!(first(&failed).starts_with("ended with an error: "));
        let swapped = RunReport { out_of_order: 2, refused: 1, ..report() };
        assert!(first(&swapped).starts_with("ended with 2 out of order (a defect"));
    }

    #[test]
    fn o11_text_names_five_slow_keys_at_most_and_the_ends_of_long_ones() {
        let key = |n: usize| SlowKey {
            key: format!("{}{n}", "x".repeat(99)),
            handler: "h".into(),
            ms: 0.5,
        };
        let text = RunReport { slowest_keys: (0..10).map(key).collect(), ..report() }.text();
        let keys: Vec<_> = text.lines().filter(|line| line.contains("xx")).collect();
        assert_eq!(keys.len(), 5, "{text}");
        assert!(keys[4].starts_with(&format!("...{}4 (h)", "x".repeat(44))), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1,000", "1,000,000"]);
    }
}
