//! Rules about pools and their workers.

use std::time::Duration;

use greenroom_config::plural;
use url::form_urlencoded;

use super::{
    busy_shares::BusyShare,
    finding::{Finding, Severity},
    lines::OptionLines,
    seen::{HotKey, Pool, Seen},
    words::time,
};

/// A full queue is worth reporting once the oldest event has waited for this long.
const WAITS_LONG: Duration = Duration::from_secs(5);

fn about(pool: &Pool) -> String {
    format!("pools.{}", pool.name)
}

fn worker_list(pool: &Pool) -> String {
    format!("GET /api/pools/{}/workers", pool.name)
}

pub(super) fn workers_given_up(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in seen.pools.iter().filter(|pool| pool.now.live == 0 && pool.workers > 0) {
        let what = format!("Every worker of the pool `{}` was given up", pool.name);
        let lines = OptionLines::under(["pools", &pool.name])
            .option("max_restarts", u64::from(pool.max_restarts).max(1) * 10);
        found.push(
            Finding::critical("workers_given_up", about(pool), what)
                .figures(format!(
                    "{} restarted more than {} times; {} wait",
                    plural(pool.workers, "worker"),
                    pool.max_restarts,
                    plural(pool.now.queued as usize, "event")
                ))
                .why("This pool no longer handles any events.")
                .change(
                    "Fix the errors of its workers in the log and restart greenroom. If they may \
                     end this often, allow it:",
                )
                .lines(lines.if_any())
                .ask(worker_list(pool)),
        );
    }
}

pub(super) fn paused(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in seen.pools.iter().filter(|pool| pool.now.paused) {
        found.push(
            Finding::warning(
                "pool_paused",
                about(pool),
                format!("The pool `{}` is paused", pool.name),
            )
            .figures(plural(pool.now.queued as usize, "event") + " wait in it")
            .why("An operator has paused it. Its inputs pause once enough events wait.")
            .change("Resume it when that is over.")
            .ask(format!("POST /api/pools/{}/resume", pool.name)),
        );
    }
}

/// Workers that wait for room in an output: the problem is there.
pub(super) fn waits_for_output(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some((output, workers)) = seen.output_waited_for(pool) else { continue };
        let what =
            format!("Workers of the pool `{}` wait for the output `{}`", pool.name, output.name);
        // A healthy output is only the slowest part, and some part has to be the slowest.
        let severity = match output.trouble.is_some() || pool.now.wedged > 0 {
            true => Severity::Warning,
            false => Severity::Hint,
        };
        let mut finding = Finding::new("waits_for_output", severity, about(pool), what)
            .figures(format!(
                "{workers} of {}; {} wait in its queue",
                plural(pool.workers, "worker"),
                plural(pool.now.queued as usize, "event")
            ))
            .why("They are done with their events and handle no others until it has room.")
            .change("Neither more workers nor a longer queue helps: look at the output.")
            .ask(format!("GET /api/outputs/{}", output.name));
        let cause = format!("outputs.{}", output.name);
        finding.follows = found.iter().any(|found| found.about == cause).then_some(cause);
        found.push(finding);
    }
}

/// Pools whose limit is one key: neither more workers nor a longer queue helps.
pub(super) fn hot_key(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some(HotKey { key, handler, waiting }) = &pool.now.hot else { continue };
        if found.iter().any(|found| found.about == about(pool)) {
            continue;
        }
        let took = seen.handlers.iter().find(|of| of.name == *handler).and_then(|of| of.took);
        let limit = took.filter(|took| !took.now.p50.is_zero()).map(|took| {
            format!("; that lets through about {:.0} a second", 1.0 / took.now.p50.as_secs_f64())
        });
        let what = format!("One key is the limit of the pool `{}`: `{key}`", pool.name);
        let of: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
        let finding = Finding::warning("hot_key", about(pool), what)
            .figures(format!(
                "{} of it wait, while {} of {} are idle{}",
                plural(*waiting, "event"),
                pool.now.live.saturating_sub(pool.now.busy),
                plural(pool.now.live, "worker"),
                limit.unwrap_or_default()
            ))
            .why(
                "Events of one key are handled one after the other, so one worker has all of them.",
            )
            .change(
                "More `workers` do not help. Order by a finer key (`order_by`) if that is correct, \
                 or make its handling faster. This shows the current state.",
            )
            .ask(format!("GET /api/keys?key={of}"));
        let finding = match pool.now.oldest {
            Some(oldest) => finding.lasted(oldest),
            None => finding,
        };
        found.push(finding);
    }
}

/// A share with this part of the workers is worth a word.
const MOST: f64 = 0.8;
/// It is fine while no other share is starved.
const SOME: f64 = 0.01;

