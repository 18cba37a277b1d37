//! Whether greenroom is well, for probes and for people.

use axum::http::StatusCode;
use greenroom_bus::{
    engine::{Control, InputView, Phase, PoolView},
    source::{InputState, InputStatus},
};
use serde_json::{Value, json};

use super::{Daemon, answer::Json};

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Colour {
    /// Well.
    Green,
    /// Something is wrong that may pass, or was meant: a handler in outage, a pool that was paused,
    /// a key that is parked.
    Yellow,
    /// Something is wrong that an operator has to mend.
    Red,
}

/// `/healthz`: that it is alive, and in which colour. Always 200: to end a process that answers
/// mends nothing. Reasons are for those who may see everything.
pub(super) fn health(daemon: &Daemon, trusted: bool) -> Json {
    let mut body = view(daemon);
    if !trusted {
        body = json!({ "health": body["health"] });
    }
    Json::ok(body)
}

/// The colour, and why.
pub(super) fn view(daemon: &Daemon) -> Value {
    let (colour, reasons) = found(daemon);
    let word = match colour {
        Colour::Green => "green",
        Colour::Yellow => "yellow",
        Colour::Red => "red",
    };
    json!({ "health": word, "reasons": reasons })
}

/// `/readyz`: 503 while nothing can be taken.
pub(super) fn readiness(daemon: &Daemon, trusted: bool) -> Json {
    let (colour, found) = found(daemon);
    let mut reasons = takes_nothing(&daemon.control, colour);
    let ready = reasons.is_empty();
    let others: Vec<_> = found.into_iter().filter(|reason| !reasons.contains(reason)).collect();
    reasons.extend(others);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut body = json!({ "ready": ready });
    if trusted {
        body["reasons"] = Value::from(reasons);
    }
    Json(status, body)
}

/// Why nothing can be taken: an input is not connected, or stands; a pool has no worker that can
/// come back; or the run ends. What is broken otherwise is taken nevertheless, until an input
/// stands.
fn takes_nothing(control: &Control, colour: Colour) -> Vec<String> {
    let mut all = Vec::new();
    if control.phase() != Phase::Run {
        all.push("the run is ending: nothing more is read".to_owned());
    }
    for input in control.input_views() {
        if let Some(status) = input.not_connected() {
            all.push(unconnected(&input.name, status));
        } else if input.waits_for_parked_keys() {
            all.push(held_by_parked_keys(&input));
        } else if colour == Colour::Red && input.stands_still() {
            let name = &input.name;
            all.push(format!("the input `{name}` is not read: it has in flight what it may have"));
        }
    }
    all.extend(control.standstill());
    let given_up = |pool: &PoolView| pool.stats.live == 0;
    all.extend(control.pool_views().iter().filter(|pool| given_up(pool)).map(workers_given_up));
    all
}

fn workers_given_up(pool: &PoolView) -> String {
    format!("every worker of the pool `{}` was given up", pool.name)
}

fn unconnected(name: &str, status: &InputStatus) -> String {
    let (word, lasted, detail) = (status.state.word(), status.lasted.as_secs(), &status.detail);
    format!("the input `{name}` is not connected: {word} for {lasted} s: {detail}")
}

fn held_by_parked_keys(input: &InputView) -> String {
    let (name, parked) = (&input.name, input.parked);
    let why = format!("{parked} events of parked keys hold what it may have in flight");
    format!("the input `{name}` is not read: {why}")
}

/// Inputs of which nothing can come.
fn inputs(control: &Control) -> Vec<(Colour, String)> {
    let views = control.input_views();
    let troubled = views.iter().filter_map(|view| Some((view, view.trouble()?)));
    let found = troubled.map(|(view, status)| {
        let colour = match status.state {
            InputState::Refused => Colour::Red,
            _ => Colour::Yellow,
        };
        (colour, unconnected(&view.name, status))
    });
    found.collect()
}

