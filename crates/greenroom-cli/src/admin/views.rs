//! The engine's views, as JSON. Times are in milliseconds.

use std::time::Duration;

use greenroom::{
    DeadLetterReason, FinalAction,
    keys::{KeyCounts, KeyState},
    stats::LatencySummary,
};
use greenroom_bus::engine::{
    AttemptsSnapshot, Decided, HandlerView, HotView, InputView, KeyPartition, KeyView, OutageCause,
    OutageView, OutputView, ParkedEvent, ParkedView, PartitionView, Phase, PoolConfig, PoolView,
};
use greenroom_bus::store::letters::{Mask, error_group};
use serde_json::{Map, Value, json};

use super::{daemon::Daemon, sentence};
use crate::{
    config::{Config, Kinds, Word},
    report::Answers,
    run::layers::HandlerLayers,
};

pub(super) fn run(daemon: &Daemon) -> Value {
    let control = &daemon.control;
    let reports = control.inputs();
    // A replaced input appears twice.
    let taken = |view: &InputView| {
        let own = reports.iter().filter(|report| report.name == view.name);
        own.map(|report| report.taken).sum::<u64>()
    };
    let progress = control.progress();
    json!({
        "phase": match control.phase() {
            Phase::Run => "run",
            Phase::Drain => "drain",
            Phase::Now => "stop",
        },
        "taken": progress.taken,
        "settled": progress.settled,
        "dead_lettered": progress.dead_lettered,
        "dead_letters_open": progress.dead_letters_open,
        "dead_letters_lost": progress.dead_letters_lost,
        "queued": progress.queued,
        "parked_keys": progress.parked_keys,
        "parked_events": progress.parked_events,
        "standstill": control.standstill(),
        "in_flight_bytes": progress.in_flight_bytes,
        "inputs": control.input_views().iter().map(|view| input(view, taken(view), daemon)).collect::<Value>(),
        "read": progress.read,
        "work_waiting_s": daemon.figures.work_waiting(),
    })
}

fn input(view: &InputView, taken: u64, daemon: &Daemon) -> Value {
    let answers = daemon.reload.answers(&view.name);
    let by_status = |answers: Answers| -> Map<String, Value> {
        answers.into_iter().map(|(status, count)| (status.to_string(), count.into())).collect()
    };
    json!({
        "name": view.name,
        "source": view.source,
        "taken": taken,
        "state": match view.not_connected() {
            Some(status) => status.state.word(),
            None if view.is_paused() => "paused",
            None => "running",
        },
        "connection": view.state().word(),
        // For inputs that are clients of a broker.
        "connection_detail": view.status.as_ref().map(|status| &status.detail),
        "connection_since_ms": view.status.as_ref().map(|status| millis(status.lasted)),
        "in_flight_bytes": view.in_flight_bytes,
        "most_in_flight_bytes": view.most_in_flight_bytes,
        "in_flight": view.in_flight_limit,
        "held_back": view.held_back,
        "run_ahead": view.run_ahead,
        // The share that stops the input, and the number of its events beside the pool.
        "held_by_share": view.stands_for_share().map(|held| {
            json!({ "pool": held.pool, "share": held.share, "events": held.events })
        }),
        "parked": view.parked,
        "refuses_parked": view.refuses_parked,
        "last_settled_ms": view.last_settled.map(millis),
        // For inputs that follow files: those that hold unread data but are not open.
        "files_at_risk": view.files_at_risk,
        // For `http` inputs: requests by the status of their answer.
        "answers": answers.map(by_status),
        "partitions": view.partitions.iter().map(partition).collect::<Value>(),
    })
}

fn partition(view: &PartitionView) -> Value {
    let standing = view.standing.as_ref();
    json!({
        "partition": view.partition.0,
        "state": if view.is_paused { "paused" } else { "running" },
        "in_flight_bytes": view.in_flight_bytes,
        "in_flight": view.in_flight_limit,
        "held_back": view.held_back,
        "run_ahead": view.run_ahead,
        "last_settled_ms": view.last_settled.map(millis),
        // For inputs that keep their positions.
        "next": standing.map(|standing| standing.next),
        "oldest_open": standing.map(|standing| standing.oldest_open),
        "lag": standing.and_then(|standing| standing.lag),
    })
}

