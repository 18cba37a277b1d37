//! HTTP to targets: the common part of the [handler](crate::handler::http) and the
//! [output](crate::sink::http).
//!
//! ```text
//! TargetConfig ──▶ Connection: one client with its pool ──▶ message: an event as a request ──▶ answer: a verdict by StatusMap
//! ```
//!
//! How events look as messages, apart from any client, is in [`event::http`](crate::event::http).

mod address;
mod allow;
pub(crate) mod answer;
mod auth;
mod config;
pub(crate) mod connection;
mod credentials;
pub(crate) mod event_url;
mod kept;
pub(crate) mod message;
pub(crate) mod options;
mod post;
mod posting;
mod resolver;
mod retry_after;
#[cfg(feature = "http-input")]
pub mod server;
pub(crate) mod signature;
mod stand_in;
mod status;
mod target;
pub(crate) mod tls;

pub use self::{
    allow::{Allow, BadAllow},
    answer::OUTCOME,
    auth::{Auth, BasicAuth},
    config::{Identity, TargetConfig, Tls},
    credentials::{BadAuth, BadHeader, check_auth, check_header},
    event_url::EventUrl,
    options::{HttpTls, UnreadFile},
    post::{NotPosted, Posted, Poster},
    posting::{Posting, check_headers, check_scheme, check_target, status_map},
    status::{NoRow, NoVerdict, On, Row, STATUS_MAP, StatusMap, StatusMapError, Verdict},
    target::{NoTarget, check_url},
    tls::{BadTls, check_tls},
};

#[cfg(test)]
mod tests;
