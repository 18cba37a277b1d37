//! Finding groups again, or making them.

use redis::{RedisError, aio::MultiplexedConnection};

use super::Driver;
use crate::{
    entry::Id,
    source::groups::{Groups, last_id, start},
};

impl Driver {
    /// With each connection: groups may be gone, and an answer with entries may have been lost with
    /// the last one.
    pub(super) async fn find_groups(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        for stream in &self.shared.streams {
            let behind = match stream.look(|state| state.floor()) {
                None => start(&self.input),
                // Another stream is there by now, or none.
                Some(floor) if last_id(&stream.name, connection).await? < floor => Some(Id::ZERO),
                floor => floor,
            };
            if Groups(&self.input).make(&stream.name, behind, connection).await? {
                tracing::warn!(
                    stream = stream.name,
                    group = self.input.group,
                    "the group was gone and is made again, where it had got to: what waits is given up"
                );
                self.shared.revoke(stream);
            }
            stream.look(|state| state.reading.own = Some(Id::ZERO));
        }
        Ok(())
    }
}
