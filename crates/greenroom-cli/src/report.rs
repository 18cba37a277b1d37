//! The final report of a run (O11): a table for people, or one JSON object.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use clap::ValueEnum;
use greenroom_bus::{engine::RunReport, source::PartitionStanding};
pub(crate) use greenroom_config::grouped;

/// This many slow keys are enough for a reader; JSON has all that were kept.
const KEYS_IN_TEXT: usize = 5;
/// The end of a key tells more than its beginning: paths and numbers differ there.
const KEY_LENGTH: usize = 45;

/// How many requests an `http` input has answered with each status.
pub(crate) type Answers = Vec<(u16, u64)>;

/// The same for each input that existed at the end, by its name.
pub(crate) type AllAnswers = BTreeMap<String, Answers>;

/// The format of the final report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// An aligned table
    Text,
    /// One JSON object
    Json,
}

/// The report as printed, with a newline at its end.
pub(crate) fn render(report: &RunReport, answers: &AllAnswers, format: ReportFormat) -> String {
    match format {
        ReportFormat::Text => ReportText(report, answers).whole(),
        ReportFormat::Json => json(report),
    }
}

fn json(report: &RunReport) -> String {
    // Numbers that are not finite become null, and every key is text: nothing here can fail.
    let text =
        serde_json::to_string(report).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}"));
    text + "\n"
}

/// The report for people, with the answers of `http` inputs.
struct ReportText<'a>(&'a RunReport, &'a AllAnswers);

