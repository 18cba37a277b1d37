//! The route of one event, for people to read.

use std::fmt::Write;

use super::way::{Handled, Made, Other, Outcome, Sharing, Way};
use crate::{config::plural, report::printable};

/// Several lines.
pub(super) fn render(way: &Way) -> String {
    let (ty, id) = (printable(&way.event.ty), printable(&way.event.id));
    let mut out = format!("{ty}  id {id} of {}\n", printable(&way.event.source));
    match way.outcome {
        Outcome::NoHandler => no_handler(&mut out, "no handler has this type", way),
        Outcome::HandlerRejected => no_handler(&mut out, "no handler takes it", way),
        Outcome::Handled | Outcome::KeyMissing => {}
    }
    for handled in &way.handlers {
        of_handler(&mut out, handled);
    }
    others(&mut out, "handler", &way.other_handlers);
    out
}

fn row(out: &mut String, head: &str, value: &str) {
    // Writing into a String cannot fail.
    let _ = writeln!(out, "  {head:<8} {value}");
}

fn no_handler(out: &mut String, why: &str, way: &Way) {
    let then = way.then.unwrap_or_default();
    let then = match then {
        "ignore" => "it is acknowledged and counted",
        "refuse" => "it is refused to its source",
        _ => "it becomes a dead letter",
    };
    row(out, "handler", &format!("none: {why}; {then} (`{}`)", way.outcome.word()));
}

fn of_handler(out: &mut String, handled: &Handled) {
    let beside = if handled.fan_out { ", beside others" } else { "" };
    row(
        out,
        "handler",
        &format!("{} (on {}; {}{beside})", handled.handler, handled.on, handled.kind),
    );
    row(out, "pool", &format!("{}, {}", handled.pool, plural(handled.workers, "worker")));
    row(out, "key", &key(handled));
    if let Some(sharing) = &handled.sharing {
        row(out, "share", &share(sharing));
    }
    if !handled.layers.is_empty() {
        row(out, "layers", &handled.layers.join(", "));
    }
    if handled.key_missing.is_none() {
        row(out, "output", &output(handled));
        others(out, "output", &handled.other_outputs);
    }
}

fn key(handled: &Handled) -> String {
    match (&handled.key_missing, &handled.key, &handled.order_by) {
        (Some(why), ..) => format!("missing: {}; the event becomes a dead letter", printable(why)),
        (None, Some(key), Some(by)) => format!("{} (by {by})", printable(key)),
        (None, _, Some(by)) => format!("none: the event has no {by}, and is handled without order"),
        (None, _, None) => "none: events have no order here".to_owned(),
    }
}

fn share(sharing: &Sharing) -> String {
    let by = &sharing.share_by;
    match &sharing.share {
        Some(share) => format!("{} (by {by})", printable(share)),
        None => format!("none: the event has no {by}; all such events have one share in common"),
    }
}

fn output(handled: &Handled) -> String {
    let outputs = match handled.outputs.as_slice() {
        [] => "none",
        outputs => &outputs.join(", "),
    };
    let back = "comes back in (`loopback`), and is routed again";
    match (handled.result, handled.loopback) {
        (Made::None, _) => "none: it makes no events".to_owned(),
        (Made::Same, true) => back.to_owned(),
        (Made::Same, false) => outputs.to_owned(),
        (Made::Answer, true) => format!("{back}, if it answers with the unchanged event"),
        (Made::Answer, false) => format!("{outputs}, if it answers with the unchanged event"),
    }
}

fn others(out: &mut String, what: &str, others: &[Other]) {
    for Other { name, fails, .. } in others {
        let why = match fails {
            Some(condition) => format!("does not take it: {condition} is not met"),
            None => "would take it, but another one is asked first".to_owned(),
        };
        row(out, "", &format!("{what} {name} {why}"));
    }
}