pub(super) fn pool(view: &PoolView, config: &Config) -> Value {
    let stats = &view.stats;
    let written = config.pools.iter().find(|pool| pool.name == view.name);
    json!({
        "name": view.name,
        "state": pool_state(view),
        "settings": pool_settings(&view.config),
        "rate_per_s": written.and_then(|pool| pool.rate).map(|rate| rate.per_second),
        "workers": stats.configured,
        "live": stats.live,
        "busy": stats.busy,
        "idle": stats.idle,
        "capacity": stats.capacity,
        "queued": stats.queued,
        "oldest_ms": stats.oldest.map(millis),
        "in_hand": stats.in_hand,
        "retrying_or_parked": stats.waiting,
        "parked": stats.parked,
        "accepted": stats.accepted,
        "handled": stats.handled,
        "failed_attempts": view.failed_attempts,
        "further_attempts": view.further_attempts,
        "dead_lettered": view.dead_lettered,
        "restarts": stats.restarts,
        "full_episodes": stats.inbox_full,
        "limit": stats.limits.limit,
        "keys": view.keys.as_ref().map(key_counts),
        "has_shares": view.has_shares,
        "queueing_ms": spread(&stats.queueing),
        "handling_ms": spread(&stats.handling),
    })
}

fn pool_state(view: &PoolView) -> &'static str {
    let stats = &view.stats;
    match () {
        () if stats.live == 0 => "without workers",
        () if view.paused => "paused",
        () if stats.queued >= stats.capacity as u64 => "full",
        () => "running",
    }
}

fn pool_settings(pool: &PoolConfig) -> Value {
    json!({
        "workers": pool.workers,
        "queue": pool.queue,
        "engine": pool.engine.to_string(),
        "max_per_key": pool.max_per_key,
        "on_full": pool.on_full.word(),
        "on_final_failure": match pool.on_final_failure {
            FinalAction::ParkKey => "park",
            FinalAction::StopPool => "stop",
            _ => "skip",
        },
        "max_restarts": pool.restarts.max,
        "weight": pool.weight,
    })
}

fn key_counts(keys: &KeyCounts) -> Value {
    json!({
        "running": keys.running,
        "retrying": keys.retrying,
        "parked": keys.parked,
        "ready": keys.ready,
        "waiting_events": keys.waiting,
    })
}

pub(super) fn spread(spread: &LatencySummary) -> Value {
    json!({
        "p50": millis(spread.p50),
        "p90": millis(spread.p90),
        "p99": millis(spread.p99),
        "max": millis(spread.max),
    })
}

/// `attempts`: how its attempts have ended so far.
pub(super) fn handler(
    view: &HandlerView,
    attempts: &AttemptsSnapshot,
    config: &Config,
    layers: &HandlerLayers,
) -> Value {
    let settings = config.handlers.iter().find(|handler| handler.name == view.name);
    let on: Vec<_> = view.on.iter().map(ToString::to_string).collect();
    json!({
        "name": view.name,
        "kind": settings.map(|handler| handler.kind.key()),
        "pool": view.pool,
        "on": on,
        "order_by": view.order_by.as_ref().map(ToString::to_string),
        "attempts": view.retry.attempts,
        "state": match &view.outage {
            _ if view.paused => "paused",
            None => "up",
            Some(outage) => match outage.cause {
                OutageCause::Refused => "refused",
                OutageCause::Broken => "broken",
                _ => "outage",
            },
        },
        "outage": view.outage.as_ref().map(outage),
        "crashes": view.crashes,
        "crash_loop": view.crash_loop.as_ref().map(|of| {
            json!({ "crashes": of.crashes, "lasted_ms": millis(of.lasted), "last": of.last })
        }),
        "handled": attempts.succeeded,
        "failed": attempts.failed,
        "without_key": view.without_key,
        "layers": layers.view(view.name.as_str()),
    })
}

pub(super) fn output(view: &OutputView, config: &Config) -> Value {
    let settings = config.outputs.iter().find(|output| output.name == view.name);
    let on: Vec<_> = view.on.iter().map(ToString::to_string).collect();
    json!({
        "name": view.name,
        "kind": settings.map(|output| output.kind.key()),
        "target": view.target,
        "on": on,
        "state": match &view.trouble {
            _ if view.failure.is_some() => "failed",
            None => "up",
            Some(trouble) if trouble.paused => "paused",
            Some(_) => "failing",
        },
        "trouble": view.trouble.as_ref().map(|trouble| {
            json!({ "lasted_ms": millis(trouble.lasted), "last_error": trouble.error })
        }),
        "failure": view.failure,
        "events": view.events,
        "rejected": view.rejected,
        "waiting": view.waiting.iter().map(|(pool, workers)| {
            json!({ "pool": pool, "workers": workers })
        }).collect::<Value>(),
        // Not done yet: it is still storing accepted events.
        "removed": view.removed,
    })
}

fn outage(outage: &OutageView) -> Value {
    json!({ "lasted_ms": millis(outage.lasted), "last_error": outage.error })
}

