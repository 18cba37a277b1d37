//! Keys: their state, and decisions on parked ones (O16).

use axum::{
    extract::{Path, RawQuery, State},
    http::{StatusCode, Uri},
};
use greenroom_bus::{
    engine::{Decision, HandlerView, KeyView, ParkedView},
    store::letters::Mask,
};
use greenroom_config::{Word, plural};
use serde_json::{Value, json};

use super::{
    answer::{Answer, Json, Refusal},
    daemon::{Asked, Daemon},
    query::Query,
    shares, views,
};
use crate::config::{Config, LettersTo};

/// The number of hottest keys in an answer.
const HOTTEST: usize = 10;

pub(super) async fn keys(State(daemon): Asked, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(query, "/api/keys", &["key"])?;
    let Some(key) = query.one("key") else { return Ok(Json::ok(all(&daemon))) };
    let handlers = daemon.control.handler_views();
    let outage = |name: &str| {
        handlers.iter().find(|handler| handler.name == name).and_then(|one| one.outage.as_ref())
    };
    let (seen, mask) = (daemon.figures.seen(), mask(&daemon.reload.config()));
    let lines = daemon.control.why(key);
    let line = |line: &KeyView| {
        let KeyView { handler, pool, .. } = line;
        views::line(line, outage(handler), seen.output_of(pool), &mask)
    };
    let lines: Vec<_> = lines.iter().map(line).collect();
    let without_key: Vec<_> = handlers.iter().filter_map(HandlerView::told_without_key).collect();
    let mut answer = json!({ "key": key, "lines": lines, "without_key": without_key });
    if lines.is_empty() {
        // A share is easily taken for a key.
        answer["shares"] = shares(&daemon, key);
    }
    Ok(Json::ok(answer))
}

/// The pools that know a share of this name, and what it does in each.
fn shares(daemon: &Daemon, name: &str) -> Value {
    let found = daemon.control.pools().into_iter().filter_map(|pool| {
        let shares = pool.shares()?;
        let status = shares.status(name);
        let beside = shares.beside(&status.share);
        let is_known = status.is_set || status.waiting + status.in_hand + beside > 0;
        is_known.then(|| json!({ "pool": pool.name(), "text": shares::text(&status, beside) }))
    });
    found.collect()
}

/// The hidden parts of events: the same as in dead letters.
fn mask(config: &Config) -> Mask {
    match config.dead_letters.destination() {
        LettersTo::Store(store) => {
            store.options().map_or_else(|_| Mask::default(), |options| options.mask)
        }
        _ => Mask::default(),
    }
}

fn all(daemon: &Daemon) -> Value {
    let parked: Vec<_> = daemon.control.parked().iter().map(views::parked).collect();
    let hottest: Vec<_> = daemon.control.hottest(HOTTEST).iter().map(views::hot).collect();
    json!({ "parked": parked, "hottest": hottest })
}

fn no_decision(status: StatusCode, word: &str, at: &str) -> Refusal {
    let what = format!("{word:?} is not a decision");
    Refusal::new(status, what, at, "say `resume`, `skip` or `drop`")
}

pub(super) async fn decide(
    State(daemon): Asked,
    Path(word): Path<String>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let decision =
        Decision::of(&word).ok_or_else(|| no_decision(StatusCode::NOT_FOUND, &word, at))?;
    let query = Query::parse(query, at, &["key", "handler", "event"])?;
    let given = |name: &str| {
        query.one(name).ok_or_else(|| {
            let next = "`GET /api/keys?key=KEY` shows the event to decide on: add \
                        `?key=KEY&event=ID`";
            Refusal::new(StatusCode::BAD_REQUEST, format!("`{name}` is missing"), at, next)
        })
    };
    let (key, event) = (given("key")?, given("event")?);
    let decided = daemon.control.decide_about(key, query.one("handler"), event, decision);
    let decided = decided.map_err(|other| {
        let next = "nothing was decided: look at the current event, and decide on it";
        Refusal::new(StatusCode::CONFLICT, other.to_string(), at, next)
    })?;
    if decided.is_empty() {
        let what = format!("the key `{key}` is not parked");
        let next = "`/api/keys` lists the parked keys, `/api/keys?key=KEY` shows the state of one";
        return Err(Refusal::new(StatusCode::NOT_FOUND, what, at, next));
    }
    let decided: Vec<_> = decided.iter().map(views::decided).collect();
    Ok(Json::ok(json!({ "key": key, "decided": decided })))
}

/// Decides on all keys of a group: parked with one handler by one error. Returns an error unless
/// there are exactly this many.
pub(super) async fn decide_all(
    State(daemon): Asked,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let at = uri.path();
    let query = Query::parse(query, at, &["decision", "group", "confirm"])?;
    let given = |name: &str| {
        query.one(name).ok_or_else(|| {
            let next = "`GET /api/keys` lists the parked keys, each with its group";
            Refusal::new(StatusCode::BAD_REQUEST, format!("`{name}` is missing"), at, next)
        })
    };
    let (word, group) = (given("decision")?, given("group")?);
    let decision =
        Decision::of(word).ok_or_else(|| no_decision(StatusCode::BAD_REQUEST, word, at))?;
    let is_meant = |parked: &ParkedView| views::group(parked) == group;
    let parked: Vec<_> = daemon.control.parked().into_iter().filter(is_meant).collect();
    if query.number("confirm", at)? != Some(parked.len()) {
        let what = format!("the decision is about {}", plural(parked.len(), "parked key"));
        let next = "add `&confirm=` and that number to confirm";
        let mut refusal = Refusal::new(StatusCode::CONFLICT, what, at, next);
        refusal.details = Some(json!({ "keys": parked.len() }));
        return Err(refusal);
    }
    let (mut keys, mut letters) = (0, 0);
    for ParkedView { key, handler, event, .. } in &parked {
        let Some(failed) = event else { continue };
        // If another event parks the key by now, that key is skipped.
        let id = failed.event.id();
        let decided = daemon.control.decide_about(key, Some(handler), id, decision);
        let decided = decided.unwrap_or_default();
        keys += usize::from(!decided.is_empty());
        letters += decided.iter().map(|of| of.dead_letters).sum::<usize>();
    }
    Ok(Json::ok(json!({ "keys": keys, "dead_letters": letters })))
}
