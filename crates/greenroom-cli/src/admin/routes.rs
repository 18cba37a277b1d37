//! What can be asked, by path.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, RawQuery, Request, State},
    http::{Method, StatusCode, Uri},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use greenroom_bus::engine::{ChangeError, Decision};
use serde_json::{Value, json};

use super::{
    Daemon,
    answer::{Answer, Json, Refusal},
    guard::Guard,
    health,
    letters::{self, Wanted},
    metrics,
    query::{Query, not_a_number},
    readers::{Readers, apart},
    stored, views,
};
use crate::commands::run::assemble::LettersAt;

/// Every path, for `GET /api` and for those who ask for another.
const PATHS: &[(&str, &str)] = &[
    ("GET /healthz", "that greenroom is alive, and whether it is well: green, yellow or red"),
    ("GET /readyz", "whether it reads its inputs and what it reads gets through; 503 where not"),
    ("GET /metrics", "what it counts, for Prometheus"),
    ("GET /api/run", "how far the run has come"),
    ("GET /api/pools", "the pools: figures, settings, state"),
    ("GET /api/pools/NAME", "one of them"),
    ("POST /api/pools/NAME/pause", "starts no further attempt in it"),
    ("POST /api/pools/NAME/resume", "lets it go on"),
    ("GET /api/handlers", "the handlers, and which are in outage"),
    ("GET /api/handlers/NAME", "one of them"),
    ("POST /api/handlers/NAME/pause", "starts no further attempt of it"),
    ("POST /api/handlers/NAME/resume", "lets it go on"),
    ("GET /api/outputs", "the outputs, and which are paused or fail"),
    ("GET /api/outputs/NAME", "one of them"),
    ("POST /api/outputs/NAME/resume", "a paused one tries at once whether it was mended"),
    ("GET /api/keys", "the parked keys and the hottest ones"),
    ("GET /api/keys?key=KEY", "where a key stands and why"),
    ("POST /api/keys/resume?key=KEY[&handler=NAME]", "attempts the event anew that parked the key"),
    ("POST /api/keys/skip?key=KEY[&handler=NAME]", "makes it a dead letter; the key goes on"),
    ("POST /api/keys/drop?key=KEY[&handler=NAME]", "makes dead letters of all that waits there"),
    (
        "GET /api/dead-letters[?after=N&limit=N&reason=R&pool=P&handler=H]",
        "the dead letters, oldest first, a page at a time; long texts are cut, `bytes` is the size",
    ),
    ("GET /api/dead-letters/NUMBER", "one of them, whole"),
    (
        "GET /api/dead-letters?by=group",
        "of a store: how many there are by `group` of errors, `reason` or `handler`; further filters are input, key, group, since, upto, id",
    ),
    ("GET /api/dead-letters/export[?filters]", "of a store: all of them, one a line"),
    ("GET /api/dead-letters/replays", "of a store: the replays that were asked for"),
    ("POST /api/dead-letters/replay?filters|all=true[&rate=20]", "has them handled again"),
    ("POST /api/dead-letters/replays/NUMBER/stop", "takes no further letter; also resume, cancel"),
    (
        "POST /api/dead-letters/NUMBER/edit[?set=/data/x=1]",
        "puts the event of the body in place of its own, or changes places in it",
    ),
    (
        "POST /api/dead-letters/drop?filters|all=true&confirm=COUNT&upto=NUMBER",
        "drops them for good, if there are so many",
    ),
    ("POST /api/reload", "reads the configuration again"),
];

/// The hottest keys of an answer.
const HOTTEST: usize = 10;

type Asked = State<Arc<Daemon>>;

/// All routes, behind the guard.
pub(super) fn all(daemon: Arc<Daemon>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics::scrape))
        .route("/api", get(async || Json::ok(paths())))
        .route("/api/run", get(async |State(daemon): Asked| Json::ok(views::run(&daemon))))
        .route("/api/pools", get(pools))
        .route("/api/pools/{name}", get(pool))
        .route("/api/pools/{name}/{order}", post(order_pool))
        .route("/api/handlers", get(handlers))
        .route("/api/handlers/{name}", get(handler))
        .route("/api/handlers/{name}/{order}", post(order_handler))
        .route("/api/outputs", get(outputs))
        .route("/api/outputs/{name}", get(output))
        .route("/api/outputs/{name}/resume", post(resume_output))
        .route("/api/keys", get(keys))
        .route("/api/keys/{decision}", post(decide))
        .route("/api/dead-letters", get(dead_letters))
        .route("/api/dead-letters/{number}", get(dead_letter))
        .route("/api/dead-letters/export", get(stored::export))
        .route("/api/dead-letters/replay", post(stored::replay))
        .route("/api/dead-letters/replays", get(stored::replays))
        .route("/api/dead-letters/replays/{number}/{order}", post(stored::order))
        .route("/api/dead-letters/drop", post(stored::drop_letters))
        .route("/api/dead-letters/{number}/edit", post(stored::edit))
        .route("/api/reload", post(reload))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(Extension(Readers::default()))
        .layer(middleware::from_fn_with_state(guard.clone(), admit))
        .with_state(daemon)
}