/// Shares that have nearly all workers, while others are there, too.
pub(super) fn busy_share(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some(BusyShare { name, workers, others }) = &pool.now.share else { continue };
        let live = pool.now.live as f64;
        if pool.now.live < 2 || *workers < MOST * live || *others < SOME * live {
            continue;
        }
        let part = (100.0 * workers / live).min(99.0);
        let whose = match name {
            Some(name) => format!("The share `{name}` holds"),
            None => "Events without a share hold".to_owned(),
        };
        let finding = Finding::new(
            "busy_share",
            Severity::Hint,
            about(pool),
            format!("{whose} {part:.0}% of the workers of the pool `{}`", pool.name),
        )
        .figures(format!(
            "{workers:.1} of {} in the last seconds, and {others:.1} for all other shares",
            plural(pool.now.live, "worker"),
        ))
        .why(
            "The others have their turn, but each has to wait until an attempt of this share ends.",
        )
        .ask(format!("GET /api/pools/{}/shares", pool.name));
        let Some(name) = name else {
            found.push(finding.change(
                "Let `share_by` name something that these events have, or give the others a \
                 larger `weight` if they are worth more.",
            ));
            continue;
        };
        let lines = OptionLines::under(["pools", &pool.name, "shares", &written(name)]);
        found.push(
            finding
                .change(
                    "If it is not to have that many, give it a cap, or give those that are worth \
                     more a larger `weight`. A reload applies that:",
                )
                .lines(lines.option("in_hand", (pool.workers / 2).max(1)).if_any()),
        );
    }
}

/// So many events without a share are no accident.
const MANY: u64 = 100;

/// Pools whose `share_by` finds nothing.
pub(super) fn no_shares(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let Some(events) = pool.now.nameless.filter(|events| *events >= MANY) else { continue };
        found.push(
            Finding::warning(
                "no_shares",
                about(pool),
                format!("No event of the pool `{}` has a share", pool.name),
            )
            .figures(format!("{events} events since the start"))
            .why("`share_by` found nothing in them: they are all one share, with its limits.")
            .change(
                "Let `share_by` name what tells them apart. `greenroom route FILE EVENT` says \
                 which share a sample event has.",
            )
            .ask(format!("GET /api/pools/{}/shares", pool.name)),
        );
    }
}

/// A name as it stands in a configuration.
fn written(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => serde_json::Value::from(name).to_string(),
    }
}

pub(super) fn wedged(seen: &Seen, found: &mut Vec<Finding>) {
    let own = |pool: &&Pool| {
        pool.now.wedged > 0 && !pool.now.paused && seen.output_waited_for(pool).is_none()
    };
    for pool in seen.pools.iter().filter(own) {
        let limit = format!("{}s", seen.wedged_after.as_secs().max(1));
        let lines = OptionLines::under(["pools", &pool.name]);
        // If attempts outlast their limit, they never reach an await.
        let (change, lines) = match pool.has_timeout {
            false => (
                "Look at what they handle. If attempts may be given up, limit them; that needs a \
                 restart:",
                lines.option("timeout", limit),
            ),
            true => (
                "They outlast the `timeout` of the pool, so they block their threads: give the \
                 pool its own threads, which needs a restart:",
                lines.option("dedicated_threads", pool.workers.min(1_024)),
            ),
        };
        let longest = pool.now.longest.unwrap_or_default();
        let key = pool.now.wedged_key.as_ref();
        let key = key.map_or_else(String::new, |key| format!(", with the key `{key}`"));
        let what = format!("Workers of the pool `{}` make no progress", pool.name);
        found.push(
            Finding::warning("wedged_workers", about(pool), what)
                .figures(format!(
                    "{} of {} have handled one event for more than {}, the longest for {}{key}; {} wait",
                    pool.now.wedged,
                    plural(pool.workers, "worker"),
                    time(seen.wedged_after),
                    time(longest),
                    plural(pool.now.queued as usize, "event")
                ))
                .why("Such a worker handles no other event, and later events of its key wait.")
                .change(change)
                .lines(lines.if_any())
                .ask(worker_list(pool))
                .lasted(longest),
        );
    }
}

/// Pools with a full queue that no other finding explains.
pub(super) fn overloaded(seen: &Seen, found: &mut Vec<Finding>) {
    for pool in &seen.pools {
        let oldest = pool.now.oldest.unwrap_or_default();
        let is_full = pool.now.queued >= pool.capacity as u64 && oldest >= WAITS_LONG;
        if !is_full || found.iter().any(|found| found.about == about(pool)) {
            continue;
        }
        let what = format!("The queue of the pool `{}` is full", pool.name);
        let mut finding = Finding::warning("pool_overloaded", about(pool), what)
            .figures(format!(
                "{} wait, the oldest for {}",
                plural(pool.now.queued as usize, "event"),
                time(oldest)
            ))
            .why("More events arrive than it handles: they wait for room, and in the end their input waits too.")
            .change("Look at the events that its workers handle, and since when.")
            .ask(worker_list(pool))
            .lasted(oldest);
        let handlers = seen.handlers.iter().filter(|handler| handler.pool == pool.name);
        finding.follows = handlers
            .map(|handler| format!("handlers.{}", handler.name))
            .find(|cause| found.iter().any(|found| found.about == *cause));
        found.push(finding);
    }
}
