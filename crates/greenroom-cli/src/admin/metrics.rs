//! `GET /metrics`: greenroom's figures, for Prometheus (O02, O03).
//!
//! ```text
//! look, once a second ──▶ Observer ──┐
//!                                    ├─scrape──▶ families ──▶ text 0.0.4, or OpenMetrics 1.0.0 by `Accept`
//! layers, http inputs ──▶ Own ───────┘
//! ```

mod accept;
mod encode;

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use greenroom_bus::metrics::EVERY;
use tokio::time::{MissedTickBehavior, interval};

use super::{Daemon, events::unix_millis};

/// Observes the engine once a second: rates and ages are derived from that.
pub(super) async fn keep_looking(daemon: Arc<Daemon>) -> Infallible {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        daemon.figures.look();
        daemon.history.look(&daemon.control, &daemon.figures.seen(), unix_millis());
    }
}

/// Answers a scrape, in the requested format.
pub(super) async fn scrape(State(daemon): State<Arc<Daemon>>, headers: HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = accept::chosen(accepted.unwrap_or_default());
    let text = encode::text(daemon.figures.families(), format);
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
