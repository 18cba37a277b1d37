//! Consumer groups: making them, and their figures on the server.

use std::time::{Duration, UNIX_EPOCH};

use greenroom_bus::source::StartAt;
use redis::{RedisError, Value, aio::MultiplexedConnection};

use crate::{
    entry::{Id, array, facts, parts},
    options::RedisInput,
};

/// The groups of a source.
pub(super) struct Groups<'a>(pub(super) &'a RedisInput);

/// The id after which a new group begins. `None`: after the last entry.
pub(super) fn start(input: &RedisInput) -> Option<Id> {
    match input.start {
        StartAt::Earliest => Some(Id::ZERO),
        StartAt::Latest => None,
        StartAt::Time(time) => {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            Some(Id(u64::try_from(since.as_millis()).unwrap_or(u64::MAX), 0).before())
        }
    }
}

impl Groups<'_> {
    /// Makes the group; false if it exists.
    pub(super) async fn make(
        &self,
        stream: &str,
        behind: Option<Id>,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, RedisError> {
        let behind = behind.map_or_else(|| "$".to_owned(), |behind| behind.to_string());
        let mut create = redis::cmd("XGROUP");
        create.arg("CREATE").arg(stream).arg(&self.0.group).arg(behind).arg("MKSTREAM");
        match create.query_async::<Value>(connection).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some("BUSYGROUP") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A fact of `XINFO GROUPS` about the group. `None` without the group or the fact.
    pub(super) async fn says(
        &self,
        stream: &str,
        what: &[u8],
        connection: &mut MultiplexedConnection,
    ) -> Result<Option<Value>, RedisError> {
        let own = Value::BulkString(self.0.group.clone().into_bytes());
        for group in array(information("GROUPS", stream, connection).await?)? {
            let mut facts = facts(group)?;
            if facts.iter().any(|(name, value)| name == b"name" && *value == own) {
                let at = facts.iter().position(|(name, _)| name == what);
                return Ok(at.map(|at| facts.swap_remove(at).1));
            }
        }
        Ok(None)
    }

    /// How many entries of the stream are pending for this consumer.
    pub(super) async fn left(
        &self,
        stream: &str,
        connection: &mut MultiplexedConnection,
    ) -> Result<u64, RedisError> {
        let mut pending = redis::cmd("XPENDING");
        pending.arg(stream).arg(&self.0.group);
        let [_, _, _, consumers] = parts(pending.query_async(connection).await?)?;
        for consumer in array(consumers)? {
            let [name, count] = parts::<2>(consumer)?;
            if name == Value::BulkString(self.0.consumer.clone().into_bytes()) {
                return redis::from_redis_value(count).map_err(RedisError::from);
            }
        }
        Ok(0)
    }
}

/// The highest id that the stream has ever had.
pub(super) async fn last_id(
    stream: &str,
    connection: &mut MultiplexedConnection,
) -> Result<Id, RedisError> {
    let facts = facts(information("STREAM", stream, connection).await?)?;
    let last = facts.iter().find(|(name, _)| name == b"last-generated-id");
    last.map_or(Ok(Id::ZERO), |(_, last)| Id::read(last))
}

/// The answer of `XINFO`, or nil if there is no such stream.
async fn information(
    what: &str,
    stream: &str,
    connection: &mut MultiplexedConnection,
) -> Result<Value, RedisError> {
    match redis::cmd("XINFO").arg(what).arg(stream).query_async(connection).await {
        Err(error) if error.code() == Some("ERR") => Ok(Value::Nil),
        answer => answer,
    }
}
