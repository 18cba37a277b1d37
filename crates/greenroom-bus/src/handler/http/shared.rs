//! Shared by all workers of one target.

mod attempt;

use std::sync::Arc;

use super::config::HttpConfig;
use crate::{http::connection::Connection, stand_in::StandIn};

/// Shared by all workers: made once, never changed.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: HttpConfig,
    pub(super) connection: Connection,
}

impl Shared {
    pub(super) fn new(config: HttpConfig, stand_in: Option<StandIn>) -> Result<Arc<Self>, String> {
        let connection = Connection::build(&config.target(), stand_in)?;
        Ok(Arc::new(Self { config, connection }))
    }
}
