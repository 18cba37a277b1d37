//! The shares of a pool: looked at, limited, held and paused (Q09, Q11).

use std::{cmp::Reverse, sync::Arc, time::Duration};

use axum::{
    extract::{Path, RawQuery, State},
    http::{StatusCode, Uri},
};
use greenroom::{
    limits::Rate as Limit,
    shares::{Share, ShareLimits, ShareState, ShareStatus},
};
use greenroom_bus::engine::PoolSharesControl;
use greenroom_config::units::{self, Rate};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Daemon,
    answer::{Answer, Json, Refusal},
    daemon::Asked,
    query::Query,
};
use crate::{config::DEFAULT_SHARE, run::assemble};

/// How many shares are listed by default.
const LISTED: usize = 100;

/// The longest hold that can be asked for.
const LONGEST: u64 = 7 * 24 * 3_600;

/// A hold of more than this has no end but an operator's.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// The shares of this pool.
fn shares(daemon: &Daemon, pool: &str, at: &str) -> Result<PoolSharesControl, Refusal> {
    let found = daemon.control.pool(pool).map_err(|error| Refusal::no_such("pools", &error))?;
    found.shares().ok_or_else(|| {
        let what = format!("the events of the pool `{pool}` have no shares");
        let next = "write `share_by: /tenant` in the pool, or in a handler";
        Refusal::new(StatusCode::NOT_FOUND, what, at, next)
    })
}

/// `GET /api/pools/NAME/shares`.
pub(super) async fn list(
    State(daemon): Asked,
    Path(pool): Path<String>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let query = Query::parse(query, at, &["sort", "limit"])?;
    let most = query.number("limit", at)?.unwrap_or(LISTED);
    let shares = shares(&daemon, &pool, at)?;
    let mut all = shares.list();
    sort(&mut all, query.one("sort").unwrap_or("waiting"), at)?;
    let by_hand = shares.by_hand();
    let lines = (!by_hand.is_empty()).then(|| lines(&pool, by_hand.iter()));
    Ok(Json::ok(json!({
        "pool": pool,
        "shares": all.iter().take(most).map(|share| {
            let mut seen = view(share, shares.beside(&share.share));
            seen["outage"] = shares.outage(&share.share).map(|outage| {
                json!({ "lasted_ms": millis(outage.lasted), "last_error": outage.error })
            }).into();
            seen
        }).collect::<Value>(),
        // How many events of one share may wait in the pool.
        "share_queue": shares.share_queue(),
        "count": all.len(),
        "defaults": limits(shares.defaults()),
        "by_hand": by_hand.iter().map(|(share, of)| json!({ "share": share, "limits": limits(*of) })).collect::<Value>(),
        // They keep it beyond the end of the run.
        "lines": lines,
    })))
}

fn sort(all: &mut [ShareStatus], by: &str, at: &str) -> Result<(), Refusal> {
    // Where they are level, in the order of their names.
    all.sort_by(|one, other| one.share.cmp(&other.share));
    match by {
        "waiting" => all.sort_by_key(|share| Reverse(share.waiting)),
        "time" => all.sort_by_key(|share| Reverse(share.held)),
        "held" => all.sort_by_key(|share| Reverse(held(share))),
        _ => {
            let what = format!("shares are not sorted by {by:?}");
            let next = "say `sort=waiting`, `sort=time` or `sort=held`";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, what, at, next));
        }
    }
    Ok(())
}

/// For how long nothing of it is started.
fn held(share: &ShareStatus) -> Duration {
    match share.state {
        ShareState::Paused => Duration::MAX,
        ShareState::Held(until) => until.saturating_duration_since(Instant::now()),
        _ => Duration::ZERO,
    }
}

/// `beside`: how many of its events wait beside the pool, because it has no room there.
pub(super) fn view(status: &ShareStatus, beside: usize) -> Value {
    let name = (status.share != Share::COMMON).then(|| status.share.to_string());
    json!({
        // `null` is the share of all events that have none.
        "share": name,
        "text": text(status, beside),
        "limits": limits(status.limits),
        "is_set": status.is_set,
        "waiting": status.waiting,
        "beside": beside,
        "in_hand": status.in_hand,
        "time_ms": millis(status.held),
        "state": state(status),
        "next_ms": match status.state {
            ShareState::Held(until) | ShareState::Rate(until) => {
                Some(until.saturating_duration_since(Instant::now()))
                    .filter(|left| *left < FOREVER)
                    .map(millis)
            }
            _ => None,
        },
    })
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

fn state(status: &ShareStatus) -> &'static str {
    match status.state {
        ShareState::Ready => "ready",
        ShareState::Idle => "idle",
        ShareState::Full => "full",
        ShareState::Rate(_) => "rate",
        ShareState::Held(_) if is_gone(status) => "gone",
        ShareState::Held(_) => "held",
        ShareState::Probing => "probing",
        ShareState::Paused => "paused",
        _ => "unknown",
    }
}

/// `share acme: 5 of 5 in hand; 212 waiting`.
pub(super) fn text(status: &ShareStatus, beside: usize) -> String {
    let text = match state(status) {
        "gone" => format!(
            "share {}: {} in hand; {} waiting; its target wants nothing more: paused until it is resumed",
            status.share, status.in_hand, status.waiting
        ),
        _ => status.to_string(),
    };
    match beside {
        0 => text,
        _ => format!("{text}; {beside} more beside the pool: it has no room for them"),
    }
}

/// Its target wants nothing more.
pub(super) fn is_gone(status: &ShareStatus) -> bool {
    held(status) > FOREVER && status.state != ShareState::Paused
}

