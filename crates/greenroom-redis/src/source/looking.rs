//! A dry run (C15): reads the entries that no consumer of the group has read, by `XRANGE`. It makes
//! no group and changes no pending list.

use greenroom_bus::{
    record::Mapping,
    source::{Partition, Pull, Pulling, Source, SourceError, Taken},
};
use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::groups::{Groups, last_id, start};
use crate::{
    connection::{Attempts, Server},
    entry::{Entry, Id, entries},
    form::Form,
    options::RedisInput,
};

/// Entries per request.
const BATCH: usize = 256;

/// Reads entries that are new to the group, up to the last one at its start.
pub struct RedisLooking {
    described: String,
    form: Form,
    connection: MultiplexedConnection,
    /// Streams that are not read to their end; the first one is being read.
    open: Vec<Part>,
    partition: Partition,
    position: u64,
}

struct Part {
    partition: Partition,
    stream: String,
    /// The last id that was read.
    behind: Id,
    /// The last id of the stream at the start.
    last: Id,
}

impl RedisLooking {
    /// Connects, and looks up the position of the group.
    ///
    /// # Errors
    /// The options are invalid, no server answers within `connect_within`, it refuses the
    /// credentials, or a key is not a stream.
    ///
    /// # Cancel safety
    /// A dropped future has changed nothing.
    pub async fn open(input: &RedisInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let described = input.described();
        let failed = |why: String| SourceError::new(&described, why);
        let server = Server::new(input).map_err(failed)?;
        let mut attempts = Attempts::new(&server, input.connect_within);
        let (connection, open) = loop {
            match parts(&server, input).await {
                Ok(begun) => break begun,
                Err(error) => attempts.failed(error).await.map_err(failed)?,
            }
        };
        let form = Form::new(input, records);
        Ok(Self { described, form, connection, open, partition: Partition::ONLY, position: 0 })
    }

    /// Reads at least one entry; false at the end.
    async fn next(&mut self, into: &mut Vec<Taken>) -> Result<bool, RedisError> {
        while let Some(part) = self.open.first_mut() {
            let mut range = redis::cmd("XRANGE");
            range.arg(&part.stream).arg(format!("({}", part.behind)).arg(part.last.to_string());
            range.arg("COUNT").arg(BATCH);
            let found = entries(range.query_async::<Value>(&mut self.connection).await?)?;
            if found.is_empty() {
                self.open.remove(0);
                continue;
            }
            self.partition = part.partition;
            for Entry { id, fields } in found {
                part.behind = id;
                self.position += 1;
                let event = self.form.read(&part.stream, id, fields.unwrap_or_default());
                into.push(Taken { position: self.position, event });
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// The parts of the streams that are new to the group.
async fn parts(
    server: &Server,
    input: &RedisInput,
) -> Result<(MultiplexedConnection, Vec<Part>), RedisError> {
    let (mut connection, mut open) = (server.connect().await?, Vec::new());
    for (partition, stream) in (0..).map(Partition).zip(&input.streams) {
        let last = last_id(stream, &mut connection).await?;
        let delivered = Groups(input).says(stream, b"last-delivered-id", &mut connection).await?;
        let delivered = delivered.as_ref().map(Id::read).transpose()?;
        let behind = delivered.or(start(input)).unwrap_or(last);
        open.push(Part { partition, stream: stream.clone(), behind, last });
    }
    Ok((connection, open))
}

impl Source for RedisLooking {
    fn describe(&self) -> String {
        self.described.clone()
    }

    /// # Cancel safety
    /// A dropped future loses no entry: the next call reads it again.
    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            match self.next(into).await {
                Ok(true) => Ok(Pull::More),
                Ok(false) => Ok(Pull::End),
                Err(error) => Err(SourceError::new(&self.described, error.to_string())),
            }
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.partition
    }
}
