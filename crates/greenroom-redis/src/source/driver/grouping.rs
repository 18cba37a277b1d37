//! Recreating groups after a reconnect, and streams that the server refuses.

use redis::{RedisError, aio::MultiplexedConnection};

use super::Driver;
use crate::{
    connection::correction,
    entry::Id,
    source::{
        groups::{Groups, last_id, start},
        shared::Stream,
    },
};

impl Driver {
    /// Called for each connection. A group may be gone, and the last answer may have been lost, so
    /// pending entries are read again.
    pub(super) async fn find_groups(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        for stream in &self.shared.streams {
            self.find_group(stream, connection).await?;
        }
        Ok(())
    }

    /// A stream that the server refuses holds up no other. Its events are given up, and it is tried
    /// again as often as claims are renewed.
    pub(super) async fn find_group(
        &self,
        stream: &Stream,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let found = self.make_group(stream, connection).await;
        let refused = match &found {
            Err(error) if matches!(error.code(), Some("WRONGTYPE" | "NOPERM")) => {
                let next = correction(error).unwrap_or_default();
                Some(format!("stream {}: {error}; {next}", stream.name))
            }
            _ => None,
        };
        let is_refused = refused.is_some();
        let before = stream.look(|state| std::mem::replace(&mut state.standing.refused, refused));
        if !is_refused {
            return found;
        }
        if before.is_none() {
            self.shared.revoke(stream);
        }
        Ok(())
    }

    async fn make_group(
        &self,
        stream: &Stream,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
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
        Ok(())
    }
}