impl ReportText<'_> {
    fn whole(&self) -> String {
        let mut out = self.verdict();
        for error in &self.0.errors {
            let _ = writeln!(out, "error: {error}");
        }
        for warning in &self.0.warnings {
            let _ = writeln!(out, "warning: {warning}");
        }
        if self.0.refused > 0 {
            out.push_str(
                "refused events were neither handled nor stored: run again to handle them\n",
            );
        }
        out.push('\n');
        self.ledger(&mut out);
        self.measures(&mut out);
        self.reasons(&mut out);
        self.pool_table(&mut out);
        self.input_table(&mut out);
        self.answer_table(&mut out);
        self.output_table(&mut out);
        self.positions_table(&mut out);
        self.slowest(&mut out);
        out
    }

    /// The most important result, in one line.
    fn verdict(&self) -> String {
        let how = match (self.0.out_of_order, self.0.refused, self.0.errors.len()) {
            (0, 0, 0) => "done".to_owned(),
            (0, 0, 1) => "ended with an error".to_owned(),
            (0, 0, errors) => format!("ended with {errors} errors"),
            (0, refused, _) => format!("ended with {} refused", grouped(refused)),
            (swapped, ..) => {
                format!("ended with {} out of order (a defect: please report it)", grouped(swapped))
            }
        };
        let mut counts =
            format!("{} taken, {} handled", grouped(self.0.taken), grouped(self.0.handled));
        for (count, name) in [
            (self.0.dead_lettered, "dead-lettered"),
            (self.0.ignored, "ignored"),
            (self.0.given_back, "given back"),
        ] {
            if count > 0 {
                let _ = write!(counts, ", {} {name}", grouped(count));
            }
        }
        format!("{how}: {counts} in {}\n", seconds(self.0.elapsed.as_secs_f64()))
    }

    fn ledger(&self, out: &mut String) {
        let mut rows = vec![
            ("taken", grouped(self.0.taken)),
            ("handled", grouped(self.0.handled)),
            ("ignored", grouped(self.0.ignored)),
            ("dead-lettered", grouped(self.0.dead_lettered)),
            ("refused", grouped(self.0.refused)),
        ];
        // For inputs whose partitions come and go.
        if self.0.revoked > 0 {
            rows.push(("revoked", grouped(self.0.revoked)));
        }
        // After a stop.
        if self.0.given_back > 0 {
            rows.push(("given back", grouped(self.0.given_back)));
        }
        rows.extend([
            ("retried", grouped(self.0.retried)),
            ("repeated at most", grouped(self.0.repeated_at_most)),
            ("restarts", grouped(self.0.restarts)),
            ("out of order", grouped(self.0.out_of_order)),
        ]);
        numbers(out, &rows);
    }

    fn measures(&self, out: &mut String) {
        let [p50, p99, p999] = self.0.latency.map(whole_micros);
        let memory = self.0.peak_rss_bytes.map_or_else(|| "unknown".to_owned(), mebibytes);
        let latency = format!("p50 {}, p99 {}, p999 {}", micros(p50), micros(p99), micros(p999));
        out.push('\n');
        rows(
            out,
            &[
                ("elapsed", seconds(self.0.elapsed.as_secs_f64())),
                ("events/s", grouped(self.0.events_per_second().round() as u64)),
                ("latency", latency),
                ("peak queued", grouped(self.0.peak_queued)),
                ("peak memory", memory),
            ],
        );
    }

    fn reasons(&self, out: &mut String) {
        if self.0.dead_letters_by_reason.is_empty() {
            return;
        }
        out.push('\n');
        let table = self
            .0
            .dead_letters_by_reason
            .iter()
            .map(|(reason, count)| vec![(*reason).to_owned(), grouped(*count)]);
        table_of(
            out,
            &[&format!("dead letters ({})", self.0.dead_letters), "items"],
            table.collect(),
        );
    }

    fn pool_table(&self, out: &mut String) {
        let table = self.0.pools.iter().map(|pool| {
            vec![
                pool.name.clone(),
                grouped(pool.workers as u64),
                grouped(pool.handled),
                grouped(pool.failed_attempts),
                grouped(pool.dead_lettered),
                grouped(pool.restarts),
            ]
        });
        // Restarts of worker processes are in the sum above only: they belong to handlers.
        let heads = ["pool", "workers", "handled", "failed attempts", "dead letters", "panics"];
        out.push('\n');
        table_of(out, &heads, table.collect());
    }

    /// If inputs came and went: for the others, the sum above is enough.
    fn input_table(&self, out: &mut String) {
        if !self.0.inputs.iter().any(|input| input.removed) {
            return;
        }
        out.push('\n');
        let table = self.0.inputs.iter().map(|input| {
            let removed = if input.removed { ", removed" } else { "" };
            vec![format!("{} ({}{removed})", input.name, input.source), grouped(input.taken)]
        });
        table_of(out, &["input", "taken"], table.collect());
    }

    /// For `http` inputs that existed at the end.
    fn answer_table(&self, out: &mut String) {
        if self.1.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.1.iter().map(|(input, answers)| {
            let count = |(status, count): &(u16, u64)| format!("{status}: {}", grouped(*count));
            let counts: Vec<_> = answers.iter().map(count).collect();
            vec![input.clone(), if counts.is_empty() { "-".to_owned() } else { counts.join(", ") }]
        });
        table_of(out, &["http input", "requests by answer"], table.collect());
    }

    fn output_table(&self, out: &mut String) {
        if self.0.outputs.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.0.outputs.iter().map(|output| {
            let mut row = format!("{} ({}", output.name, output.target);
            if output.removed {
                row.push_str(", removed");
            }
            if output.rejected > 0 {
                let _ = write!(row, ", {} rejected", grouped(output.rejected));
            }
            if let Some(trouble) = &output.trouble {
                let _ = write!(row, ", {trouble}");
            }
            vec![row + ")", grouped(output.events)]
        });
        table_of(out, &["output", "events"], table.collect());
    }

    fn positions_table(&self, out: &mut String) {
        if self.0.positions.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.0.positions.iter().map(|row| {
            let again = format!("at most {}", grouped(row.standing.repeated_at_most));
            vec![row.input.clone(), grouped(row.standing.skipped), again]
        });
        table_of(out, &["positions kept", "skipped", "delivered again"], table.collect());
        self.partitions_table(out);
    }

    /// Only if work remains: finished partitions are covered by the lines above.
    fn partitions_table(&self, out: &mut String) {
        let all = self.0.positions.iter();
        let all =
            all.flat_map(|row| row.partitions.iter().map(|partition| (&row.input, partition)));
        let is_left = |partition: &PartitionStanding| {
            partition.oldest_open < partition.next || partition.lag.is_some_and(|lag| lag > 0)
        };
        let left: Vec<_> = all.filter(|(_, partition)| is_left(partition)).collect();
        if left.is_empty() {
            return;
        }
        out.push('\n');
        let table = left.into_iter().map(|(input, partition)| {
            let PartitionStanding { partition, next, oldest_open, lag, .. } = partition;
            let lag = lag.map_or_else(|| "unknown".to_owned(), grouped);
            vec![format!("{input} {partition}"), grouped(*oldest_open), grouped(*next), lag]
        });
        let heads = ["partition not done", "oldest open", "taken below", "behind that"];
        table_of(out, &heads, table.collect());
    }

    fn slowest(&self, out: &mut String) {
        if self.0.slowest_keys.is_empty() {
            return;
        }
        out.push('\n');
        let table = self.0.slowest_keys.iter().take(KEYS_IN_TEXT).map(|slow| {
            let key = shortened(&slow.key.escape_debug().to_string());
            vec![format!("{key} ({})", slow.handler), micros(whole_micros(slow.longest))]
        });
        table_of(out, &["slowest keys (handler)", "taken to handled"], table.collect());
    }
}