/// A mark on requests that may see everything.
#[derive(Clone, Copy)]
struct Trusted(bool);

async fn admit(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let open = matches!(path, "/healthz" | "/readyz");
    if let Err(refusal) = guard.admit(request.method(), request.headers(), path, open) {
        return refusal.into_response();
    }
    let trusted = Trusted(guard.trusts(request.headers()));
    request.extensions_mut().insert(trusted);
    next.run(request).await
}

fn paths() -> Value {
    PATHS.iter().map(|(path, what)| ((*path).to_owned(), Value::from(*what))).collect()
}

fn trusted(request: &Request) -> bool {
    request.extensions().get::<Trusted>().is_some_and(|trusted| trusted.0)
}

async fn healthz(State(daemon): Asked, request: Request) -> Json {
    health::health(&daemon.control, trusted(&request))
}

async fn readyz(State(daemon): Asked, request: Request) -> Json {
    health::readiness(&daemon.control, trusted(&request))
}

async fn pools(State(daemon): Asked) -> Json {
    let (views, config) = (daemon.control.pool_views(), daemon.reload.config());
    let pools: Vec<_> = views.iter().map(|view| views::pool(view, &config)).collect();
    Json::ok(json!({ "pools": pools }))
}

async fn pool(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    daemon.control.pool(&name).map_err(|error| no_such("pools", &error))?;
    let views = daemon.control.pool_views();
    let config = daemon.reload.config();
    let found = views.iter().find(|view| view.name == name);
    Ok(Json::ok(found.map(|view| views::pool(view, &config)).unwrap_or_default()))
}

async fn order_pool(
    State(daemon): Asked,
    Path((name, order)): Path<(String, String)>,
    uri: Uri,
) -> Answer {
    let order = Order::asked(&order, &uri)?;
    let pool = daemon.control.pool(&name).map_err(|error| no_such("pools", &error))?;
    let changed = if order.pauses() { pool.pause() } else { pool.resume() };
    tracing::info!(pool = name, ?order, changed, "a pool was told");
    Ok(Json::ok(json!({ "pool": name, "paused": pool.is_paused(), "changed": changed })))
}

async fn handlers(State(daemon): Asked) -> Json {
    let views = daemon.control.handler_views();
    let config = daemon.reload.config();
    let handlers: Vec<_> =
        views.iter().map(|view| views::handler(view, &config, &daemon.layers)).collect();
    Json::ok(json!({ "handlers": handlers }))
}

async fn handler(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    daemon.control.handler(&name).map_err(|error| no_such("handlers", &error))?;
    let views = daemon.control.handler_views();
    let config = daemon.reload.config();
    let found = views.iter().find(|view| view.name == name);
    Ok(Json::ok(
        found.map(|view| views::handler(view, &config, &daemon.layers)).unwrap_or_default(),
    ))
}

async fn order_handler(
    State(daemon): Asked,
    Path((name, order)): Path<(String, String)>,
    uri: Uri,
) -> Answer {
    let order = Order::asked(&order, &uri)?;
    let handler = daemon.control.handler(&name).map_err(|error| no_such("handlers", &error))?;
    let changed = if order.pauses() { handler.pause() } else { handler.resume() };
    tracing::info!(handler = name, ?order, changed, "a handler was told");
    Ok(Json::ok(json!({ "handler": name, "paused": handler.is_paused(), "changed": changed })))
}

async fn outputs(State(daemon): Asked) -> Json {
    let (views, config) = (daemon.control.output_views(), daemon.reload.config());
    let outputs: Vec<_> = views.iter().map(|view| views::output(view, &config)).collect();
    Json::ok(json!({ "outputs": outputs }))
}

async fn output(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    let (views, config) = (daemon.control.output_views(), daemon.reload.config());
    match views.iter().find(|view| view.name == name) {
        Some(view) => Ok(Json::ok(views::output(view, &config))),
        None => {
            let what = format!("there is no output {name:?}");
            let (status, at) = (StatusCode::NOT_FOUND, "/api/outputs");
            Err(Refusal::new(status, what, at, "`/api/outputs` lists them"))
        }
    }
}

async fn resume_output(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    let resumed = daemon.control.resume_output(&name);
    let changed = resumed.map_err(|error| no_such("outputs", &error))?;
    tracing::info!(output = name, changed, "an output was told to resume");
    Ok(Json::ok(json!({ "output": name, "changed": changed })))
}

