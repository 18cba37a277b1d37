//! Rules about what does not get on.

use std::time::Duration;

use greenroom_bus::source::InputState;
use url::form_urlencoded;

use super::{
    finding::{Finding, Severity},
    lines::OptionLines,
    recent,
    seen::{Pool, Seen},
};

/// So many dead letters within five minutes are worth a look.
const MANY_LETTERS: u64 = 10;

/// A time in words, as short as it can be.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds @ 1..600 => format!("{seconds} s"),
        seconds @ 600..36_000 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

pub(super) fn count(number: u64, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {one}{s}", crate::report::grouped(number))
}

fn worker_list(pool: &Pool) -> Option<String> {
    Some(format!("GET /api/pools/{}/workers", pool.name))
}

pub(super) fn workers_given_up(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in seen.pools.iter().filter(|pool| pool.now.live == 0 && pool.workers > 0) {
        found.push(Finding {
            severity: Severity::Critical,
            about: format!("pools.{}", pool.name),
            what: format!("Every worker of the pool `{}` was given up", pool.name),
            figures: format!(
                "{} restarted more than {} times; {} wait",
                count(pool.workers as u64, "worker"),
                pool.max_restarts,
                count(pool.now.queued, "event")
            ),
            why: "Nothing of this pool is handled any more.".to_owned(),
            change: "Mend what the log says of its workers and start greenroom anew. If they may \
                     end so often, say so:"
                .to_owned(),
            lines: OptionLines::under(["pools", &pool.name])
                .option("max_restarts", u64::from(pool.max_restarts).max(1) * 10)
                .if_any(),
            ask: worker_list(pool),
            done: false,
        });
    }
}

/// Inputs of which nothing can come.
pub(super) fn inputs(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        let Some((state, lasted, detail)) = &input.unconnected else { continue };
        let (severity, change) = match state {
            InputState::Refused => (
                Severity::Critical,
                "Correct its options, or what the broker lets it do, and start greenroom anew if \
                 the options have changed.",
            ),
            _ => (
                Severity::Warning,
                "See that what it reads from is there and can be reached: greenroom tries again by \
                 itself.",
            ),
        };
        found.push(Finding {
            severity,
            about: format!("inputs.{}", input.name),
            what: format!("The input `{}` is not connected", input.name),
            figures: format!("{} for {}: {detail}", state.word(), time(*lasted)),
            why: "Nothing of it is taken meanwhile.".to_owned(),
            change: change.to_owned(),
            lines: None,
            ask: Some("GET /api/run".to_owned()),
            done: false,
        });
    }
}

pub(super) fn refused_and_in_outage(seen: &Seen, found: &mut Vec<Finding>) {
    for handler in &seen.handlers {
        let Some(outage) = &handler.outage else { continue };
        let name = &handler.name;
        let figures = format!("for {}; the last error: {}", time(outage.lasted), outage.error);
        let about = format!("handlers.{name}");
        found.push(match outage.refused {
            true => Finding {
                severity: Severity::Critical,
                about,
                what: format!("The target of the handler `{name}` refuses greenroom itself"),
                figures,
                why: "Its events wait, and are not attempted again before the configuration has \
                      changed."
                    .to_owned(),
                change: "Correct its credentials in the configuration or in the file that this \
                         names, and have that read again."
                    .to_owned(),
                lines: None,
                ask: Some("POST /api/reload".to_owned()),
                done: false,
            },
            false => Finding {
                severity: Severity::Warning,
                about,
                what: format!("The handler `{name}` is in outage"),
                figures,
                why: "Attempts have only failed, so greenroom tries one event at a time, and its \
                      inputs stand still once enough wait."
                    .to_owned(),
                change: "Mend its target: greenroom goes on by itself with the first attempt that \
                         succeeds. This tells how it stands."
                    .to_owned(),
                lines: None,
                ask: Some(format!("GET /api/handlers/{name}")),
                done: false,
            },
        });
    }
}

