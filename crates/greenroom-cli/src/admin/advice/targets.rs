//! Rules about what handlers and outputs reach: outages, rejected credentials, outputs that fail.

use super::{
    finding::Finding,
    seen::{Handler, Output, Seen},
    words::{count, time},
};

pub(super) fn handlers(seen: &Seen, found: &mut Vec<Finding>) {
    for handler in &seen.handlers {
        found.extend(outage(handler));
        found.extend(breaker(handler));
        if handler.paused {
            let (name, about) = (&handler.name, format!("handlers.{}", handler.name));
            found.push(
                Finding::warning(about, format!("The handler `{name}` is paused"))
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
    let finding = match outage.refused {
        true => Finding::critical(
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
        false => Finding::warning(about, format!("The handler `{name}` is in outage"))
            .why(
                "Attempts have only failed, so greenroom tries one event at a time, and its inputs \
                 stand still once enough wait.",
            )
            .change(
                "Mend its target: greenroom goes on by itself with the first attempt that \
                 succeeds. This tells how it stands.",
            )
            .ask(format!("GET /api/handlers/{name}")),
    };
    let figures = format!("for {}; the last error: {}", time(outage.lasted), outage.error);
    Some(finding.figures(figures).lasted(outage.lasted))
}

fn breaker(handler: &Handler) -> Option<Finding> {
    let (name, opened) = (&handler.name, handler.open?);
    let what = format!("The circuit breaker of the handler `{name}` is open");
    Some(
        Finding::warning(format!("handlers.{name}"), what)
            .figures(format!("it has opened {}", count(opened, "time")))
            .why("Attempts fail at once, without a call of the target, until it is tried again.")
            .change(
                "Mend the target: after `open_for` an attempt goes through, and closes it where \
                 it succeeds. This tells how it stands.",
            )
            .ask(format!("GET /api/handlers/{name}")),
    )
}

pub(super) fn outputs(seen: &Seen, found: &mut Vec<Finding>) {
    for output in &seen.outputs {
        let Some(finding) = failed(output).or_else(|| failing(output)) else { continue };
        found.push(finding);
    }
    if let Some(trouble) = &seen.letters {
        let what = "Dead letters are not stored";
        let finding = match trouble.paused {
            true => Finding::critical("dead_letters", what),
            false => Finding::warning("dead_letters", what),
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
            Finding::critical("run", "Something cannot be stored any more")
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

/// It stores nothing any more; `failures` say why.
fn failed(output: &Output) -> Option<Finding> {
    let failure = output.failure.as_ref()?;
    Some(
        Finding::critical(
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
            Finding::critical(about, format!("{} is paused", named(output)))
                .change(change)
                .ask(format!("POST /api/outputs/{name}/resume"))
        }
        (false, _) => Finding::warning(about, format!("{} makes no progress", named(output)))
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
