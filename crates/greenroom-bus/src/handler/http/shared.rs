//! What all workers of one target use.

use super::config::HttpConfig;
use crate::http::connection::Connection;

/// What all workers use: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    pub(super) connection: Connection,
}
