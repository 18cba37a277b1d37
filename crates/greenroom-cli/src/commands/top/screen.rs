//! Renders a sample as text.

use std::{cmp::Reverse, fmt::Write};

use greenroom_config::plural;
use serde_json::Value;

use crate::{
    letters::escaped::printable as whole,
    report::{grouped, mebibytes, printable, table_of},
};

/// Rows of a table at most; those that need attention come first.
const ROWS: usize = 20;
const HOTTEST: usize = 5;
const FINDINGS: usize = 8;

/// The order of pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum PoolOrder {
    /// Those that need attention, then those with most waiting events.
    #[default]
    Trouble,
    Name,
    Rate,
}

impl PoolOrder {
    /// The next one, in a cycle.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Trouble => Self::Name,
            Self::Name => Self::Rate,
            Self::Rate => Self::Trouble,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Trouble => "trouble first",
            Self::Name => "by name",
            Self::Rate => "by rate",
        }
    }
}

/// All of it, as lines. Rates cover the time between the two samples.
pub(super) fn render(address: &str, before: &Value, now: &Value, order: PoolOrder) -> String {
    with_rows(address, (before, now), order, ROWS)
}

/// As much as fits on a screen: the verdict and the pools first; tables have fewer rows on a small
/// one, and lines are cut.
pub(super) fn fitted(
    address: &str,
    samples: (&Value, &Value),
    order: PoolOrder,
    (columns, lines): (usize, usize),
) -> String {
    let keys = format!("q quits; s sorts pools ({})", order.word());
    let room = lines.saturating_sub(2);
    let mut texts = (1..=ROWS).rev().map(|rows| with_rows(address, samples, order, rows));
    let fits = |text: &String| text.lines().count() <= room;
    let text = texts.find(fits).unwrap_or_else(|| with_rows(address, samples, order, 1));
    let cut = |line: &str| match line.chars().count() > columns {
        true => line.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
    };
    let shown = text.lines().take(room).chain(["", &*keys]).map(cut);
    shown.collect::<Vec<_>>().join("\n")
}

fn with_rows(
    address: &str,
    (before, now): (&Value, &Value),
    order: PoolOrder,
    rows: usize,
) -> String {
    let mut out = String::new();
    head(&mut out, address, now, rows.min(FINDINGS));
    run(&mut out, before, now);
    pools(&mut out, before, now, order, rows);
    inputs(&mut out, now, rows);
    targets(&mut out, now, rows);
    hottest(&mut out, now, rows.min(HOTTEST));
    out
}

fn head(out: &mut String, address: &str, now: &Value, findings: usize) {
    let up = lasted(count(&now["up_ms"]) / 1_000);
    let state = match now["health"]["health"].as_str() {
        Some("green") => "all is well".to_owned(),
        Some("red") => format!("BROKEN: {}", whole(text(&now["health"]["headline"]))),
        _ => format!("look: {}", whole(text(&now["health"]["headline"]))),
    };
    let phase = match text(&now["run"]["phase"]) {
        "run" | "" => "",
        _ => ", draining",
    };
    // Writing into a String cannot fail.
    let _ = writeln!(out, "greenroom at {address}, up {up}{phase}: {state}");
    for found in list(&now["health"]["findings"]).iter().take(findings) {
        let mark = match (text(&found["severity"]), found["follows"].is_null()) {
            (_, false) => " ->",
            ("critical", _) => "!!",
            ("warning", _) => "!",
            _ => continue,
        };
        let (what, figures) = (text(&found["what"]), text(&found["figures"]));
        let _ = writeln!(out, "  {mark} {}", whole(&format!("{what}: {figures}")));
    }
    out.push('\n');
}

