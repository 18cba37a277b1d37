//! The two requests of the page.

use std::sync::Arc;

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::{get, post},
};

use super::{play::Playground, settings::NAMES, view::view};
use crate::admin::{Answer, Json, Query, Refusal};

const SETTINGS: &str = "/api/playground/settings";

pub(super) fn requests(playground: Arc<Playground>) -> Router {
    Router::new()
        .route("/api/playground", get(state))
        .route(SETTINGS, post(change))
        .with_state(playground)
}

async fn state(State(playground): State<Arc<Playground>>) -> Json {
    Json::ok(view(&playground))
}

/// Settings that are not named stay.
async fn change(State(playground): State<Arc<Playground>>, RawQuery(query): RawQuery) -> Answer {
    let query = Query::parse(query, SETTINGS, &NAMES)?;
    let settings = playground.settings().asked(&query, SETTINGS)?;
    playground.change(settings).map_err(|why| {
        Refusal::new(StatusCode::CONFLICT, why, SETTINGS, "try it again in a moment")
    })?;
    Ok(Json::ok(view(&playground)))
}
