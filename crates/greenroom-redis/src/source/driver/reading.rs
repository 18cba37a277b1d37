//! Reading: first this consumer's pending entries in their order, then abandoned entries of other
//! consumers, then new ones.

use std::time::Duration;

use greenroom_bus::source::Taken;
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};

use super::{
    Driver,
    read::{Asked, Read},
};
use crate::{
    entry::{Entry, Id, entries, parts, streams},
    source::{shared::Stream, state::Revocation, state::State},
};

/// How long the server waits for a new entry. A stop waits for the answer too: entries in an
/// abandoned answer would stay pending for a consumer that is gone.
const WAIT: Duration = Duration::from_millis(250);

/// How long it waits if some streams are left out, since they may have room soon.
const WAIT_FOR_SOME: Duration = Duration::from_millis(20);

impl Driver {
    /// `None`: no stream has room.
    pub(super) fn next_read(&self) -> Option<Read> {
        let most = self.input.batch;
        let has_room = |state: &State| {
            let standing = &state.standing;
            !standing.is_paused
                && standing.revocation == Revocation::None
                && state.ready.len() < most
        };
        let mut new = Vec::new();
        for (index, stream) in self.shared.streams.iter().enumerate() {
            let reading = stream
                .look(|state| has_room(state).then_some((state.reading.own, state.reading.left)));
            match reading {
                None => {}
                Some((Some(behind), _)) => return Some(Read::Own(index, behind)),
                Some((None, Some(from))) => return Some(Read::Left(index, from)),
                Some((None, None)) => new.push(index),
            }
        }
        (!new.is_empty()).then_some(Read::New(new))
    }

    pub(super) fn ask(&self, read: Read, mut connection: MultiplexedConnection) -> Asked {
        let command = self.command(&read);
        Box::pin(async move {
            let answer = command.query_async(&mut connection).await;
            (read, answer)
        })
    }

    fn command(&self, read: &Read) -> Cmd {
        let (input, streams) = (&self.input, &self.shared.streams);
        let mut group = redis::cmd("XREADGROUP");
        group.arg("GROUP").arg(&input.group).arg(&input.consumer).arg("COUNT").arg(input.batch);
        match read {
            Read::Own(index, behind) => {
                group.arg("STREAMS").arg(&streams[*index].name).arg(behind.to_string());
                group
            }
            Read::Left(index, from) => {
                let mut claim = redis::cmd("XAUTOCLAIM");
                claim.arg(&streams[*index].name).arg(&input.group).arg(&input.consumer);
                claim.arg(input.claim_after.as_millis() as u64).arg(from.to_string());
                claim.arg("COUNT").arg(input.batch);
                claim
            }
            Read::New(indices) => {
                let wait = if indices.len() < streams.len() { WAIT_FOR_SOME } else { WAIT };
                group.arg("BLOCK").arg(wait.as_millis() as u64).arg("STREAMS");
                indices.iter().for_each(|index| _ = group.arg(&streams[*index].name));
                indices.iter().for_each(|_| _ = group.arg(">"));
                group
            }
        }
    }

    /// # Errors
    /// The answer is malformed.
    pub(super) fn receive(&self, read: Read, answer: Value) -> Result<(), RedisError> {
        match read {
            Read::Own(index, _) => {
                let found = streams(answer)?.into_iter().next();
                let entries = found.map(|(_, entries)| entries).unwrap_or_default();
                let stream = &self.shared.streams[index];
                let last = entries.last().map(|entry| entry.id);
                if self.give(stream, entries) {
                    stream.look(|state| state.reading.own = last);
                }
            }
            Read::Left(index, _) => {
                let [next, found] = parts(answer)?;
                let (stream, next) = (&self.shared.streams[index], Id::read(&next)?);
                if self.give(stream, entries(found)?) {
                    let next = Some(next).filter(|next| *next != Id::ZERO);
                    stream.look(|state| state.reading.left = next);
                }
            }
            Read::New(_) => {
                for (name, entries) in streams(answer)? {
                    let is_it = |stream: &&Stream| stream.name.as_bytes() == name;
                    if let Some(stream) = self.shared.streams.iter().find(is_it) {
                        self.give(stream, entries);
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues entries for the engine. False while the stream is being revoked: they are read again
    /// after that.
    fn give(&self, stream: &Stream, entries: Vec<Entry>) -> bool {
        let gives = stream.look(|state| {
            let gives = state.standing.revocation == Revocation::None;
            for Entry { id, fields } in entries.into_iter().filter(|_| gives) {
                let Some(fields) = fields else {
                    state.receive_removed(id);
                    continue;
                };
                if let Some(position) = state.receive(id) {
                    let event = self.form.read(&stream.name, id, fields);
                    state.ready.push_back(Taken { position, event });
                }
            }
            gives
        });
        self.shared.to_source.notify_one();
        gives
    }
}