fn run(out: &mut String, before: &Value, now: &Value) {
    let rate = |name: &str| per_second(before, now, &before["run"][name], &now["run"][name]);
    let run = &now["run"];
    let _ = writeln!(
        out,
        "events    {}/s finished, {}/s taken; {} finished in total",
        rate("settled"),
        rate("taken"),
        grouped(count(&run["settled"]))
    );
    let waits = run["work_waiting_s"].as_f64();
    let waits = waits.map_or(String::new(), |waits| format!("; {waits:.1} s of work"));
    let _ = writeln!(out, "waiting   {} queued{waits}", grouped(count(&run["queued"])));
    let _ = writeln!(
        out,
        "trouble   {} with {}; {}",
        plural(count(&run["parked_keys"]) as usize, "parked key"),
        plural(count(&run["parked_events"]) as usize, "event"),
        plural(count(&run["dead_lettered"]) as usize, "dead letter")
    );
    let hints = list(&now["health"]["findings"]).iter().filter(|of| of["severity"] == "hint");
    let hints: Vec<_> = hints.map(|hint| whole(text(&hint["what"]))).collect();
    let _ = match &hints[..] {
        [] => Ok(()),
        [one] => writeln!(out, "advice    {one} (greenroom advise)"),
        [one, more @ ..] => {
            writeln!(out, "advice    {one}; {} more (greenroom advise)", more.len())
        }
    };
}

fn pools(out: &mut String, before: &Value, now: &Value, order: PoolOrder, rows: usize) {
    let mut all: Vec<_> = list(&now["pools"]).iter().collect();
    let earlier = |pool: &Value| {
        let earlier = list(&before["pools"]).iter().find(|of| of["name"] == pool["name"]);
        earlier.map_or(0, |of| count(&of["handled"]))
    };
    match order {
        PoolOrder::Trouble => {
            let trouble =
                |pool: &&Value| (pool["state"] == "running", Reverse(count(&pool["queued"])));
            all.sort_by_key(trouble);
        }
        PoolOrder::Name => all.sort_by_key(|pool| text(&pool["name"]).to_owned()),
        PoolOrder::Rate => {
            all.sort_by_key(|pool| Reverse(count(&pool["handled"]).saturating_sub(earlier(pool))))
        }
    }
    let row = |pool: &&Value| {
        let earlier = list(&before["pools"]).iter().find(|of| of["name"] == pool["name"]);
        let handled = earlier.map_or(&Value::Null, |of| &of["handled"]);
        let times = &pool["recent"]["handling_ms"];
        let time = |name: &str| match count(&pool["recent"]["measured"]) {
            0 => "-".to_owned(),
            _ => millis(&times[name]),
        };
        vec![
            printable(text(&pool["name"])),
            text(&pool["state"]).to_owned(),
            per_second(before, now, handled, &pool["handled"]),
            of_most(&pool["queued"], &pool["capacity"]),
            of_most(&pool["busy"], &pool["workers"]),
            time("p50"),
            time("p99"),
            millis(&pool["oldest_ms"]),
            grouped(count(&pool["restarts"])),
        ]
    };
    let heads = ["pool", "state", "rate/s", "queue", "busy", "p50", "p99", "oldest", "restarts"];
    table(out, &heads, &all, rows, row);
}

fn inputs(out: &mut String, now: &Value, rows: usize) {
    let all: Vec<_> = list(&now["run"]["inputs"]).iter().collect();
    let row = |input: &&Value| {
        let partitions = list(&input["partitions"]);
        let lags: Vec<u64> = partitions.iter().filter_map(|of| of["lag"].as_u64()).collect();
        let lag = match lags.is_empty() {
            true => "-".to_owned(),
            false => grouped(lags.iter().sum()),
        };
        let paused = partitions.iter().filter(|of| of["state"] == "paused").count();
        vec![
            printable(text(&input["name"])),
            text(&input["state"]).to_owned(),
            lag,
            format!("{paused} of {}", partitions.len()),
            of_most(&input["held_back"], &input["run_ahead"]),
            mebibytes(count(&input["in_flight_bytes"])),
        ]
    };
    let heads = ["input", "state", "lag", "paused parts", "wait for room", "in flight"];
    table(out, &heads, &all, rows, row);
}