pub(super) fn outputs(seen: &Seen, found: &mut Vec<Finding>) {
    for output in &seen.outputs {
        let Some(trouble) = &output.trouble else { continue };
        let name = &output.name;
        let (severity, what, change, ask) = match trouble.paused {
            true => (
                Severity::Critical,
                format!("The output `{name}` is paused: its target refuses greenroom itself"),
                "Correct its options and reload; or, once its target is mended, let it go on.",
                format!("POST /api/outputs/{name}/resume"),
            ),
            false => (
                Severity::Warning,
                format!("The output `{name}` does not get rid of its events"),
                "Mend its target: greenroom tries again by itself. This tells how it stands.",
                format!("GET /api/outputs/{name}"),
            ),
        };
        found.push(Finding {
            severity,
            about: format!("outputs.{name}"),
            what,
            figures: format!("for {}; the last error: {}", time(trouble.lasted), trouble.error),
            why: "No event that it is to store is settled, and inputs stand still once enough are \
                  not."
                .to_owned(),
            change: change.to_owned(),
            lines: None,
            ask: Some(ask),
            done: false,
        });
    }
}

pub(super) fn parked(seen: &Seen, found: &mut Vec<Finding>) {
    let parked = &seen.parked;
    let Some((key, handler, since, error)) = parked.first.as_ref().filter(|_| parked.keys > 0)
    else {
        return;
    };
    let stops: Vec<_> = seen.inputs.iter().filter(|input| input.waits_for_parked).collect();
    let (severity, why) = match stops.first() {
        Some(input) => (
            Severity::Critical,
            format!(
                "They hold all that the input `{}` may have in flight: it is not read any more.",
                input.name
            ),
        ),
        None => (
            Severity::Warning,
            "Nothing of these keys is handled before somebody decides, and what waits is held in \
             memory."
                .to_owned(),
        ),
    };
    let of: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
    let handler_of: String = form_urlencoded::byte_serialize(handler.as_bytes()).collect();
    found.push(Finding {
        severity,
        about: format!("handlers.{handler}"),
        what: match parked.keys {
            1 => "A key waits for a decision".to_owned(),
            keys => format!("{} wait for a decision", count(keys, "key")),
        },
        figures: format!(
            "{} wait; `{key}` has waited longest, for {}, with `{handler}`: {error}",
            count(parked.events, "event"),
            time(*since)
        ),
        why,
        change: "Mend the cause, then have the failed event attempted anew; `skip` in place of \
                 `resume` makes a dead letter of it, `drop` of all that wait behind it as well."
            .to_owned(),
        lines: None,
        ask: Some(format!("POST /api/keys/resume?key={of}&handler={handler_of}")),
        done: false,
    });
}

pub(super) fn wedged(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in seen.pools.iter().filter(|pool| pool.now.wedged > 0 && !pool.now.paused) {
        let limit = format!("{}s", seen.wedged_after.as_secs().max(1));
        let lines = OptionLines::under(["pools", &pool.name]);
        // Where attempts have a limit that they outlast, they never come to an await.
        let (change, lines) = match pool.has_timeout {
            false => (
                "See what they have in hand. Where attempts may be given up, limit them; that \
                 needs a new start:",
                lines.option("timeout", limit),
            ),
            true => (
                "They outlast the `timeout` of the pool, so they block their threads: give the \
                 pool threads of its own, which needs a new start:",
                lines.option("dedicated_threads", pool.workers.min(1_024)),
            ),
        };
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("pools.{}", pool.name),
            what: format!("Workers of the pool `{}` do not get on with their events", pool.name),
            figures: format!(
                "{} of {} have had one event in hand for more than {}, the longest for {}; {} wait",
                pool.now.wedged,
                count(pool.workers as u64, "worker"),
                time(seen.wedged_after),
                time(pool.now.longest.unwrap_or_default()),
                count(pool.now.queued, "event")
            ),
            why: "Such a worker handles nothing else, and the later events of its key wait."
                .to_owned(),
            change: change.to_owned(),
            lines: lines.if_any(),
            ask: worker_list(pool),
            done: false,
        });
    }
}

pub(super) fn remarks(seen: &Seen, found: &mut Vec<Finding>) {
    for input in &seen.inputs {
        let Some(remark) = &input.remark else { continue };
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("inputs.{}", input.name),
            what: format!("The input `{}` does not read as it should", input.name),
            figures: remark.clone(),
            why: "It is connected and goes on, so neither its state nor a count tells this."
                .to_owned(),
            change: "Do what it says, and start greenroom anew.".to_owned(),
            lines: None,
            ask: Some("GET /api/run".to_owned()),
            done: false,
        });
    }
}

