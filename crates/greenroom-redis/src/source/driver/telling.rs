//! What the server is told of what is settled, and of what is not.

use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::{Driver, keeping::PAGE};

impl Driver {
    /// Acknowledges what is settled. Where that fails, it is done again with the next connection.
    pub(super) async fn acknowledge(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        for stream in &self.shared.streams {
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
            stream.look(|state| state.told(epoch, acks, told.is_ok()));
            told?;
        }
        Ok(())
    }

    /// What was never started goes back where nothing more is given: after the source is gone, and
    /// while the stream is paused and nothing of it is in hand. Any consumer may have it at once.
    pub(super) async fn give_back(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let (is_closing, idle) = (self.shared.is_closing(), self.input.claim_after.as_millis());
        for stream in &self.shared.streams {
            let back = stream.look(|state| state.take_back(is_closing));
            for page in back.chunks(PAGE) {
                let claim = self.claim(stream, page, idle as u64);
                claim.query_async::<Value>(connection).await?;
            }
        }
        Ok(())
    }
}
