//! A request for entries.

use greenroom_bus::BoxFuture;
use redis::{RedisError, Value};

use crate::entry::Id;

/// A pending request, and its answer.
pub(super) type Asked = BoxFuture<'static, (Read, Result<Value, RedisError>)>;

/// Which entries to read.
pub(super) enum Read {
    /// Pending entries of this consumer, after this id.
    Own(usize, Id),
    /// Abandoned entries of other consumers, from this id on.
    Left(usize, Id),
    /// New entries of these streams.
    New(Vec<usize>),
}
