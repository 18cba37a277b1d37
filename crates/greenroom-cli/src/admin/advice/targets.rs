//! Rules about the targets of handlers and outputs: outages, rejected credentials, failing outputs.

use std::time::Duration;

use greenroom_bus::{engine::OutageCause, handler::CrashLoop};

use super::{
    finding::{Finding, Severity},
    recent::Took,
    seen::{Handler, Output, Seen},
    words::{count, time},
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
                .why("Somebody has paused it. Its inputs stand still once enough wait.")
                .change("Let it go on once that is over.")
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
            "Its events wait. One is attempted every few seconds, so it goes on by itself once they \
             are accepted.",
        )
        .change(
            "Correct its credentials in the configuration or in the file that this names, and have \
             that read again; or have them accepted.",
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
                "No event is to blame and none is given up: they wait. It is started anew every few \
                 seconds, so it goes on by itself once it is mended.",
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
            "Attempts have only failed, so greenroom tries one event at a time, and its inputs \
             stand still once enough wait.",
        )
        .change(
            "Mend its target: greenroom goes on by itself with the first attempt that succeeds. \
             This tells how it stands.",
        )
        .ask(format!("GET /api/handlers/{name}")),
    };
    let figures = format!("for {}; the last error: {}", time(lasted), outage.error);
    Some(finding.figures(figures).lasted(lasted))
}

const MEND_PROGRAM: &str = "See what it writes last and how it ends; run its `command` by hand, \
                            and give it an event on its stdin. The log has all of its stderr.";

/// A program that answers some events and crashes on others.
fn crashes(handler: &Handler) -> Option<Finding> {
    let CrashLoop { crashes, lasted, last, .. } = handler.crash_loop.as_ref()?;
    let name = &handler.name;
    let what = format!("The program of the handler `{name}` crashes again and again");
    Some(
        Finding::warning("crash_loop", format!("handlers.{name}"), what)
            .figures(format!("{} in {}; the last: {last}", count(*crashes, "time"), time(*lasted)))
            .why("It is started anew each time; an event that crashes it twice is a dead letter.")
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
            .figures(format!("it has opened {}", count(opened, "time")))
            .why("Attempts fail at once, without a call of the target, until it is tried again.")
            .change(
                "Mend the target: after `open_for` an attempt goes through, and closes it where \
                 it succeeds. This tells how it stands.",
            )
            .ask(format!("GET /api/handlers/{name}")),
    )
}

/// Attempts that take longer than allowed.
fn late(handler: &Handler) -> Option<Finding> {
    let took = handler.took.filter(|took| took.late * ONE_IN >= took.ended)?;
    let what = format!("Attempts of the handler `{}` take longer than they may", handler.name);
    let finding = often_failing("slow_handler", handler, what, took.late, took.ended)?;
    Some(finding.why("Each is attempted again, holds its worker meanwhile, and may have had its effect.").change(
        "See what its target does; give it more time with `timeout`, or fewer workers where it \
         bears less at once.",
    ))
}

/// The target asks for a pause.
fn limited(handler: &Handler) -> Option<Finding> {
    let took = handler.took.filter(|took| took.deferred * ONE_IN >= took.ended)?;
    let what = format!("The target of the handler `{}` asks us to wait", handler.name);
    let finding = often_failing("limited_by_target", handler, what, took.deferred, took.ended)?;
    Some(finding.why("It limits how much it takes: each event waits as long as it was told to.").change(
        "Set `rate` of its pool to what the target allows, so that no attempt is spent on it; or \
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
    let figures = format!("{failed} of {} of late", count(ended, "attempt"));
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
                "half of its attempts of late took more than {}, before that {}; {} wait",
                time(now.p50),
                time(before.p50),
                count(pool.now.queued, "event")
            ))
            .why("Its workers are busy for longer with each event, and what comes meanwhile waits.")
            .change(
                "See what its target does. More `workers` help only where that bears more at once.",
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
                .why("Their events stay unfinished meanwhile, and inputs stand still once enough are.")
                .change("Mend the place of dead letters: greenroom tries again by itself.")
                .ask("GET /api/run")
                .lasted(trouble.lasted),
        );
    }
    for failure in &seen.failures {
        found.push(
            Finding::critical("cannot_store", "run", "Something cannot be stored any more")
                .figures(failure)
                .why("What it was to store is refused, and delivered again where its source can.")
                .change("Mend what it says, and start greenroom anew.")
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
        .why("What it was to store is refused, and delivered again where its source can.")
        .change("Mend what it says, and start greenroom anew.")
        .ask(format!("GET /api/outputs/{}", output.name)),
    )
}

fn failing(output: &Output) -> Option<Finding> {
    let trouble = output.trouble.as_ref()?;
    let (name, about) = (&output.name, format!("outputs.{}", output.name));
    let finding = match (trouble.paused, output.removed) {
        (true, removed) => {
            let change = match removed {
                false => {
                    "Correct its options and reload; or, once its target is mended, let it go on."
                }
                true => {
                    "Put it back with options that are right and reload; or, once its target is \
                     mended, let it go on."
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
        .change("Mend its target: greenroom tries again by itself. This tells how it stands.")
        .ask(format!("GET /api/outputs/{name}")),
    };
    Some(
        finding
            .figures(format!("for {}; the last error: {}", time(trouble.lasted), trouble.error))
            .why("No event that it is to store is finished, and inputs stand still once enough are not.")
            .lasted(trouble.lasted),
    )
}
