//! Rules about the targets of handlers and outputs: outages, rejected credentials, failing outputs.

use std::time::Duration;

use greenroom_bus::{engine::OutageCause, handler::CrashLoop};
use greenroom_config::plural;

use super::{
    finding::{Finding, Severity},
    recent::Took,
    seen::{Handler, Output, Seen},
    words::time,
};

/// Attempts are slow if they take this many times as long as earlier ones.
const SLOWER: u32 = 4;
const NOTICED: Duration = Duration::from_millis(50);

/// One in this many recent attempts is more than chance.
const ONE_IN: u64 = 10;

pub(super) fn handlers(seen: &Seen, found: &mut Vec<Finding>) {
    for handler in &seen.handlers {
        found.extend(outage(handler).or_else(|| crashes(handler)));
        found.extend(late(handler).or_else(|| slow(seen, handler)));
        found.extend(limited(handler));
        found.extend(breaker(handler));
        if handler.paused {
            let (name, about) = (&handler.name, format!("handlers.{}", handler.name));
            found.push(
                Finding::warning(
                    "handler_paused",
                    about,
                    format!("The handler `{name}` is paused"),
                )
                .figures("its events wait")
                .why("An operator has paused it. Its inputs pause once enough events wait.")
                .change("Resume it when that is over.")
                .ask(format!("POST /api/handlers/{name}/resume")),
            );
        }
    }
}

fn outage(handler: &Handler) -> Option<Finding> {
    let outage = handler.outage.as_ref()?;
    let (name, about) = (&handler.name, format!("handlers.{}", handler.name));
    let mut lasted = outage.lasted;
    let finding = match outage.cause {
        OutageCause::Refused => Finding::critical(
            "refused_credentials",
            about,
            format!("The target of the handler `{name}` rejects our credentials"),
        )
        .why(
            "Its events wait. One is attempted every few seconds, so it continues by itself once \
             they are accepted.",
        )
        .change(
            "Correct its credentials in the configuration or in the file that it names, and \
             reload; or make the target accept them.",
        )
        .ask("POST /api/reload"),
        OutageCause::Broken => {
            let crashes = handler.crash_loop.as_ref();
            lasted = crashes.map_or(lasted, |of| of.lasted.max(lasted));
            Finding::critical(
                "crash_loop",
                about,
                format!("The program of the handler `{name}` does not work"),
            )
            .why(
                "No event is at fault and none is given up: they wait. It is restarted every few \
                 seconds, so it continues by itself once it is fixed.",
            )
            .change(MEND_PROGRAM)
            .ask(format!("GET /api/handlers/{name}"))
        }
        _ => Finding::warning(
            "handler_outage",
            about,
            format!("The handler `{name}` is in outage"),
        )
        .why(
            "All recent attempts failed, so greenroom tries one event at a time, and its inputs \
             pause once enough events wait.",
        )
        .change(
            "Fix its target: greenroom continues by itself after the first attempt that succeeds. \
             This shows the current state.",
        )
        .ask(format!("GET /api/handlers/{name}")),
    };
    let figures = format!("for {}; the last error: {}", time(lasted), outage.error);
    Some(finding.figures(figures).lasted(lasted))
}

const MEND_PROGRAM: &str = "Look at its last output and its exit status; run its `command` by \
                            hand, and give it an event on its stdin. The log has its whole \
                            stderr.";

/// A program that answers some events and crashes on others.
fn crashes(handler: &Handler) -> Option<Finding> {
    let CrashLoop { crashes, lasted, last, .. } = handler.crash_loop.as_ref()?;
    let name = &handler.name;
    let what = format!("The program of the handler `{name}` crashes again and again");
    Some(
        Finding::warning("crash_loop", format!("handlers.{name}"), what)
            .figures(format!(
                "{} in {}; the last: {last}",
                plural(*crashes as usize, "time"),
                time(*lasted)
            ))
            .why("It is restarted each time; an event that crashes it twice becomes a dead letter.")
            .change(MEND_PROGRAM)
            .ask(format!("GET /api/handlers/{name}"))
            .lasted(*lasted),
    )
}

fn breaker(handler: &Handler) -> Option<Finding> {
    let (name, opened) = (&handler.name, handler.open?);
    let what = format!("The circuit breaker of the handler `{name}` is open");
    Some(
        Finding::warning("breaker_open", format!("handlers.{name}"), what)
            .figures(format!("it has opened {}", plural(opened as usize, "time")))
            .why("Attempts fail at once, without a call to the target, until it is tried again.")
            .change(
                "Fix the target: after `open_for` an attempt passes, and closes the breaker if it \
                 succeeds. This shows the current state.",
            )
            .ask(format!("GET /api/handlers/{name}")),
    )
}

/// Attempts that take longer than allowed.
fn late(handler: &Handler) -> Option<Finding> {
    let took = handler.took.filter(|took| took.late * ONE_IN >= took.ended)?;
    let what = format!("Attempts of the handler `{}` take longer than allowed", handler.name);
    let finding = often_failing("slow_handler", handler, what, took.late, took.ended)?;
    Some(finding.why("Each is retried, holds its worker until then, and may have had its effect.").change(
        "Look at what its target does; allow more time with `timeout`, or use fewer workers if it \
         can take less at once.",
    ))
}