pub(super) fn files_at_risk(seen: &Seen, found: &mut Vec<Finding>) {
    for input in seen.inputs.iter().filter(|input| input.files_at_risk > 0) {
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("inputs.{}", input.name),
            what: format!("The input `{}` has more files to read than it may open", input.name),
            figures: count(input.files_at_risk as u64, "file"),
            why: "What is removed before it is its turn is lost.".to_owned(),
            change:
                "Allow greenroom more open files (`LimitNOFILE=` of systemd, `ulimit -Hn`) and \
                     start it anew. This tells how it stands."
                    .to_owned(),
            lines: None,
            ask: Some("GET /api/run".to_owned()),
            done: false,
        });
    }
}

pub(super) fn paused(seen: &Seen, found: &mut Vec<Finding>) {
    let pools = seen.pools.iter().filter(|pool| pool.now.paused);
    let pools =
        pools.map(|pool| ("pool", &pool.name, count(pool.now.queued, "event") + " wait in it"));
    let handlers = seen.handlers.iter().filter(|handler| handler.paused);
    let handlers = handlers.map(|of| ("handler", &of.name, "its events wait".to_owned()));
    for (kind, name, figures) in pools.chain(handlers) {
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("{kind}s.{name}"),
            what: format!("The {kind} `{name}` is paused"),
            figures,
            why: "Somebody has paused it. Its inputs stand still once enough wait.".to_owned(),
            change: "Let it go on once that is over.".to_owned(),
            lines: None,
            ask: Some(format!("POST /api/{kind}s/{name}/resume")),
            done: false,
        });
    }
}

pub(super) fn breakers(seen: &Seen, found: &mut Vec<Finding>) {
    for handler in &seen.handlers {
        let Some(opened) = handler.open else { continue };
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("handlers.{}", handler.name),
            what: format!("The circuit breaker of the handler `{}` is open", handler.name),
            figures: format!("it has opened {}", count(opened, "time")),
            why: "Attempts fail at once, without a call of the target, until it is tried again."
                .to_owned(),
            change:
                "Mend the target: after `open_for` an attempt goes through, and closes it where \
                     it succeeds. This tells how it stands."
                    .to_owned(),
            lines: None,
            ask: Some(format!("GET /api/handlers/{}", handler.name)),
            done: false,
        });
    }
}

pub(super) fn dead_letters(seen: &Seen, found: &mut Vec<Finding>) {
    let came = seen.came;
    if came.dead_lettered < MANY_LETTERS {
        return;
    }
    let share = came.dead_lettered as f64 * 100.0 / came.settled.max(1) as f64;
    found.push(Finding {
        severity: Severity::Warning,
        about: "dead_letters".to_owned(),
        what: "Dead letters are coming in".to_owned(),
        figures: format!(
            "{} of {} that were settled within the last {} ({share:.1} %)",
            crate::report::grouped(came.dead_lettered),
            count(came.settled, "event"),
            time(recent::WITHIN)
        ),
        why: "Each is an event that was given up: nobody handles it unless it is replayed."
            .to_owned(),
        change: "See what they have failed of, mend that, and replay them.".to_owned(),
        lines: None,
        ask: Some("GET /api/dead-letters".to_owned()),
        done: false,
    });
}

/// Inputs of which nothing is settled although something was taken.
pub(super) fn stalled(seen: &Seen, found: &mut Vec<Finding>) {
    if found.iter().any(|finding| finding.severity < Severity::Hint) {
        return;
    }
    let longest = seen.pools.iter().max_by_key(|pool| (pool.now.longest, pool.now.queued));
    for input in &seen.inputs {
        let since = input.last_settled.filter(|since| *since >= seen.wedged_after);
        let Some(since) = since.filter(|_| input.in_flight_bytes > 0) else { continue };
        found.push(Finding {
            severity: Severity::Warning,
            about: format!("inputs.{}", input.name),
            what: format!("Nothing of the input `{}` has been settled lately", input.name),
            figures: format!(
                "for {}; {} are under way, and {} wait beside pools",
                time(since),
                crate::report::mebibytes(input.in_flight_bytes),
                count(input.held_back, "event")
            ),
            why: "What is not settled comes again after a crash, and its source cannot forget it."
                .to_owned(),
            change: "See what the workers have in hand, and since when.".to_owned(),
            lines: None,
            ask: longest.and_then(worker_list),
            done: false,
        });
    }
}
