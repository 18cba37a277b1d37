//! The handshake that CloudEvents requires of a webhook receiver, so that a sender cannot be made
//! to flood a third party: before it posts, the sender asks by `OPTIONS` whether it may.
//!
//! ```text
//! OPTIONS /events                              200 OK
//! webhook-request-origin: sender.example  ──▶  allow: POST
//! webhook-request-rate: 120                    webhook-allowed-origin: sender.example
//!                                              webhook-allowed-rate: 100
//! ```
//!
//! Source: CloudEvents, HTTP 1.1 Web Hooks for Event Delivery 1.0.2, section 4.

use std::num::NonZeroU64;

use hyper::{
    HeaderMap,
    header::{HeaderName, HeaderValue},
};

const REQUEST_ORIGIN: HeaderName = HeaderName::from_static("webhook-request-origin");
pub(super) const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
pub(super) const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

/// All origins; as a rate, any.
const ANY: &str = "*";

/// Which senders get permission to post when they ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The names that they ask by, in any case; `*` is any.
    pub origins: Vec<String>,
    /// The most requests a minute that they are allowed. `None`: no limit. The limit is announced,
    /// not enforced.
    pub per_minute: Option<NonZeroU64>,
}

/// The name by which an asking sender identifies itself.
pub(super) fn asking(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(REQUEST_ORIGIN)
}

impl Webhook {
    pub(super) fn allows(&self, origin: &HeaderValue) -> bool {
        let is_it = |known: &String| {
            known == ANY || known.as_bytes().eq_ignore_ascii_case(origin.as_bytes())
        };
        self.origins.iter().any(is_it)
    }

    /// The announced rate.
    pub(super) fn rate(&self) -> HeaderValue {
        self.per_minute.map_or(HeaderValue::from_static(ANY), |rate| rate.get().into())
    }
}
