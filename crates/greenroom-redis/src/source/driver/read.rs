//! A request for entries.

use greenroom_bus::BoxFuture;
use redis::{RedisError, Value};

use crate::entry::Id;

/// A request that is under way, and its answer.
pub(super) type Asked = BoxFuture<'static, (Read, Result<Value, RedisError>)>;

/// What is asked for.
pub(super) enum Read {
    /// Of this stream, what this consumer has behind that.
    Own(usize, Id),
    /// Of this stream, what others have left from there on.
    Left(usize, Id),
    /// What is new in these streams.
    New(Vec<usize>),
}