fn limits(limits: ShareLimits) -> Value {
    json!({
        "weight": limits.weighs(),
        "in_hand": limits.most_in_hand(),
        "rate_per_s": limits.most_started().map(|rate| an_hour(rate) / 3_600.0),
    })
}

/// The lines of the file that keep the changes by hand.
fn lines<'a>(pool: &str, by_hand: impl Iterator<Item = (&'a Arc<str>, &'a ShareLimits)>) -> String {
    let mut out = format!("pools:\n  {pool}:\n    shares:\n");
    for (share, of) in by_hand {
        let mut parts = vec![format!("weight: {}", of.weighs())];
        parts.extend(of.most_in_hand().map(|most| format!("in_hand: {most}")));
        parts.extend(of.most_started().map(|rate| format!("rate: {}", rate_text(rate))));
        out.push_str(&format!("      {}: {{ {} }}\n", json!(share), parts.join(", ")));
    }
    out
}

fn an_hour(rate: Limit) -> f64 {
    let (messages, per) = rate.parts();
    messages as f64 * 3_600.0 / per.as_secs_f64()
}

fn rate_text(rate: Limit) -> String {
    let an_hour = an_hour(rate);
    match (an_hour % 3_600.0 == 0.0, an_hour % 60.0 == 0.0) {
        (true, _) => format!("{}/s", an_hour / 3_600.0),
        (_, true) => format!("{}/min", an_hour / 60.0),
        _ => format!("{an_hour}/h"),
    }
}

/// `POST /api/pools/NAME/shares/SHARE`: other limits. Those that are not named stay.
pub(super) async fn set(
    State(daemon): Asked,
    Path((pool, share)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let query = Query::parse(query, at, &["weight", "in_hand", "rate"])?;
    let shares = shares(&daemon, &pool, at)?;
    if share == DEFAULT_SHARE {
        let what = "`default` is no share: the limits of all shares are set in the configuration";
        let next = format!(
            "write `shares: {{ default: {{ in_hand: 5 }} }}` in the pool `{pool}`, then `greenroom reload`"
        );
        return Err(Refusal::new(StatusCode::BAD_REQUEST, what, at, next));
    }
    let mut wanted = shares.status(&share).limits;
    if let Some(weight) = query.number("weight", at)? {
        wanted = wanted.weight(weight);
    }
    match query.one("in_hand") {
        Some("none") => wanted = wanted.in_hand(None),
        Some(_) => wanted = wanted.in_hand(query.number::<usize>("in_hand", at)?),
        None => {}
    }
    match query.one("rate") {
        Some("none") => wanted = wanted.rate(None),
        Some(text) => wanted = wanted.rate(assemble::rate(rate(text, at)?)),
        None => {}
    }
    let set = shares.set(&share, wanted);
    set.map_err(|error| {
        let next = "docs/shares.md says what a share may have";
        Refusal::new(StatusCode::BAD_REQUEST, error.to_string(), at, next)
    })?;
    tracing::info!(pool, share, "a share was told to have other limits");
    told(&shares, &pool, &share)
}

fn rate(text: &str, at: &str) -> Result<Rate, Refusal> {
    units::rate(text).ok_or_else(|| {
        let what = format!("{text:?} is no rate");
        Refusal::new(StatusCode::BAD_REQUEST, what, at, "for example `20/s`, `100/min` or `none`")
    })
}

/// `POST /api/pools/NAME/shares/SHARE/ORDER`.
pub(super) async fn order(
    State(daemon): Asked,
    Path((pool, share, order)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let query = Query::parse(query, at, &["seconds"])?;
    let shares = shares(&daemon, &pool, at)?;
    match order.as_str() {
        "pause" => shares.pause(&share),
        "resume" => shares.resume(&share),
        "reset" => shares.reset(&share),
        "hold" => {
            let seconds = query.number::<u64>("seconds", at)?;
            let seconds = seconds.filter(|seconds| (1..=LONGEST).contains(seconds));
            let seconds = seconds.ok_or_else(|| {
                let what = "`seconds` says for how long, up to a week";
                Refusal::new(StatusCode::BAD_REQUEST, what, at, "for example `?seconds=60`")
            })?;
            shares.hold(&share, Duration::from_secs(seconds));
        }
        _ => {
            let what = format!("{order:?} is nothing that a share could be told");
            let next = "tell it to `pause`, `resume`, `hold` or `reset`";
            return Err(Refusal::new(StatusCode::NOT_FOUND, what, at, next));
        }
    }
    tracing::info!(pool, share, order, "a share was told");
    told(&shares, &pool, &share)
}

fn told(shares: &PoolSharesControl, pool: &str, share: &str) -> Answer {
    let status = shares.status(share);
    let now = text(&status, shares.beside(&status.share));
    Ok(Json::ok(json!({ "pool": pool, "share": share, "now": now })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q09_what_was_set_by_hand_is_told_with_the_lines_that_keep_it() {
        let of = ShareLimits::default().weight(3).in_hand(5).rate(Limit::per_second(20));
        let slow = ShareLimits::default().rate(Limit::new(24, Duration::from_secs(86_400)));
        let set = [("acme".into(), of), ("a/b: c".into(), slow)];
        let lines = lines("p", set.iter().map(|(share, of)| (share, of)));
        let expected = "pools:\n  p:\n    shares:\n      \
                        \"acme\": { weight: 3, in_hand: 5, rate: 20/s }\n      \
                        \"a/b: c\": { weight: 1, rate: 1/h }\n";
        assert_eq!(lines, expected);
    }
}