fn found(daemon: &Daemon) -> (Colour, Vec<String>) {
    let control = &daemon.control;
    let mut all = inputs(control);
    for input in control.input_views() {
        let Some(why) = daemon.reload.trouble(&input.name) else { continue };
        all.push((Colour::Yellow, format!("the log of the input `{}`: {why}", input.name)));
    }
    for handler in control.handler_views() {
        if handler.paused {
            all.push((Colour::Yellow, format!("the handler `{}` is paused", handler.name)));
        }
        let Some(outage) = handler.outage else { continue };
        let (name, lasted, error) = (handler.name, outage.lasted.as_secs(), outage.error);
        all.push(match outage.refused {
            true => {
                (Colour::Red, format!("the handler `{name}` is refused by its target: {error}"))
            }
            false => (
                Colour::Yellow,
                format!("the handler `{name}` has been in outage for {lasted} s: {error}"),
            ),
        });
    }
    for pool in control.pool_views() {
        let name = &pool.name;
        if pool.stats.live == 0 {
            all.push((Colour::Red, workers_given_up(&pool)));
        }
        if pool.paused {
            all.push((Colour::Yellow, format!("the pool `{name}` is paused")));
        }
    }
    for output in control.output_views() {
        let Some(trouble) = output.trouble else { continue };
        let (name, lasted, error) = (output.name, trouble.lasted.as_secs(), trouble.error);
        let (what, correct) = match output.removed {
            false => (format!("the output `{name}`"), "correct its options"),
            true => (
                format!("the output `{name}`, which was removed,"),
                "put it back with options that are right",
            ),
        };
        all.push(match trouble.paused {
            true => {
                let next = format!(
                    "{correct} and reload, or `POST /api/outputs/{name}/resume` once its target is mended"
                );
                (Colour::Red, format!("{what} is paused: {error}; {next}"))
            }
            false => (Colour::Yellow, format!("{what} has failed for {lasted} s: {error}")),
        });
    }
    for input in control.input_views() {
        let Some(remark) = input.status.and_then(|status| status.remark) else { continue };
        all.push((Colour::Yellow, format!("the input `{}`: {remark}", input.name)));
    }
    for input in control.input_views().iter().filter(|input| input.files_at_risk > 0) {
        let (name, files) = (&input.name, input.files_at_risk);
        let why = "are not read and not open: what is removed is lost; allow more open files";
        all.push((Colour::Yellow, format!("{files} files of the input `{name}` {why}")));
    }
    all.extend(control.dead_letter_trouble().map(|trouble| {
        let colour = if trouble.paused { Colour::Red } else { Colour::Yellow };
        (colour, format!("dead letters: {}", trouble.error))
    }));
    all.extend(parked(control));
    all.extend(control.failures().into_iter().map(|failure| (Colour::Red, failure)));
    all.sort_by_key(|(colour, _)| std::cmp::Reverse(*colour));
    let worst = all.first().map_or(Colour::Green, |(colour, _)| *colour);
    (worst, all.into_iter().map(|(_, reason)| reason).collect())
}

/// Keys that wait for an operator; and where nothing is taken because of them, who is.
fn parked(control: &Control) -> Vec<(Colour, String)> {
    let progress = control.progress();
    if progress.parked_keys == 0 {
        return Vec::new();
    }
    let next = "`GET /api/keys` lists them, `POST /api/keys/resume`, `skip` or `drop` with `?key=KEY` lets one go on";
    let (keys, events) = (progress.parked_keys, progress.parked_events);
    let plural = if keys == 1 { " is" } else { "s are" };
    let mut all =
        vec![(Colour::Yellow, format!("{keys} key{plural} parked with {events} events: {next}"))];
    all.extend(control.standstill().map(|why| (Colour::Red, why)));
    for input in control.input_views() {
        let (name, parked) = (&input.name, input.parked);
        if input.waits_for_parked_keys() {
            all.push((Colour::Red, held_by_parked_keys(&input)));
        } else if input.refuses_parked {
            let why = format!("{parked} hold half of what it may have in flight");
            let what = format!("further events of parked keys of the input `{name}` are refused");
            all.push((Colour::Yellow, format!("{what}: {why}")));
        }
    }
    all
}
