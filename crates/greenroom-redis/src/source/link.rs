//! The connections of a driver.

use greenroom_bus::source::Resumed;
use redis::{RedisError, aio::MultiplexedConnection};

use super::groups::{Groups, start};
use crate::{connection::Server, options::RedisInput};

/// Two connections, since a blocking read holds up all commands behind it.
pub(super) struct Link {
    pub(super) reads: MultiplexedConnection,
    pub(super) tells: MultiplexedConnection,
}

impl Link {
    pub(super) async fn open(server: &Server) -> Result<Self, RedisError> {
        Ok(Self { reads: server.connect().await?, tells: server.connect().await? })
    }

    /// Connects, and makes missing groups. Returns the pending entries of existing ones.
    pub(super) async fn begin(
        server: &Server,
        input: &RedisInput,
    ) -> Result<(Self, Option<Resumed>), RedisError> {
        let (mut link, mut resumed) = (Self::open(server).await?, None);
        for stream in &input.streams {
            let groups = Groups(input);
            if groups.make(stream, start(input), &mut link.tells).await? {
                continue;
            }
            let left = groups.left(stream, &mut link.tells).await?;
            let more = Resumed { partitions: 1, again_at_most: left, ..Resumed::default() };
            resumed = Some(resumed.map_or(more, |sum: Resumed| sum + more));
        }
        Ok((link, resumed))
    }
}
