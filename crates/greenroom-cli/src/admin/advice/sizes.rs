//! Rules about the sizes of pools: the findings of each advisor, and the lines to write.

use std::time::Duration;

use greenroom::advisor::{Advice, Finding as Found, Proposal};
use greenroom_bus::engine::OnFull;
use greenroom_config::plural;

use super::{
    finding::{Finding, Severity},
    lines::OptionLines,
    seen::{Pool, Seen},
    words::time,
};

/// A pool that starts this share of its rate limit is held back by the limit.
const HELD: f64 = 0.9;

/// Pools that their rate holds back: nothing else helps.
pub(super) fn held_by_its_rate(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some((advice, rate, starts)) = held(pool) else { continue };
        let what = format!("The `rate` of the pool `{}` holds it back", pool.name);
        found.push(
            Finding::warning("rate", format!("pools.{}", pool.name), what)
                .figures(format!(
                    "{starts:.1} attempts started per second, of {rate:.1}; {} wait; over {:.0} s",
                    plural(pool.now.queued as usize, "event"),
                    advice.figures.over.as_secs_f64()
                ))
                .why("More events arrive than may be started, so that waiting ones become older and older.")
                .change("If the target can take more, raise it. A reload applies that.")
                .lines(lines(pool).option("rate", per_time(2.0 * rate)).if_any()),
        );
    }
}

/// The advice for a pool that its rate limits, the rate, and the starts per second.
fn held(pool: &Pool) -> Option<(&Advice, f64, f64)> {
    let (rate, advice) = (pool.rate?, pool.advice.as_ref()?);
    let starts = advice.figures.started as f64 / advice.figures.over.as_secs_f64().max(1.0);
    let late = matches!(
        advice.finding,
        Found::Crowded
            | Found::Shallow
            | Found::SlowToDrain
            | Found::LongQueue
            | Found::SlowHandler
    );
    (late && starts >= HELD * rate).then_some((advice, rate, starts))
}

fn per_time(rate: f64) -> String {
    if rate >= 1.0 { format!("{rate:.0}/s") } else { format!("{:.0}/h", rate * 3_600.0) }
}

/// The findings of each pool's advisor.
pub(super) fn sizes(seen: &Seen, found: &mut Vec<Finding>) {
    let others = seen.pools.iter().filter(|pool| held(pool).is_none());
    found.extend(others.filter_map(|pool| size(pool, pool.advice.as_ref()?)));
}

/// The problem, why it matters, the change, and its severity.
struct Words {
    what: &'static str,
    why: String,
    change: &'static str,
    severity: Severity,
}

fn size(pool: &Pool, advice: &Advice) -> Option<Finding> {
    let Words { what, why, change, severity } = words(pool, advice)?;
    let change = match advice.change {
        Some(_) => format!("{change} A reload applies that."),
        None => change.to_owned(),
    };
    let what = format!("{what} of the pool `{}`", pool.name);
    let finding = Finding::new("sizes", severity, format!("pools.{}", pool.name), what)
        .figures(advice.figures.to_string())
        .why(why)
        .change(change)
        .lines(of_advice(pool, advice));
    Some(Finding { ask: asks(pool, advice), ..finding })
}

fn words(pool: &Pool, advice: &Advice) -> Option<Words> {
    let grows = advice.change.is_some();
    Some(match advice.finding {
        Found::Crowded => Words {
            what: "Not enough events can wait in the queue",
            why: when_full(pool.on_full).to_owned(),
            change: if grows { "Let more events wait." } else { LIMIT },
            severity: Severity::Warning,
        },
        Found::Shallow => Words {
            what: "Bursts do not fit into the queue",
            why: when_full(pool.on_full).to_owned(),
            change: if grows { "Let more events wait." } else { LIMIT },
            severity: Severity::Warning,
        },
        Found::SlowToDrain => Words {
            what: "Bursts fill the queue",
            why: format!(
                "{} More room would only let events wait longer.",
                when_full(pool.on_full)
            ),
            change: "Make its handlers faster, or the systems that they call; or let more of them \
                     work at a time.",
            severity: Severity::Warning,
        },
        Found::LongQueue => Words {
            what: "Events wait for long in the queue",
            why: "Each event waits for all before it; the first ones wait for a worker, their key \
                  or a limit."
                .to_owned(),
            change: match advice.change {
                Some(Proposal { workers: Some(_), .. }) => {
                    "Let more workers handle them, if the systems that they call can take it."
                }
                Some(_) => "Let fewer wait: the workers are not busy, so more of them do not help.",
                None if is_busy(advice) => {
                    "It has the most workers allowed: make its handlers faster, or allow more, if \
                     the systems that they call can take it."
                }
                None => "Its workers are not busy: look at the hottest keys.",
            },
            severity: Severity::Warning,
        },
        Found::SlowHandler => Words {
            what: "Slow handlers",
            why: "The events do not wait in a queue, so neither room nor workers make them faster."
                .to_owned(),
            change: "Make the handlers faster, or the systems that they call. If they are as fast \
                     as they can be, set the time that is expected:",
            severity: Severity::Hint,
        },
        Found::Roomy => Words {
            what: "Unused room in the queue",
            why: "If its handlers stop, this many events pile up in memory before anything else stops."
                .to_owned(),
            change: "Let fewer events wait.",
            severity: Severity::Hint,
        },
        _ => return None,
    })
}