/// The state of a key with one handler and one input; `held_by`: the reason why its pool waits.
pub(super) fn line(
    key: &KeyView,
    outage: Option<&OutageView>,
    held_by: Option<&str>,
    mask: &Mask,
) -> Value {
    let mut line = json!({
        "handler": key.handler,
        "pool": key.pool,
        "input": key.input,
        "unsettled": key.unsettled,
        "text": sentence::compose(key, outage, held_by),
        "event": key.parked_for.as_ref().map(|parked| decided_about(parked, mask)),
    });
    if let Some(share) = &key.share {
        line["share"] = super::shares::view(share, key.beside);
    }
    if !key.partitions.is_empty() {
        line["partitions"] = key.partitions.iter().map(key_partition).collect();
    }
    let Some(why) = &key.why else { return line };
    let (state, since, next, worker) = match why.state {
        KeyState::Queued => ("queued", None, None, None),
        KeyState::Ready => ("ready", None, None, None),
        KeyState::Running { worker, since } => ("running", Some(since), None, Some(worker)),
        KeyState::Retrying { since, next, worker } => {
            ("retrying", Some(since), Some(next), Some(worker))
        }
        KeyState::Parked { since, worker, .. } => ("parked", Some(since), None, Some(worker)),
        _ => ("unknown", None, None, None),
    };
    line["state"] = json!(state);
    line["waiting"] = json!(why.waiting);
    line["attempt"] = json!(why.attempt);
    line["attempts"] = json!(key.attempts);
    line["worker"] = json!(worker);
    line["since_ms"] = json!(since.map(millis));
    line["next_ms"] = json!(next.map(millis));
    line["oldest_ms"] = json!(why.oldest.map(millis));
    line["last_error"] = json!(why.last_error);
    line
}

/// How much of a payload is shown.
const SHOWN: usize = 4_096;

/// The event that awaits a decision.
fn decided_about(parked: &ParkedEvent, mask: &Mask) -> Value {
    let mut json = Vec::new();
    parked.event.write_json(&mut json);
    let masked = mask.event(&json);
    let event: Value = serde_json::from_str(&masked).unwrap_or_default();
    let data = match &event["data"] {
        Value::Null => event["data_base64"].as_str().unwrap_or_default().to_owned(),
        Value::String(text) => text.clone(),
        data => format!("{data:#}"),
    };
    let cut = data.floor_char_boundary(SHOWN);
    json!({
        "id": event["id"],
        "type": event["type"],
        "subject": event["subject"],
        "source": event["source"],
        "time": event["time"],
        "attempt": parked.attempts,
        "data": match data.len() - cut {
            0 => data,
            more => format!("{}… ({more} bytes more)", &data[..cut]),
        },
    })
}

fn key_partition(key: &KeyPartition) -> Value {
    json!({ "partition": key.partition.0, "unsettled": key.unsettled })
}

/// The group of keys that are parked for the same reason.
pub(super) fn group(parked: &ParkedView) -> String {
    let error = parked.error.as_deref().unwrap_or_default();
    error_group(reason(parked.reason), Some(&parked.handler), error)
}

pub(super) fn parked(parked: &ParkedView) -> Value {
    json!({
        "key": parked.key,
        "handler": parked.handler,
        "pool": parked.pool,
        "input": parked.input,
        "since_ms": millis(parked.since),
        "reason": reason(parked.reason),
        "last_error": parked.error,
        "group": group(parked),
        "waiting": parked.waiting,
        "event": parked.event.as_ref().map(|parked| {
            json!({
                "id": parked.event.id(),
                "type": parked.event.ty(),
                "attempt": parked.attempts,
            })
        }),
    })
}

pub(super) fn hot(hot: &HotView) -> Value {
    json!({
        "key": hot.key,
        "handler": hot.handler,
        "pool": hot.pool,
        "events": hot.events,
        "at_most_too_many": hot.at_most_too_large,
    })
}

pub(super) fn decided(decided: &Decided) -> Value {
    json!({
        "handler": decided.handler,
        "input": decided.input,
        "dead_letters": decided.dead_letters,
    })
}

pub(super) fn reason(reason: DeadLetterReason) -> &'static str {
    match reason {
        DeadLetterReason::Panicked => "panicked",
        DeadLetterReason::Poisoned => "poisoned",
        DeadLetterReason::TimedOut => "timed_out",
        DeadLetterReason::Abandoned => "abandoned",
        DeadLetterReason::Killed => "killed",
        DeadLetterReason::NoWorkers => "no_workers",
        DeadLetterReason::Evicted => "evicted",
        DeadLetterReason::Expired => "expired",
        _ => "failed",
    }
}

pub(super) fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
