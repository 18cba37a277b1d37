//! The workers of a pool: their state and their number.

use std::sync::Arc;

use axum::{
    extract::{Path, RawQuery, State},
    http::{StatusCode, Uri},
};
use greenroom::inspect::WorkerStatus;
use greenroom_bus::engine::{ChangeError, WorkerView};
use greenroom_config::plural;
use serde_json::{Value, json};

use super::{
    Daemon,
    answer::{Answer, Json, Refusal},
    query::Query,
    views,
};

/// More workers than this, and many times the current number, may be a slip.
const MANY: usize = 64;
const TIMES: usize = 4;

/// The event in hand of each worker, and since when.
pub(super) async fn workers(State(daemon): State<Arc<Daemon>>, Path(name): Path<String>) -> Answer {
    let pool = daemon.control.pool(&name).map_err(|error| Refusal::no_such("pools", &error))?;
    let workers: Vec<_> = pool.workers().iter().map(worker).collect();
    Ok(Json::ok(json!({ "pool": name, "workers": workers })))
}

fn worker(view: &WorkerView) -> Value {
    let stats = &view.stats;
    let key = view.key.as_ref();
    json!({
        "slot": stats.slot,
        "name": stats.name,
        "status": match stats.status {
            Some(WorkerStatus::Starting) => "starting",
            Some(WorkerStatus::Live) => "live",
            Some(WorkerStatus::Disabled) => "disabled",
            Some(WorkerStatus::Leaving) => "leaving",
            _ => "vacant",
        },
        "busy_ms": stats.busy_for.map(views::millis),
        "attempt": stats.attempt,
        "key": key.map(|key| &*key.key),
        "handler": key.map(|key| key.handler),
        "input": key.map(|key| &*key.input),
        "event": view.event.as_ref().map(|event| json!({ "id": event.id(), "type": event.ty() })),
        "handled": stats.handled,
        "failed_attempts": stats.retries,
        "restarts": stats.restarts,
    })
}

/// Adds or removes workers to reach this number.
pub(super) async fn resize(
    State(daemon): State<Arc<Daemon>>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let pool = daemon.control.pool(&name).map_err(|error| Refusal::no_such("pools", &error))?;
    let query = Query::parse(query, at, &["count", "confirm"])?;
    let count =
        query.number::<usize>("count", at)?.filter(|count| *count > 0).ok_or_else(|| {
            let next = format!("ask for `{at}?count=N` with N of 1 or more; to stop it, pause it");
            Refusal::new(StatusCode::BAD_REQUEST, "`count` is missing or 0", at, next)
        })?;
    let before = pool.stats().configured;
    if count > MANY && count > before * TIMES && query.number("confirm", at)? != Some(count) {
        let what = format!("the pool `{name}` has {}, not {count}", plural(before, "worker"));
        let next = format!("add `confirm={count}` (`--yes` for the command) to confirm");
        let mut refusal = Refusal::new(StatusCode::CONFLICT, what, at, next);
        refusal.details = Some(json!({ "workers": before, "asked": count }));
        return Err(refusal);
    }
    let _ = pool.resize(count).map_err(|error| refused(at, &error))?;
    tracing::info!(pool = name, from = before, to = count, "the number of workers was changed");
    Ok(Json::ok(json!({ "pool": name, "from": before, "workers": count })))
}

fn refused(at: &str, error: &ChangeError) -> Refusal {
    let next = "docs/configuration.md says how many workers a pool may have; a pool that is ending cannot change";
    Refusal::new(StatusCode::CONFLICT, error.to_string(), at, next)
}
