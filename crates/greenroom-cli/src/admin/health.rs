//! The health of greenroom, for probes and for people: one verdict from all findings (O14).

use axum::http::StatusCode;
use greenroom_bus::{
    engine::{Control, InputView, Phase},
    source::InputStatus,
};
use greenroom_config::plural;
use serde_json::{Value, json};

use super::{
    Daemon,
    advice::{self, Finding, Seen, Severity},
    answer::Json,
};

/// `/healthz`: shows that it is alive, and its colour. Always 200: ending a process that answers
/// repairs nothing. Findings are shown only to clients that may see everything.
pub(super) fn health(daemon: &Daemon, trusted: bool) -> Json {
    let mut body = view(&daemon.figures.seen());
    if !trusted {
        body = json!({ "health": body["health"] });
    }
    Json::ok(body)
}

/// The colour, its reason, and all findings: causes first, each followed by its consequences.
pub(super) fn view(seen: &Seen) -> Value {
    let found = advice::findings(seen);
    json!({
        "health": colour(&found),
        "headline": headline(&found),
        "findings": advice::list(seen, &found),
    })
}

/// Green: healthy. Yellow: something is wrong, and may become worse. Red: events are not handled
/// until an operator acts.
fn colour(found: &[Finding]) -> &'static str {
    match found.iter().map(|finding| finding.severity).min() {
        Some(Severity::Critical) => "red",
        Some(Severity::Warning) => "yellow",
        Some(Severity::Hint) | None => "green",
    }
}

/// The first cause, and the number of others.
fn headline(found: &[Finding]) -> String {
    let is_cause = |of: &&Finding| of.follows.is_none() && of.severity < Severity::Hint;
    let mut causes = found.iter().filter(is_cause);
    let Some(first) = causes.next() else { return "All is well".to_owned() };
    match causes.count() {
        0 => first.what.clone(),
        more => format!("{}; {more} more", first.what),
    }
}

/// `/readyz`: 503 while no events can be taken.
pub(super) fn readiness(daemon: &Daemon, trusted: bool) -> Json {
    let nothing_taken = takes_nothing(&daemon.control);
    let ready = nothing_taken.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({ "ready": ready });
    if trusted {
        // A finding about the same subject would repeat it in other words.
        let is_told = |of: &Finding| nothing_taken.iter().any(|(about, _)| *about == of.about);
        let found = advice::findings(&daemon.figures.seen());
        let others = found.iter().filter(|of| of.severity < Severity::Hint && !is_told(of));
        let others: Vec<_> = others.map(Finding::sentence).collect();
        let reasons = nothing_taken.into_iter().map(|(_, why)| why).chain(others);
        body["reasons"] = reasons.collect();
    }
    Json(status, body)
}

/// Why no events can be taken, and the part concerned: an input is not connected, or has stalled; a
/// pool has no worker that can come back; or the run ends. With any other defect, events are still
/// taken, until an input stalls.
fn takes_nothing(control: &Control) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if control.phase() != Phase::Run {
        all.push(("run".to_owned(), "the run is ending: no more events are read".to_owned()));
    }
    for input in control.input_views() {
        let name = &input.name;
        let why = if let Some(status) = input.not_connected() {
            unconnected(name, status)
        } else if input.waits_for_parked_keys() {
            held_by_parked_keys(&input)
        } else if let Some(held) = input.stands_for_share().filter(|_| input.stands_still()) {
            format!(
                "the input `{name}` is not read: {held}, of the run-ahead of {}",
                input.run_ahead
            )
        } else if input.stands_still() {
            format!("the input `{name}` is not read: its limit of events in flight is reached")
        } else {
            continue;
        };
        all.push((format!("inputs.{name}"), why));
    }
    all.extend(control.standstill().map(|why| ("run".to_owned(), why)));
    for pool in control.pool_views().iter().filter(|pool| pool.stats.live == 0) {
        let name = &pool.name;
        all.push((
            format!("pools.{name}"),
            format!("every worker of the pool `{name}` was given up"),
        ));
    }
    all
}

fn unconnected(name: &str, status: &InputStatus) -> String {
    let (word, lasted, detail) = (status.state.word(), status.lasted.as_secs(), &status.detail);
    format!("the input `{name}` is not connected: {word} for {lasted} s: {detail}")
}

fn held_by_parked_keys(input: &InputView) -> String {
    let (name, parked) = (&input.name, plural(input.parked as usize, "event"));
    let why = format!("its limit of events in flight is used up by {parked} of parked keys");
    format!("the input `{name}` is not read: {why}")
}
