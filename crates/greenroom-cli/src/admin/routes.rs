//! The operations, by path.

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, RawQuery, Request, State},
    http::{HeaderMap, Method, StatusCode, Uri},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    Daemon, advice,
    answer::{Answer, Json, Refusal},
    audit::Action,
    daemon::Asked,
    events::unix_millis,
    guard::{Guard, Role},
    health, keys,
    letters::{
        self,
        wanted::{AT, Wanted},
    },
    live::{self, Live},
    metrics, openapi,
    operations::OPERATIONS,
    page,
    query::{Query, not_a_number},
    readers::{Readers, apart},
    shares, stored,
    table::{Routes, get, post},
    views, workers,
};
use crate::run::assemble::LettersAt;

/// All routes, behind the guard.
pub(super) fn all(daemon: Arc<Daemon>, guard: Arc<Guard>) -> Router {
    routes()
        .router()
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(Extension(Readers::default()))
        .layer(Extension(Live::default()))
        .layer(middleware::from_fn_with_state((guard, daemon.clone()), admit))
        .with_state(daemon)
}

/// The handlers of all routes. [`OPERATIONS`] describes each.
pub(super) fn routes() -> Routes {
    let mut routes = Routes::default();
    for asset in &page::ASSETS {
        routes = routes.route(asset.path, get(async |asked: HeaderMap| asset.answer(&asked)));
    }
    routes
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics::scrape))
        .route("/api", get(async || Json::ok(paths())))
        .route("/api/openapi.json", get(async || Json::ok(openapi::document())))
        .route("/api/live", get(live::live))
        .route("/api/advice", get(advise))
        .route("/api/history", get(history))
        .route("/api/run", get(async |State(daemon): Asked| Json::ok(views::run(&daemon))))
        .route("/api/pools", get(pools))
        .route("/api/pools/{name}", get(pool))
        .route("/api/pools/{name}/workers", get(workers::workers))
        .route("/api/pools/{name}/workers", post(workers::resize))
        .route("/api/pools/{name}/{order}", post(order_pool))
        .route("/api/pools/{name}/shares", get(shares::list))
        .route("/api/pools/{name}/shares/{share}", post(shares::set))
        .route("/api/pools/{name}/shares/{share}/{order}", post(shares::order))
        .route("/api/handlers", get(handlers))
        .route("/api/handlers/{name}", get(handler))
        .route("/api/handlers/{name}/{order}", post(order_handler))
        .route("/api/outputs", get(outputs))
        .route("/api/outputs/{name}", get(output))
        .route("/api/outputs/{name}/resume", post(resume_output))
        .route("/api/keys", get(keys::keys))
        .route("/api/keys/decide-all", post(keys::decide_all))
        .route("/api/keys/{decision}", post(keys::decide))
        .route("/api/dead-letters", get(dead_letters))
        .route("/api/dead-letters/{number}", get(dead_letter))
        .route("/api/dead-letters/export", get(stored::export))
        .route("/api/dead-letters/replay", post(stored::replay))
        .route("/api/dead-letters/replays", get(stored::replays))
        .route("/api/dead-letters/replays/{number}/{order}", post(stored::order))
        .route("/api/dead-letters/drop", post(stored::drop_letters))
        .route("/api/dead-letters/{number}/edit", get(stored::for_edit))
        .route("/api/dead-letters/{number}/edit", post(stored::edit))
        .route("/api/reload", post(reload))
}

async fn history(State(daemon): Asked, RawQuery(query): RawQuery, uri: Uri) -> Answer {
    let at = uri.path();
    let query = Query::parse(query, at, &["seconds", "points"])?;
    let (seconds, points) = (query.number("seconds", at)?, query.number("points", at)?);
    Ok(Json::ok(daemon.history.view(seconds, points)))
}

