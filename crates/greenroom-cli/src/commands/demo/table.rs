//! The tables of the demo: one while it runs, and the same with a verdict at its end.

use std::{fmt::Write, sync::atomic::Ordering::Relaxed, time::Duration};

use super::{
    arrivals::SLOW_NAME,
    ledger::LedgerCounts,
    show::Show,
    side::{Side, WORKERS},
    target::SLOW_WORK,
};
use crate::{
    latencies::Latencies,
    report::{grouped, micros, seconds, table_of},
};

/// While it runs. Losses are known only at the end; until then, it counts overtaken messages.
pub(super) fn live(show: &Show) -> String {
    let counts: Vec<_> = show.sides.iter().map(|side| side.target.ledger.counts()).collect();
    let mut out = format!("{}\n\n", clock(show));
    out.push_str(&body(show, &counts));
    out.trim_end().to_owned()
}

/// When it is over.
pub(super) fn last(show: &Show) -> String {
    let counts: Vec<_> = show.sides.iter().map(|side| side.counts()).collect();
    let mut out = heading(show);
    out.push('\n');
    out.push_str(&body(show, &counts));
    out.push_str(&verdict(show));
    out
}

/// One line, for logs.
pub(super) fn line(show: &Show) -> String {
    let of_side = |side: &std::sync::Arc<Side>| {
        let counts = side.target.ledger.counts();
        format!(
            "{}: {} handled, p99 {}, lost {}, out of order {}, repeated at most {}",
            side.name(),
            grouped(counts.handled),
            percentile(&side.target.others, 0.99),
            counts.lost,
            counts.out_of_order,
            side.repeated_at_most()
        )
    };
    let sides: Vec<_> = show.sides.iter().map(of_side).collect();
    format!("{}; {}", clock(show), sides.join("; "))
}

fn clock(show: &Show) -> String {
    let (now, length) = (show.started.elapsed(), show.arrivals.length);
    if now < length {
        format!("{:.1} s of {}", now.as_secs_f64(), seconds(length.as_secs_f64()))
    } else {
        "no more messages arrive; the last are being handled".to_owned()
    }
}

/// The parameters of the demo.
fn heading(show: &Show) -> String {
    let mut out = format!(
        "{} messages of {} keys in {}, {WORKERS} workers; the most frequent key has {:.0}% of them\n",
        grouped(show.arrivals.all.len() as u64),
        grouped(show.arrivals.keys_used() as u64),
        seconds(show.arrivals.length.as_secs_f64()),
        100.0 * show.arrivals.hottest_part(),
    );
    if show.has_slow_key() {
        let _ = writeln!(
            out,
            "`{SLOW_NAME}` takes {} ms for each of its messages, every other key 1 ms",
            SLOW_WORK.as_millis()
        );
    } else {
        out.push_str("the target refuses one attempt in 20, and loses one answer in 200\n");
    }
    out
}

fn body(show: &Show, counts: &[LedgerCounts]) -> String {
    let mut rows = latencies(show);
    let mut add = |name: &str, of: &dyn Fn(&Side, &LedgerCounts) -> u64| {
        let cells = show.sides.iter().zip(counts).map(|(side, counts)| grouped(of(side, counts)));
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    };
    add("sent", &|side, _| side.sent());
    add("handled", &|_, counts| counts.handled);
    if !show.has_slow_key() {
        add("retried: refused", &|side, _| side.target.refused.load(Relaxed));
        add("retried: answer lost", &|side, _| side.repeated_at_most());
    }
    add("lost", &|_, counts| counts.lost);
    add("out of order", &|_, counts| counts.out_of_order);
    add("repeated", &|_, counts| counts.repeated);
    add("repeated at most", &|side, _| side.repeated_at_most());
    let heads: Vec<_> = [""].into_iter().chain(show.sides.iter().map(|side| side.name())).collect();
    let mut out = String::new();
    table_of(&mut out, &heads, rows);
    // A single column needs no name.
    match out.split_once('\n') {
        Some((_, rows)) if !show.has_slow_key() => rows.to_owned(),
        _ => out,
    }
}

/// From arrival to handled.
fn latencies(show: &Show) -> Vec<Vec<String>> {
    let row = |name: String, of: &dyn Fn(&Side) -> String| {
        [name].into_iter().chain(show.sides.iter().map(|side| of(side))).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    let others = if show.has_slow_key() { "all other keys" } else { "arrival to handled" };
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let of = |side: &Side| percentile(&side.target.others, part);
        rows.push(row(format!("{others}, {name}"), &of));
    }
    if show.has_slow_key() {
        for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
            let of = |side: &Side| percentile(&side.target.slow, part);
            rows.push(row(format!("{SLOW_NAME}, {name}"), &of));
        }
    }
    rows
}

fn percentile(latencies: &Latencies, part: f64) -> String {
    let found = latencies.percentile(part).map(|time: Duration| time.as_micros() as u64);
    found.map_or_else(|| "-".to_owned(), micros)
}

/// The figures in one sentence.
fn verdict(show: &Show) -> String {
    let p99 = |side: &Side| side.target.others.percentile(0.99);
    match show.sides.as_slice() {
        [lanes, hashing] => match (p99(lanes), p99(hashing)) {
            (Some(lanes), Some(hashing)) if hashing > lanes => format!(
                "\nwith one slow key, one in a hundred of all other messages takes {} or longer if keys share a worker, and {} if they do not\n",
                micros(hashing.as_micros() as u64),
                micros(lanes.as_micros() as u64)
            ),
            _ => String::new(),
        },
        _ => "\neach failed message was retried before any later message of its key\n".to_owned(),
    }
}
