//! The engine's report in the words and units of the command line.

use std::time::Duration;

use greenroom_bus::engine;

use crate::report::{InputRow, Latency, OutputRow, PoolRow, PositionsRow, RunReport, SlowKey};

pub(super) fn of(report: &engine::RunReport) -> RunReport {
    let [p50, p99, p999] = report.latency.map(|latency| latency.as_micros() as u64);
    RunReport {
        taken: report.taken,
        handled: report.handled,
        ignored: report.ignored,
        dead_lettered: report.dead_lettered,
        refused: report.refused,
        parked: report.parked,
        retried: report.retried,
        repeated_at_most: report.repeated_at_most,
        restarts: report.restarts,
        out_of_order: report.out_of_order,
        elapsed_s: report.elapsed.as_secs_f64(),
        events_per_s: report.events_per_second(),
        latency_us: Latency { p50, p99, p999 },
        latency_p99_ms: p99 as f64 / 1e3,
        peak_queued: report.peak_queued,
        peak_in_flight_bytes: report.peak_in_flight_bytes,
        peak_rss_bytes: report.peak_rss_bytes,
        slowest_keys: report.slowest_keys.iter().map(slow_key).collect(),
        dead_letters_by_reason: reasons(report),
        pools: report.pools.iter().map(pool).collect(),
        inputs: report.inputs.iter().map(input).collect(),
        outputs: report.outputs.iter().map(output).collect(),
        positions: report.positions.iter().map(positions).collect(),
        dead_letters: report.dead_letters.clone(),
        warnings: report.warnings.clone(),
        errors: report.errors.clone(),
    }
}

fn reasons(report: &engine::RunReport) -> std::collections::BTreeMap<String, u64> {
    let reasons = report.dead_letters_by_reason.iter();
    reasons.map(|(reason, count)| ((*reason).to_owned(), *count)).collect()
}

fn slow_key(slow: &engine::SlowKey) -> SlowKey {
    let ms = millis(slow.longest);
    SlowKey { key: slow.key.clone(), handler: slow.handler.clone(), ms }
}

fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

fn pool(pool: &engine::PoolReport) -> PoolRow {
    PoolRow {
        name: pool.name.clone(),
        workers: pool.workers as u64,
        handled: pool.handled,
        failed_attempts: pool.failed_attempts,
        dead_letters: pool.dead_lettered,
        restarts: pool.restarts,
    }
}

fn input(input: &engine::InputReport) -> InputRow {
    let (name, source) = (input.name.clone(), input.source.clone());
    InputRow { name, source, taken: input.taken, removed: input.removed }
}

fn output(output: &engine::OutputReport) -> OutputRow {
    let (name, target) = (output.name.clone(), output.target.clone());
    OutputRow { name, target, events: output.events, removed: output.removed }
}

fn positions(positions: &engine::PositionsReport) -> PositionsRow {
    PositionsRow {
        input: positions.input.clone(),
        skipped: positions.standing.skipped,
        delivered_again_at_most: positions.standing.repeated_at_most,
    }
}
