//! What all workers of one target use.

use std::sync::atomic::AtomicBool;

use reqwest::{Client, header::HeaderMap};

use super::{config::HttpConfig, target::Target};

/// What all workers use: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    pub(super) target: Target,
    pub(super) client: Client,
    /// The credentials of the URL and the configured headers, marked as secret so that no log shows their values.
    pub(super) headers: HeaderMap,
    /// Somebody was told of a header that is not understood.
    pub(super) warned: AtomicBool,
}