/// Handlers and outputs that make no progress; others are not shown.
fn targets(out: &mut String, now: &Value, rows: usize) {
    let of = |kind: &'static str| list(&now[kind]).iter().map(move |of| (kind, of));
    let stuck = of("handlers").chain(of("outputs")).filter(|(_, of)| of["state"] != "up");
    let stuck: Vec<_> = stuck.collect();
    let row = |(kind, of): &(&str, &Value)| {
        let trouble = if *kind == "handlers" { &of["outage"] } else { &of["trouble"] };
        let error = trouble["last_error"].as_str().or(of["failure"].as_str()).unwrap_or_default();
        let name = format!("{} {}", kind.trim_end_matches('s'), printable(text(&of["name"])));
        let since = millis(&trouble["lasted_ms"]);
        vec![name, text(&of["state"]).to_owned(), since, printable(error)]
    };
    if !stuck.is_empty() {
        table(out, &["no progress", "state", "for", "last error"], &stuck, rows, row);
    }
}

fn hottest(out: &mut String, now: &Value, rows: usize) {
    let all: Vec<_> = list(&now["hottest"]).iter().take(rows).collect();
    let row = |hot: &&Value| {
        vec![
            printable(text(&hot["key"])),
            printable(text(&hot["handler"])),
            grouped(count(&hot["events"])),
        ]
    };
    if !all.is_empty() {
        table(out, &["hottest key", "handler", "events"], &all, rows, row);
    }
}