const LIMIT: &str = "It has the largest size allowed: make its handlers faster.";

fn when_full(on_full: OnFull) -> &'static str {
    match on_full {
        OnFull::Pause => {
            "While it is full, events wait outside it, and once there are enough, their input \
             pauses."
        }
        OnFull::Reject => "While it is full, events are refused to their source.",
        OnFull::DeadLetter => "While it is full, events become dead letters.",
    }
}

fn is_busy(advice: &Advice) -> bool {
    advice.figures.busy >= 0.5
}

fn lines(pool: &Pool) -> OptionLines {
    OptionLines::under(["pools", &pool.name])
}

/// The lines that carry out the advice, with the option names that the file can use.
fn of_advice(pool: &Pool, advice: &Advice) -> Option<OptionLines> {
    match (advice.finding, advice.change) {
        (_, Some(change)) => of_change(pool, change).if_any(),
        (Found::SlowHandler, None) => {
            let p99 = advice.figures.p99?;
            let lines = OptionLines::under(["pools", &pool.name, "advisor"]);
            lines.option("p99", rounded_up(p99)).if_any()
        }
        (Found::SlowToDrain, None) if !pool.autoscales => {
            let more = advice.figures.workers + (advice.figures.workers / 2).max(1);
            let more = more.min(65_536);
            let grows = more > advice.figures.workers;
            grows.then(|| lines(pool).option("workers", more))
        }
        _ => None,
    }
}

fn of_change(pool: &Pool, change: Proposal) -> OptionLines {
    let mut written = lines(pool);
    let workers = change.workers.map_or(pool.workers, |workers| workers.to);
    if let Some(workers) = change.workers {
        written = written.option("workers", workers.to);
    }
    match change.inbox {
        Some(inbox) if inbox.key == "inbox_size" => written.option("inbox_size", inbox.to),
        Some(inbox) if pool.says_inbox_size => {
            written.option("inbox_size", inbox.to.div_ceil(workers.max(1)))
        }
        Some(inbox) => written.option("queue", inbox.to),
        None => written,
    }
}

/// The page to look at if no line of the configuration helps.
fn asks(pool: &Pool, advice: &Advice) -> Option<String> {
    match (advice.finding, advice.change) {
        (Found::SlowToDrain | Found::SlowHandler, _) => {
            Some(format!("GET /api/pools/{}/workers", pool.name))
        }
        (Found::LongQueue, None) if is_busy(advice) => {
            Some(format!("GET /api/pools/{}/workers", pool.name))
        }
        (Found::LongQueue, change) if change.is_none_or(|change| change.workers.is_none()) => {
            Some("GET /api/keys".to_owned())
        }
        // At its limit, where no line helps.
        (Found::Crowded | Found::Shallow, None) => {
            Some(format!("GET /api/pools/{}/workers", pool.name))
        }
        _ => None,
    }
}

/// Twice as long, rounded to a plain figure.
fn rounded_up(p99: Duration) -> String {
    let millis = (2 * p99.as_millis() as u64).max(1);
    match millis {
        0..1_000 => format!("{}ms", millis.div_ceil(10) * 10),
        _ => time(Duration::from_secs(millis.div_ceil(1_000))).replace(' ', ""),
    }
}
