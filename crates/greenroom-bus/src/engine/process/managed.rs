//! Control over a running pool.

use greenroom::{PoolAdmin, keys::Keys};

use super::worker::BusWorker;
use crate::engine::account::order_audit::OrderLine;

/// Control over a pool. Does not keep it running.
pub(crate) struct Managed {
    pub(crate) admin: PoolAdmin<BusWorker>,
    /// Where the pool keeps order per key.
    pub(crate) keys: Option<Keys<BusWorker, OrderLine>>,
}