fn table<T>(
    out: &mut String,
    heads: &[&str],
    all: &[T],
    rows: usize,
    row: impl Fn(&T) -> Vec<String>,
) {
    out.push('\n');
    table_of(out, heads, all.iter().take(rows).map(row).collect());
    if all.len() > rows {
        let _ = writeln!(out, "and {} more", all.len() - rows);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn of_most(some: &Value, most: &Value) -> String {
    format!("{} / {}", grouped(count(some)), grouped(count(most)))
}

/// The increase of a counter per second; `-` if it is not known.
fn per_second(before: &Value, now: &Value, from: &Value, to: &Value) -> String {
    let millis = count(&now["at_ms"]).saturating_sub(count(&before["at_ms"]));
    match (from.as_u64(), to.as_u64()) {
        (Some(from), Some(to)) if millis > 0 => {
            grouped((to.saturating_sub(from) as f64 * 1e3 / millis as f64).round() as u64)
        }
        _ => "-".to_owned(),
    }
}

/// A time in milliseconds; `-` if there is none.
fn millis(value: &Value) -> String {
    match value.as_f64() {
        None => "-".to_owned(),
        Some(millis) if millis < 10.0 => format!("{millis:.2} ms"),
        Some(millis) if millis < 1_000.0 => format!("{millis:.0} ms"),
        Some(millis) if millis < 600_000.0 => format!("{:.1} s", millis / 1e3),
        Some(millis) => lasted((millis / 1e3) as u64),
    }
}

fn lasted(seconds: u64) -> String {
    match seconds {
        0..600 => format!("{seconds} s"),
        600..36_000 => format!("{} min", seconds / 60),
        36_000..864_000 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(at_ms: u64, settled: u64) -> Value {
        json!({
            "at_ms": at_ms,
            "up_ms": 4_000_000,
            "health": { "health": "yellow", "headline": "The handler `push` is paused", "findings": [
                { "severity": "warning", "what": "The handler `push` is \u{1b}[31mpaused", "figures": "its events wait",
                  "follows": null },
                { "severity": "warning", "what": "The input `in` is held", "figures": "5 wait",
                  "follows": "handlers.push" },
                { "severity": "hint", "what": "The rate of \u{1b}[2J is low", "figures": "1/s", "follows": null },
                { "severity": "hint", "what": "another", "figures": "", "follows": null },
            ] },
            "run": {
                "phase": "run", "settled": settled, "taken": settled, "queued": 12_345, "parked_keys": 1,
                "parked_events": 3, "dead_lettered": 2, "work_waiting_s": 1.25,
                "inputs": [{
                    "name": "in", "state": "running", "held_back": 5, "run_ahead": 100, "in_flight_bytes": 1_048_576,
                    "partitions": [{ "state": "paused", "lag": 1_000 }, { "state": "running", "lag": 7 }],
                }],
            },
            "pools": [
                { "name": "calm", "state": "running", "handled": settled, "queued": 0, "capacity": 10, "busy": 1,
                  "workers": 4, "oldest_ms": null, "restarts": 0, "recent": { "measured": 0 } },
                { "name": "stuck", "state": "full", "handled": 7, "queued": 10, "capacity": 10, "busy": 4, "workers": 4,
                  "oldest_ms": 12_000.0, "restarts": 3,
                  "recent": { "measured": 9, "handling_ms": { "p50": 1.5, "p99": 250.0 } } },
            ],
            "handlers": [{ "name": "push", "state": "outage", "outage": { "lasted_ms": 2_000.0, "last_error": "503" } }],
            "outputs": [{ "name": "o", "state": "up", "trouble": null }],
            "hottest": [{ "key": "k", "handler": "push", "events": 99 }],
        })
    }

    #[test]
    fn o08_the_essentials_are_on_one_screen_and_what_needs_a_look_comes_first() {
        let text = render("h:1", &sample(1_000, 500), &sample(3_000, 2_500), PoolOrder::Trouble);
        let has = |part: &str| assert!(text.contains(part), "{part:?} is not in\n{text}");
        has("greenroom at h:1, up 66 min: look: The handler `push` is paused\n");
        has(
            "  ! The handler `push` is \\u{1b}[31mpaused: its events wait\n   -> The input `in` is held: 5 wait\n",
        );
        has("1,000/s finished, 1,000/s taken; 2,500 finished in total");
        has("12,345 queued; 1.2 s of work");
        has("1 parked key with 3 events; 2 dead letters");
        has("advice    The rate of \\u{1b}[2J is low; 1 more (greenroom advise)\n");
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line("calm"), "calm running 1,000 0 / 10 1 / 4 - - - 0");
        assert_eq!(line("stuck"), "stuck full 0 10 / 10 4 / 4 1.50 ms 250 ms 12.0 s 3");
        assert!(text.find("stuck") < text.find("calm"), "{text}");
        assert_eq!(line("in "), "in running 1,007 1 of 2 5 / 100 1.0 MiB");
        assert_eq!(line("handler push"), "handler push outage 2.0 s 503");
        assert!(!text.contains("output o"), "{text}");
        assert_eq!(line("k "), "k push 99");
    }

    #[test]
    fn o08_a_counter_that_is_new_has_no_rate_and_many_pools_are_cut() {
        let mut now = sample(3_000, 2_500);
        let pools: Vec<Value> =
            (0..30).map(|n| json!({ "name": format!("p{n}"), "handled": 1 })).collect();
        now["pools"] = pools.into();
        let text = render("h:1", &sample(1_000, 500), &now, PoolOrder::Trouble);
        assert!(text.contains("and 10 more\n"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("p0 ") && line.contains(" - ")), "{text}");
    }

    #[test]
    fn o08_it_fits_a_terminal_of_80_by_24_and_pools_are_sorted_as_wanted() {
        let (before, mut now) = (sample(1_000, 500), sample(3_000, 2_500));
        let pool = |n: u64| json!({ "name": format!("p{n:02}"), "handled": n, "state": "running" });
        now["pools"] = (0..30).map(pool).collect();
        let error = "connection refused ".repeat(40);
        now["health"]["findings"][0]["figures"] = error.into();
        for (order, first) in [(PoolOrder::Name, "p00"), (PoolOrder::Rate, "p29")] {
            let text = fitted("h:1", (&before, &now), order, (80, 24));
            let lines: Vec<_> = text.lines().collect();
            assert!(lines.len() <= 24, "{text}");
            assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
            let pool = lines.iter().find(|line| line.starts_with('p') && !line.starts_with("pool"));
            assert!(pool.unwrap().starts_with(first), "{text}");
            assert!(lines[23].starts_with("q quits; s sorts pools"), "{text}");
        }
    }
}
