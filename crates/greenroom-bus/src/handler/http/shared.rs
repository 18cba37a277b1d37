//! Shared by all workers of one target.

mod attempt;

use std::sync::Arc;

use super::config::HttpConfig;
use crate::http::connection::Connection;

/// Shared by all workers: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    pub(super) connection: Connection,
}

impl Shared {
    pub(super) fn new(config: HttpConfig) -> Result<Arc<Self>, String> {
        let connection = Connection::new(&config.target())?;
        Ok(Arc::new(Self { config, connection }))
    }
}