/// The target asks for a pause.
fn limited(handler: &Handler) -> Option<Finding> {
    let took = handler.took.filter(|took| took.deferred * ONE_IN >= took.ended)?;
    let what = format!("The target of the handler `{}` asks us to wait", handler.name);
    let finding = often_failing("limited_by_target", handler, what, took.deferred, took.ended)?;
    Some(finding.why("It limits its load: each event waits as long as the target asked.").change(
        "Set the `rate` of its pool to what the target allows, so that no attempt is wasted; or \
         have that limit raised.",
    ))
}

fn often_failing(
    kind: &'static str,
    handler: &Handler,
    what: String,
    failed: u64,
    ended: u64,
) -> Option<Finding> {
    if failed == 0 || handler.outage.is_some() {
        return None;
    }
    let name = &handler.name;
    let figures = format!("{failed} of {} recently", plural(ended as usize, "attempt"));
    let finding = Finding::warning(kind, format!("handlers.{name}"), what).figures(figures);
    Some(finding.ask(format!("GET /api/handlers/{name}")))
}

/// Attempts that take much longer than earlier ones.
fn slow(seen: &Seen, handler: &Handler) -> Option<Finding> {
    let Took { now, before: Some(before), .. } = handler.took? else { return None };
    if now.p50 < NOTICED || now.p50 < before.p50 * SLOWER || handler.outage.is_some() {
        return None;
    }
    let pool = seen.pools.iter().find(|pool| pool.name == handler.pool)?;
    // If the workers keep up, it is only a hint.
    let is_late = pool.now.busy >= pool.now.live && pool.now.queued > 0;
    let severity = if is_late { Severity::Warning } else { Severity::Hint };
    let name = &handler.name;
    let what = format!("The handler `{name}` has become slow");
    Some(
        Finding::new("slow_handler", severity, format!("handlers.{name}"), what)
            .figures(format!(
                "half of its recent attempts took more than {}, before that {}; {} wait",
                time(now.p50),
                time(before.p50),
                plural(pool.now.queued as usize, "event")
            ))
            .why("Its workers are busy for longer with each event, and new events wait.")
            .change(
                "Look at what its target does. More `workers` help only if it can take more at once.",
            )
            .ask(format!("GET /api/handlers/{name}")),
    )
}

pub(super) fn outputs(seen: &Seen, found: &mut Vec<Finding>) {
    for output in &seen.outputs {
        let Some(finding) = failed(output).or_else(|| failing(output)) else { continue };
        found.push(finding);
    }
    if let Some(trouble) = &seen.letters.trouble {
        let what = "Dead letters are not stored";
        let finding = match trouble.paused {
            true => Finding::critical("letters_not_stored", "dead_letters", what),
            false => Finding::warning("letters_not_stored", "dead_letters", what),
        };
        found.push(
            finding
                .figures(&trouble.error)
                .why("Until then, their events stay unfinished, and inputs pause once enough are.")
                .change("Fix the place of dead letters: greenroom retries by itself.")
                .ask("GET /api/run")
                .lasted(trouble.lasted),
        );
    }
    for failure in &seen.failures {
        found.push(
            Finding::critical("cannot_store", "run", "A store no longer works")
                .figures(failure)
                .why("Events for it are refused, and delivered again if their source can do that.")
                .change("Fix the reported error, and restart greenroom.")
                .ask("GET /api/run"),
        );
    }
}

fn named(output: &Output) -> String {
    match output.removed {
        false => format!("The output `{}`", output.name),
        true => format!("The output `{}`, which was removed,", output.name),
    }
}

/// It no longer stores anything; `failures` say why.
fn failed(output: &Output) -> Option<Finding> {
    let failure = output.failure.as_ref()?;
    Some(
        Finding::critical(
            "output_failed",
            format!("outputs.{}", output.name),
            format!("{} has failed", named(output)),
        )
        .figures(failure)
        .why("Events for it are refused, and delivered again if their source can do that.")
        .change("Fix the reported error, and restart greenroom.")
        .ask(format!("GET /api/outputs/{}", output.name)),
    )
}

fn failing(output: &Output) -> Option<Finding> {
    let trouble = output.trouble.as_ref()?;
    let (name, about) = (&output.name, format!("outputs.{}", output.name));
    let finding = match (trouble.paused, output.removed) {
        (true, removed) => {
            let change = match removed {
                false => "Correct its options and reload; or resume it once its target is fixed.",
                true => {
                    "Put it back with correct options and reload; or resume it once its target is \
                     fixed."
                }
            };
            Finding::critical("output_paused", about, format!("{} is paused", named(output)))
                .change(change)
                .ask(format!("POST /api/outputs/{name}/resume"))
        }
        (false, _) => Finding::warning(
            "output_failing",
            about,
            format!("{} makes no progress", named(output)),
        )
        .change("Fix its target: greenroom retries by itself. This shows the current state.")
        .ask(format!("GET /api/outputs/{name}")),
    };
    Some(
        finding
            .figures(format!("for {}; the last error: {}", time(trouble.lasted), trouble.error))
            .why("Its events stay unfinished, and inputs pause once enough are.")
            .lasted(trouble.lasted),
    )
}
