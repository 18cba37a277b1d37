//! The state for the page: the settings and both pools. Its size is bounded by the number of
//! workers, whatever the load.

use std::time::Duration;

use greenroom::pool::stats::WorkerStats;
use serde_json::{Value, json};

use super::{
    load::{self, SLOW},
    play::Playground,
    side::{PlaySide, Queueing},
    target::InHand,
};

/// Lines shown of each pool.
const LINES: usize = 6;
/// Workers shown of each pool: twice as many as a pool may have, as those that leave finish first.
const WORKERS: usize = 64;

/// All of it, as it is now.
pub(super) fn view(playground: &Playground) -> Value {
    json!({
        "settings": playground.settings().view(),
        "sides": playground.sides().each_ref().map(side),
    })
}

fn side(side: &PlaySide) -> Value {
    let target = &side.target;
    let (figures, waiting, hands) = (target.figures(), target.waiting(LINES), target.hands());
    let workers = side.workers();
    let worker = |stats: &WorkerStats| worker(stats, hands.get(&stats.slot));
    let free = workers.iter().filter(|stats| !hands.contains_key(&stats.slot)).count();
    let line = |(key, length): &(u32, u32)| json!({ "key": load::name(*key), "slow": *key == SLOW, "events": length });
    let counts = target.counts();
    json!({
        "name": match side.queueing {
            Queueing::Lanes => "lanes",
            Queueing::Hashing => "hashing",
        },
        "workers": workers.iter().take(WORKERS).map(worker).collect::<Vec<_>>(),
        "free": free,
        "per_second": figures.per_second.round(),
        "p50_ms": figures.p50.map(millis),
        "p99_ms": figures.p99.map(millis),
        "waiting": waiting.events.saturating_sub(hands.len() as u32),
        "held_up": waiting.held_up,
        "lines": waiting.longest.iter().map(line).collect::<Vec<_>>(),
        "handled": counts.handled,
        "out_of_order": counts.out_of_order,
        "lost": counts.lost,
        "failed": target.failed(),
        "turned_away": target.turned_away(),
    })
}

fn worker(stats: &WorkerStats, hand: Option<&InHand>) -> Value {
    json!({
        "slot": stats.slot,
        "key": hand.map(|hand| load::name(hand.key)),
        "slow": hand.is_some_and(|hand| hand.key == SLOW),
        "retries": hand.is_some_and(|hand| hand.waits),
        "ms": hand.map(|hand| millis(hand.since.elapsed())),
        "behind": stats.queued,
    })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}
