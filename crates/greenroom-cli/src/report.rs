//! The final report of a run (O11): a table for people, or one JSON object.

use std::{collections::BTreeMap, fmt::Write};

use serde::Serialize;

use crate::cli::ReportFormat;

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
    /// Attempts that were followed by another.
    pub retried: u64,
    /// Attempts that failed and may have had an effect: timeouts, and worker processes that died with the event.
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
    /// The largest resident memory, in bytes; null where the system does not tell.
    pub peak_rss_bytes: Option<u64>,
    /// The keys that took longest, the longest first.
    pub slowest_keys: Vec<SlowKey>,
    /// Dead letters by reason.
    pub dead_letters_by_reason: BTreeMap<String, u64>,
    /// One row for each pool.
    pub pools: Vec<PoolRow>,
    /// One row for each output.
    pub outputs: Vec<OutputRow>,
    /// Where dead letters are stored.
    pub dead_letters: String,
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

/// What an output took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OutputRow {
    /// Its name.
    pub name: String,
    /// What it writes to, for example `file:done.ndjson`.
    pub target: String,
    /// Events stored.
    pub events: u64,
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
        let mut out = String::new();
        self.ledger(&mut out);
        self.measures(&mut out);
        self.reasons(&mut out);
        self.pool_table(&mut out);
        self.output_table(&mut out);
        self.slowest(&mut out);
        for error in &self.errors {
            let _ = write!(out, "\nerror: {error}\n");
        }
        out
    }

    fn ledger(&self, out: &mut String) {
        rows(
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
                ("elapsed", format!("{:.2} s", self.elapsed_s)),
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
            &[&format!("dead letters ({})", self.dead_letters), "events"],
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
        let heads = ["pool", "workers", "handled", "failed attempts", "dead letters", "restarts"];
        out.push('\n');
        table_of(out, &heads, table.collect());
    }

    fn output_table(&self, out: &mut String) {
        if self.outputs.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.outputs.iter().map(|output| {
            vec![format!("{} ({})", output.name, output.target), grouped(output.events)]
        });
        table_of(out, &["output", "events"], table.collect());
    }

    fn slowest(&self, out: &mut String) {
        if self.slowest_keys.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.slowest_keys.iter().map(|slow| {
            let key = slow.key.escape_debug().to_string();
            vec![format!("{key} ({})", slow.handler), format!("{:.1} ms", slow.ms)]
        });
        table_of(out, &["slowest keys", "time"], table.collect());
    }
}

fn rows(out: &mut String, rows: &[(&str, String)]) {
    let left = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in rows {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{name:<left$}  {value}");
    }
}

/// The first column to the left, numbers to the right.
fn table_of(out: &mut String, heads: &[&str], table: Vec<Vec<String>>) {
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

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

fn micros(micros: u64) -> String {
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
            outputs: vec![OutputRow {
                name: "done".into(),
                target: "file:done.ndjson".into(),
                events: 3,
            }],
            ..RunReport::default()
        }
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
            "retried",
            "repeated_at_most",
            "restarts",
            "out_of_order",
            "elapsed_s",
            "events_per_s",
            "latency_us",
            "latency_p99_ms",
            "peak_queued",
            "peak_rss_bytes",
            "slowest_keys",
            "dead_letters_by_reason",
            "pools",
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
        assert!(text.contains("taken             1,234,567\n"), "{text}");
        assert!(text.contains("latency      p50 250 us, p99 12.5 ms, p999 2.00 s\n"), "{text}");
        assert!(text.contains("default       50        0"), "{text}");
        assert!(text.contains("a\\tb (orders)"), "{text}");
        assert!(text.contains("malformed") && text.contains("      7\n"), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1,000", "1,000,000"]);
    }
}