async fn keys(State(daemon): Asked, RawQuery(query): RawQuery) -> Answer {
    let query = Query::of(query, "/api/keys", &["key"])?;
    let Some(key) = query.one("key") else { return Ok(Json::ok(all_keys(&daemon))) };
    let handlers = daemon.control.handler_views();
    let outage = |name: &str| {
        handlers.iter().find(|handler| handler.name == name).and_then(|one| one.outage.as_ref())
    };
    let lines = daemon.control.why(key);
    let lines: Vec<_> = lines.iter().map(|line| views::line(line, outage(&line.handler))).collect();
    Ok(Json::ok(json!({ "key": key, "lines": lines })))
}

fn all_keys(daemon: &Daemon) -> Value {
    let parked: Vec<_> = daemon.control.parked().iter().map(views::parked).collect();
    let hottest: Vec<_> = daemon.control.hottest(HOTTEST).iter().map(views::hot).collect();
    json!({ "parked": parked, "hottest": hottest })
}

async fn decide(
    State(daemon): Asked,
    Path(word): Path<String>,
    RawQuery(query): RawQuery,
    uri: Uri,
) -> Answer {
    let decision = match word.as_str() {
        "resume" => Decision::Resume,
        "skip" => Decision::Skip,
        "drop" => Decision::Drop,
        _ => return Err(unknown(Method::POST, uri).await),
    };
    let query = Query::of(query, uri.path(), &["key", "handler"])?;
    let key = query.one("key").ok_or_else(|| {
        let next = format!("ask for `{}?key=KEY`", uri.path());
        Refusal::new(StatusCode::BAD_REQUEST, "`key` is missing", uri.path(), next)
    })?;
    let decided = daemon.control.decide(key, query.one("handler"), decision);
    if decided.is_empty() {
        let what = format!("the key `{key}` is not parked");
        let next = "`/api/keys` lists the parked keys, `/api/keys?key=KEY` says where one stands";
        return Err(Refusal::new(StatusCode::NOT_FOUND, what, uri.path(), next));
    }
    let decided: Vec<_> = decided.iter().map(views::decided).collect();
    Ok(Json::ok(json!({ "key": key, "decided": decided })))
}

async fn dead_letters(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    RawQuery(query): RawQuery,
) -> Answer {
    let at = "/api/dead-letters";
    let path = match &daemon.dead_letters {
        LettersAt::File(path) => path.clone(),
        LettersAt::Store(_, path) => {
            let (path, query) = (path.clone(), Query::of(query, at, stored::LISTED)?);
            return readers.read(at, move || stored::list(&path, &query)).await;
        }
        LettersAt::Broker(place) => return Err(stored::with_broker(place)),
    };
    let query = Query::of(query, at, &["after", "limit", "reason", "pool", "handler"])?;
    let text = |name| query.one(name).map(str::to_owned);
    let limit = query.number("limit", at)?.unwrap_or(letters::LIMIT).clamp(1, letters::MOST);
    let wanted = Wanted {
        after: query.number("after", at)?.unwrap_or(0),
        limit,
        reason: text("reason"),
        pool: text("pool"),
        handler: text("handler"),
    };
    readers.read(at, move || letters::list(&path, &wanted)).await
}

async fn dead_letter(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    Path(number): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let number = number.parse().map_err(|_| not_a_number("a dead letter", &number, uri.path()))?;
    match daemon.dead_letters.clone() {
        LettersAt::File(path) => {
            readers.read(uri.path(), move || letters::show(&path, number)).await
        }
        LettersAt::Store(_, path) => {
            readers.read(uri.path(), move || stored::show(&path, number)).await
        }
        LettersAt::Broker(place) => Err(stored::with_broker(&place)),
    }
}

async fn reload(State(daemon): Asked) -> Answer {
    let reload = daemon.reload.clone();
    apart("/api/reload", move || super::reloaded::told(&reload.now())).await
}

async fn unknown(method: Method, uri: Uri) -> Refusal {
    let what = format!("there is nothing at {method} {}", uri.path());
    let mut refusal =
        Refusal::new(StatusCode::NOT_FOUND, what, uri.path(), "`GET /api` lists what there is");
    refusal.details = Some(paths());
    refusal
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let what = format!("{} is not asked with {method}", uri.path());
    let next = "`GET /api` lists what there is: what changes something is a POST";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what, uri.path(), next)
}

fn no_such(what: &str, error: &ChangeError) -> Refusal {
    let next = format!("`/api/{what}` lists them");
    Refusal::new(StatusCode::NOT_FOUND, error.to_string(), format!("/api/{what}"), next)
}

/// What a pool or handler may be told.
#[derive(Debug, Clone, Copy)]
enum Order {
    Pause,
    Resume,
}

impl Order {
    fn asked(word: &str, uri: &Uri) -> Result<Self, Refusal> {
        match word {
            "pause" => Ok(Self::Pause),
            "resume" => Ok(Self::Resume),
            _ => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                format!("{word:?} is nothing that it could be told"),
                uri.path(),
                "tell it to `pause` or to `resume`",
            )),
        }
    }

    fn pauses(self) -> bool {
        matches!(self, Self::Pause)
    }
}
