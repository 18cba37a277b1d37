//! A request for entries.

use greenroom_bus::BoxFuture;
use redis::{RedisError, Value};

use crate::entry::Id;

/// A pending request, and its answer.
pub(super) type Asked = BoxFuture<'static, (Read, Result<Value, RedisError>)>;

/// A stream to read, by its index, and how often it was restarted before the request.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) index: usize,
    pub(super) beginning: u64,
}

/// Which entries to read.
pub(super) enum Read {
    /// Pending entries of this consumer, after this id.
    Own(Turn, Id),
    /// Abandoned entries of other consumers, from this id on.
    Left(Turn, Id),
    /// New entries of these streams.
    New(Vec<Turn>),
}
