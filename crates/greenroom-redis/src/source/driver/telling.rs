//! Acknowledging settled entries, and giving back others.

use std::time::Duration;

use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::{Driver, keeping::PAGE};

impl Driver {
    /// Acknowledges settled entries. After an error, the next connection does it again.
    pub(super) async fn acknowledge(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        for stream in self.shared.streams.iter().filter(|stream| !stream.is_refused()) {
            let (epoch, acks) = stream.look(|state| state.take_acks());
            if acks.is_empty() {
                continue;
            }
            let mut pipeline = redis::pipe();
            for page in acks.chunks(PAGE) {
                pipeline.cmd("XACK").arg(&stream.name).arg(&self.input.group);
                page.iter().for_each(|id| _ = pipeline.arg(id.to_string()));
            }
            let told = pipeline.query_async::<Value>(connection).await;
            stream.look(|state| state.confirm(epoch, acks, told.is_ok()));
            told?;
        }
        Ok(())
    }

    /// Gives back entries that were never started, after the source is dropped or while its stream
    /// is paused and has nothing in hand: any consumer may claim them at once.
    pub(super) async fn give_back(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let (is_closing, idle) = (self.shared.is_closing(), self.input.claim_after);
        for stream in self.shared.streams.iter().filter(|stream| !stream.is_refused()) {
            let back = stream.look(|state| state.take_back(is_closing));
            for page in back.chunks(PAGE) {
                let claim = self.claim(stream, page, Duration::ZERO, idle);
                claim.query_async::<Value>(connection).await?;
            }
        }
        Ok(())
    }
}