/// Admits a request in its role, and logs the change that it makes.
async fn admit(
    State((guard, daemon)): State<(Arc<Guard>, Arc<Daemon>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let open = matches!(path, "/healthz" | "/readyz") || page::is_part(path);
    let (action, whose) = (Action::from_request(&request), guard.whose(request.headers()));
    let admitted = guard.admit(request.method(), request.headers(), path, open);
    let response = match admitted {
        Ok(role) => {
            request.extensions_mut().insert(role);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    if let Some(what) = action.and_then(|action| action.tell(whose, response.status())) {
        daemon.history.mark_action(what, unix_millis());
    }
    page::guarded(response)
}

fn paths() -> Value {
    let told = |operation: &super::operations::Operation| {
        (operation.description(), Value::from(operation.about))
    };
    OPERATIONS.iter().map(told).collect()
}

async fn healthz(State(daemon): Asked, Extension(role): Extension<Role>) -> Json {
    health::health(&daemon, role.sees_all())
}

async fn readyz(State(daemon): Asked, Extension(role): Extension<Role>) -> Json {
    health::readiness(&daemon, role.sees_all())
}

async fn advise(State(daemon): Asked) -> Json {
    Json::ok(advice::view(&daemon.figures.seen()))
}

async fn pools(State(daemon): Asked) -> Json {
    let (views, config) = (daemon.control.pool_views(), daemon.reload.config());
    let pools: Vec<_> = views.iter().map(|view| views::pool(view, &config)).collect();
    Json::ok(json!({ "pools": pools }))
}

async fn pool(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    daemon.control.pool(&name).map_err(|error| Refusal::no_such("pools", &error))?;
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
    let pool = daemon.control.pool(&name).map_err(|error| Refusal::no_such("pools", &error))?;
    let changed = if order.pauses() { pool.pause() } else { pool.resume() };
    tracing::info!(pool = name, ?order, changed, "a pool was changed");
    Ok(Json::ok(json!({ "pool": name, "paused": pool.is_paused(), "changed": changed })))
}

async fn handlers(State(daemon): Asked) -> Json {
    let views = daemon.control.handler_views();
    let config = daemon.reload.config();
    let attempts = daemon.control.handlers().into_iter().map(|handler| handler.attempts());
    let handlers: Vec<_> = views
        .iter()
        .zip(attempts)
        .map(|(view, attempts)| views::handler(view, &attempts, &config, &daemon.layers))
        .collect();
    Json::ok(json!({ "handlers": handlers }))
}

async fn handler(State(daemon): Asked, Path(name): Path<String>) -> Answer {
    let handler = daemon.control.handler(&name);
    let handler = handler.map_err(|error| Refusal::no_such("handlers", &error))?;
    let views = daemon.control.handler_views();
    let config = daemon.reload.config();
    let found = views.iter().find(|view| view.name == name);
    let attempts = handler.attempts();
    let found = found.map(|view| views::handler(view, &attempts, &config, &daemon.layers));
    Ok(Json::ok(found.unwrap_or_default()))
}

async fn order_handler(
    State(daemon): Asked,
    Path((name, order)): Path<(String, String)>,
    uri: Uri,
) -> Answer {
    let order = Order::asked(&order, &uri)?;
    let handler =
        daemon.control.handler(&name).map_err(|error| Refusal::no_such("handlers", &error))?;
    let changed = if order.pauses() { handler.pause() } else { handler.resume() };
    tracing::info!(handler = name, ?order, changed, "a handler was changed");
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
    let changed = resumed.map_err(|error| Refusal::no_such("outputs", &error))?;
    tracing::info!(output = name, changed, "an output was resumed");
    Ok(Json::ok(json!({ "output": name, "changed": changed })))
}

async fn dead_letters(
    State(daemon): Asked,
    Extension(readers): Extension<Readers>,
    RawQuery(query): RawQuery,
) -> Answer {
    let wanted = Wanted::parse(query)?;
    match daemon.dead_letters.clone() {
        LettersAt::File(path) => readers.read(AT, move || letters::list(&path, &wanted)).await,
        LettersAt::Store(_, path) => readers.read(AT, move || stored::list(&path, &wanted)).await,
        LettersAt::Broker(place) => Err(stored::with_broker(&place)),
    }
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
        Refusal::new(StatusCode::NOT_FOUND, what, uri.path(), "`GET /api` lists everything");
    refusal.details = Some(paths());
    refusal
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let what = format!("{} does not take {method}", uri.path());
    let next = "`GET /api` lists everything: changes are POST requests";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, what, uri.path(), next)
}

/// A command to a pool or handler.
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
                format!("{word:?} is not a command for it"),
                uri.path(),
                "use `pause` or `resume`",
            )),
        }
    }

    fn pauses(self) -> bool {
        matches!(self, Self::Pause)
    }
}
