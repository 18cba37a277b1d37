//! Rules about inputs: those that produce nothing, and those that read less than they should.

use greenroom_bus::{engine::HeldByShare, source::InputState};
use greenroom_config::plural;

use super::{
    finding::{Finding, Severity},
    paused_shares,
    seen::{Input, Seen},
    words::time,
};

fn about(input: &Input) -> String {
    format!("inputs.{}", input.name)
}

pub(super) fn not_connected(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        let Some((state, lasted, detail)) = &input.unconnected else { continue };
        let (severity, change) = match state {
            InputState::Refused => (
                Severity::Critical,
                "Correct its options, or its permissions at the broker, and restart greenroom if \
                 the options have changed.",
            ),
            _ => (
                Severity::Warning,
                "Make sure that its source exists and can be reached: greenroom retries by \
                 itself.",
            ),
        };
        let what = format!("The input `{}` is not connected", input.name);
        found.push(
            Finding::new("input_not_connected", severity, about(input), what)
                .figures(format!("{} for {}: {detail}", state.word(), time(*lasted)))
                .why("Until then, none of its events are read.")
                .change(change)
                .ask("GET /api/run")
                .lasted(*lasted),
        );
    }
}

pub(super) fn log_fails(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        let Some(why) = &input.log_trouble else { continue };
        let what = format!("The log of the input `{}` cannot be written", input.name);
        found.push(
            Finding::warning("input_log_fails", about(input), what)
                .figures(why)
                .why("Until then, posts are refused: no acknowledged event is lost.")
                .change("Fix the reported error: greenroom retries by itself.")
                .ask("GET /api/run"),
        );
    }
}

pub(super) fn remarks(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        let Some(remark) = &input.remark else { continue };
        let what = format!("The input `{}` does not read properly", input.name);
        found.push(
            Finding::warning("input_remark", about(input), what)
                .figures(remark)
                .why("It is connected and continues, so neither its state nor a count shows this.")
                .change("Follow that advice, and restart greenroom.")
                .ask("GET /api/run"),
        );
    }
}

pub(super) fn files_at_risk(seen: &Seen, found: &mut Vec<Finding>) {
    for input in seen.inputs.iter().filter(|input| input.files_at_risk > 0) {
        let what = format!("The input `{}` has more files to read than it may open", input.name);
        found.push(
            Finding::warning("files_at_risk", about(input), what)
                .figures(plural(input.files_at_risk, "file"))
                .why("A file that is removed before its turn is lost.")
                .change(
                    "Allow greenroom more open files (`LimitNOFILE=` of systemd, `ulimit -Hn`) and \
                     restart it. This shows the current state.",
                )
                .ask("GET /api/run"),
        );
    }
}

/// Inputs that are not read further, because their earlier events are not finished.
pub(super) fn held(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        if input.parked.hold_all {
            found.push(held_by_parked_keys(input));
        } else if input.stands_still {
            let mut finding = stands(seen, input);
            finding.follows = finding.follows.or_else(|| cause(seen, input, found));
            found.push(finding);
        } else if input.parked.refuses {
            let what = format!("The input `{}` refuses events of parked keys", input.name);
            found.push(
                Finding::warning("parked_events_refused", about(input), what)
                    .figures(format!(
                        "{} use up half of its limit of unfinished events",
                        plural(input.parked.events as usize, "event")
                    ))
                    .why("Refused events are delivered again, if its source can do that.")
                    .change("Decide on the parked keys.")
                    .ask("GET /api/keys"),
            );
        }
    }
    if let Some(why) = &seen.standstill {
        found.push(
            Finding::critical(
                "standstill",
                "run",
                "Everything has stopped: parked keys hold all events",
            )
            .figures(why)
            .why("No event is read or handled until an operator decides.")
            .change("Decide on the parked keys.")
            .ask("GET /api/keys"),
        );
    }
}

fn held_by_parked_keys(input: &Input) -> Finding {
    let mut finding = Finding::critical(
        "input_stands",
        about(input),
        format!("The input `{}` is not read", input.name),
    )
    .figures(format!(
        "{} of parked keys use up its limit of unfinished events",
        plural(input.parked.events as usize, "event")
    ))
    .why("None of its events are read until an operator decides on those keys.")
    .change("Decide on the parked keys.")
    .ask("GET /api/keys");
    finding.follows = Some("keys".to_owned());
    finding
}

fn stands(seen: &Seen, input: &Input) -> Finding {
    if let Some(held) = &input.held_by_share {
        return held_by_a_share(seen, input, held);
    }
    let by = input.held_by.as_ref().map_or(String::new(), |pool| format!(" by the pool `{pool}`"));
    let settled =
        input.last_settled.map_or("none of its events has finished".to_owned(), |settled| {
            format!("none of its events has finished for {}", time(settled))
        });
    let finding = Finding::warning(
        "input_stands",
        about(input),
        format!("The input `{}` is held{by}", input.name),
    )
    .figures(format!(
        "{settled}; {} are unfinished, {} wait for room",
        crate::report::mebibytes(input.in_flight_bytes),
        plural(input.held_back as usize, "event")
    ))
    .why(
        "Its limit of unfinished events is reached, so no more are read, not even for other \
                 pools.",
    )
    .change("Look at the events that those workers handle, and since when.");
    let pool = input.held_by.as_ref().or_else(|| seen.slowest().map(|pool| &pool.name));
    let finding = match input.last_settled {
        Some(settled) => finding.lasted(settled),
        None => finding,
    };
    match pool {
        Some(pool) => finding.ask(format!("GET /api/pools/{pool}/workers")),
        None => finding.ask("GET /api/run"),
    }
}

fn held_by_a_share(seen: &Seen, input: &Input, held: &HeldByShare) -> Finding {
    let share = held.share.as_deref();
    let share = share
        .map_or_else(|| "events without a share".to_owned(), |name| format!("the share `{name}`"));
    let finding = Finding::warning(
        "input_stands",
        about(input),
        format!("The input `{}` is held by {share}", input.name),
    )
    .figures(format!(
        "{} of the {} that wait for room are of it, in the pool `{}`",
        crate::report::grouped(held.events),
        plural(input.held_back as usize, "event"),
        held.pool
    ))
    .why("The input runs no further ahead, so no other share's events are read.");
    if let Some(resume) = paused_shares::resumes(seen, held) {
        let follows = Some(format!("pools.{}", held.pool));
        return Finding { follows, ..finding.change("Resume that share.").ask(resume) };
    }
    finding
    .change("Raise the limits of that share, the `queue` or `share_queue` of the pool, or the `run_ahead` of the input.")
    .ask(format!("GET /api/pools/{}/shares", held.pool))
}

/// The cause that blocks an input: the finding about the pool that does not take its events, or
/// else the only finding about a blocked part.
fn cause(seen: &Seen, input: &Input, found: &[Finding]) -> Option<String> {
    let pool = input.held_by.as_ref();
    let of_pool = pool.and_then(|pool| {
        let about = format!("pools.{pool}");
        let handlers = seen.handlers.iter().filter(|handler| handler.pool == *pool);
        let mut abouts = vec![about];
        abouts.extend(handlers.map(|handler| format!("handlers.{}", handler.name)));
        abouts.into_iter().find(|about| found.iter().any(|found| found.about == *about))
    });
    let mut others = found.iter().filter(|found| {
        found.severity < Severity::Hint
            && ["outputs.", "pools.", "handlers."].iter().any(|kind| found.about.starts_with(kind))
    });
    let only = || match (others.next(), others.next()) {
        (Some(only), None) => Some(only.about.clone()),
        _ => None,
    };
    of_pool.or_else(only)
}