fn whole_micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Like [`rows`], with the values to the right.
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

/// The contents of an event must not control or fill the terminal, nor hide in it.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown = greenroom_bus::printable::printable(text);
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
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
    use greenroom_bus::{
        engine::{InputReport, OutputReport, PoolReport, PositionsReport, SlowKey},
        source::{Partition, Standing},
        watermark::{DoneAhead, Epoch},
    };

    use super::*;

    fn report() -> RunReport {
        let mut report = RunReport::default();
        (report.taken, report.handled, report.dead_lettered) = (1_234_567, 1_234_560, 7);
        report.latency = [250, 12_500, 2_000_000].map(Duration::from_micros);
        report.peak_rss_bytes = Some(10 << 20);
        report.slowest_keys = vec![slow_key("a\tb", "orders", 12_340)];
        report.dead_letters_by_reason = [("malformed", 7)].into();
        report.pools =
            vec![PoolReport { name: "default".into(), workers: 50, ..PoolReport::default() }];
        let mut input = InputReport::default();
        (input.name, input.source) = ("orders".into(), "file:orders.ndjson".into());
        (input.taken, input.removed) = (5, true);
        report.inputs = vec![input];
        let mut output = OutputReport::default();
        (output.name, output.target) = ("done".into(), "file:done.ndjson".into());
        (output.events, output.removed) = (3, true);
        report.outputs = vec![output];
        report.positions = vec![PositionsReport {
            input: "file:orders.ndjson".into(),
            standing: Standing { resumed: None, skipped: 4_321, repeated_at_most: 2 },
            partitions: Vec::new(),
        }];
        report
    }

    fn slow_key(key: &str, handler: &str, micros: u64) -> SlowKey {
        let longest = Duration::from_micros(micros);
        SlowKey { key: key.into(), handler: handler.into(), longest }
    }

    /// The report with a change.
    fn with(change: impl FnOnce(&mut RunReport)) -> RunReport {
        let mut report = report();
        change(&mut report);
        report
    }

    #[test]
    fn c16_what_is_delivered_again_is_told() {
        let text = render(&report(), &AllAnswers::new(), ReportFormat::Text);
        assert!(text.contains("\nfile:orders.ndjson    4,321        at most 2\n"), "{text}");
        let value: serde_json::Value =
            serde_json::from_str(&render(&report(), &AllAnswers::new(), ReportFormat::Json))
                .unwrap();
        assert_eq!(value["positions"][0]["delivered_again_at_most"], 2);
        let without = with(|report| report.positions.clear());
        assert!(!render(&without, &AllAnswers::new(), ReportFormat::Text).contains("positions"));
    }

    #[test]
    fn d15_partitions_that_are_not_done_are_told_with_their_oldest_open_position() {
        let standing = |partition, oldest_open, lag| PartitionStanding {
            partition: Partition(partition),
            epoch: Epoch::default(),
            next: 5_000,
            oldest_open,
            lag,
            ahead: DoneAhead::default(),
        };
        let report = with(|report| {
            let rows = [(0, 5_000, Some(0)), (1, 17, None), (2, 5_000, Some(3))];
            report.positions[0].partitions = rows.map(|(a, b, c)| standing(a, b, c)).into();
        });
        let text = render(&report, &AllAnswers::new(), ReportFormat::Text);
        assert!(
            text.contains("\nfile:orders.ndjson 1           17        5,000      unknown\n"),
            "{text}"
        );
        assert!(
            text.contains("\nfile:orders.ndjson 2        5,000        5,000            3\n"),
            "{text}"
        );
        assert!(!text.contains("orders.ndjson 0"), "it is done");
    }

    #[test]
    fn b02_what_http_inputs_have_answered_is_told() {
        let some = ("orders".to_owned(), vec![(202, 12_345), (401, 2)]);
        let answers = AllAnswers::from([some, ("hooks".to_owned(), Vec::new())]);
        let text = render(&report(), &answers, ReportFormat::Text);
        for row in ["requests by answer\n", "\norders", " 202: 12,345, 401: 2\n", "\nhooks"] {
            assert!(text.contains(row), "{row} in {text}");
        }
    }

    #[test]
    fn o11_json_has_every_key_on_one_line() {
        let text = render(&report(), &AllAnswers::new(), ReportFormat::Json);
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        for key in [
            "taken",
            "handled",
            "ignored",
            "dead_lettered",
            "refused",
            "revoked",
            "given_back",
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
        let text = render(&report(), &AllAnswers::new(), ReportFormat::Text);
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
            render(report, &AllAnswers::new(), ReportFormat::Text)
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let good = with(|report| report.elapsed = Duration::from_millis(912));
        assert_eq!(
            first(&good),
            "done: 1,234,567 taken, 1,234,560 handled, 7 dead-lettered in 0.91 s"
        );
        let refused =
            with(|report| (report.refused, report.errors) = (3, vec!["disk full".into()]));
        assert!(first(&refused).starts_with("ended with 3 refused: 1,234,567 taken"));
        let text = render(&refused, &AllAnswers::new(), ReportFormat::Text);
        assert!(text.contains("\nerror: disk full\nrefused events"), "{text}");
        let stopped = with(|report| (report.elapsed, report.given_back) = (good.elapsed, 12));
        let done =
            "done: 1,234,567 taken, 1,234,560 handled, 7 dead-lettered, 12 given back in 0.91 s";
        assert_eq!(first(&stopped), done);
        let text = render(&stopped, &AllAnswers::new(), ReportFormat::Text);
        assert!(text.contains("given back               12\n"), "{text}");
        let failed = with(|report| report.errors = vec!["an input failed".into()]);
        assert!(first(&failed).starts_with("ended with an error: "));
        let swapped = with(|report| (report.out_of_order, report.refused) = (2, 1));
        assert!(first(&swapped).starts_with("ended with 2 out of order (a defect"));
    }

    #[test]
    fn o11_text_names_five_slow_keys_at_most_and_the_ends_of_long_ones() {
        let key = |n: usize| slow_key(&format!("{}{n}", "x".repeat(99)), "h", 500);
        let text = render(
            &with(|report| report.slowest_keys = (0..10).map(key).collect()),
            &AllAnswers::new(),
            ReportFormat::Text,
        );
        let keys: Vec<_> = text.lines().filter(|line| line.contains("xx")).collect();
        assert_eq!(keys.len(), 5, "{text}");
        assert!(keys[4].starts_with(&format!("...{}4 (h)", "x".repeat(44))), "{text}");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_000_000].map(grouped), ["0", "999", "1,000", "1,000,000"]);
    }
}
