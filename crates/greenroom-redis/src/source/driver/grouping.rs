//! Recreating groups after a reconnect.

use redis::{RedisError, aio::MultiplexedConnection};

use super::Driver;
use crate::{
    entry::Id,
    source::groups::{Groups, last_id, start},
};

impl Driver {
    /// Called for each connection. A group may be gone, and the last answer may have been lost, so
    /// pending entries are read again.
    pub(super) async fn find_groups(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        for stream in &self.shared.streams {
            let behind = match stream.look(|state| state.floor()) {
                None => start(&self.input),
                // The stream was deleted, and perhaps recreated.
                Some(floor) if last_id(&stream.name, connection).await? < floor => Some(Id::ZERO),
                floor => floor,
            };
            if Groups(&self.input).make(&stream.name, behind, connection).await? {
                tracing::warn!(
                    stream = stream.name,
                    group = self.input.group,
                    "the group was gone; it is recreated at its last position, and waiting events are given up"
                );
                self.shared.revoke(stream);
            }
            stream.look(|state| state.reading.own = Some(Id::ZERO));
        }
        Ok(())
    }
}
