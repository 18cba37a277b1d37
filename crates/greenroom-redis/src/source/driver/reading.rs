//! Reading: first this consumer's pending entries in their order, then abandoned entries of other
//! consumers, then new ones.

use std::time::Duration;

use greenroom_bus::source::Taken;
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};

use super::{
    Driver,
    read::{Asked, Read, Turn},
};
use crate::{
    entry::{Entry, Id, claimed, streams},
    source::state::{Reading, Revocation, State},
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
                && standing.refused.is_none()
                && standing.revocation == Revocation::None
                && state.ready.len() < most
        };
        let mut new = Vec::new();
        for (index, stream) in self.shared.streams.iter().enumerate() {
            let reading = stream.look(|state| {
                let turn = Turn { index, beginning: state.reading.beginning };
                has_room(state).then_some((turn, state.reading.own, state.reading.left))
            });
            match reading {
                None => {}
                Some((turn, Some(behind), _)) => return Some(Read::Own(turn, behind)),
                Some((turn, None, Some(from))) => return Some(Read::Left(turn, from)),
                Some((turn, None, None)) => new.push(turn),
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
            Read::Own(turn, behind) => {
                group.arg("STREAMS").arg(&streams[turn.index].name).arg(behind.to_string());
                group
            }
            Read::Left(turn, from) => {
                let mut claim = redis::cmd("XAUTOCLAIM");
                claim.arg(&streams[turn.index].name).arg(&input.group).arg(&input.consumer);
                claim.arg(input.claim_after.as_millis() as u64).arg(from.to_string());
                claim.arg("COUNT").arg(input.batch);
                claim
            }
            Read::New(turns) => {
                let readable = streams.iter().filter(|stream| !stream.is_refused()).count();
                let wait = if turns.len() < readable { WAIT_FOR_SOME } else { WAIT };
                group.arg("BLOCK").arg(wait.as_millis() as u64).arg("STREAMS");
                turns.iter().for_each(|turn| _ = group.arg(&streams[turn.index].name));
                turns.iter().for_each(|_| _ = group.arg(">"));
                group
            }
        }
    }

    /// # Errors
    /// The answer is malformed.
    pub(super) fn receive(&self, read: Read, answer: Value) -> Result<(), RedisError> {
        match read {
            Read::Own(turn, _) => {
                let found = streams(answer)?.into_iter().next();
                let entries = found.map(|(_, entries)| entries).unwrap_or_default();
                let last = entries.last().map(|entry| entry.id);
                self.give(turn, entries, |reading| reading.own = last);
            }
            Read::Left(turn, _) => {
                let (next, entries) = claimed(answer)?;
                let next = Some(next).filter(|next| *next != Id::ZERO);
                self.give(turn, entries, |reading| reading.left = next);
            }
            Read::New(turns) => {
                for (name, entries) in streams(answer)? {
                    let is_it =
                        |turn: &&Turn| self.shared.streams[turn.index].name.as_bytes() == name;
                    if let Some(turn) = turns.iter().find(is_it) {
                        self.give(*turn, entries, |_| ());
                    }
                }
            }
        }
        Ok(())
    }

    /// Queues entries for the engine, and moves the cursor of the read behind them. Entries of a
    /// stream that was restarted since the request, or is about to be, are dropped: they are
    /// pending for this consumer, and are read again in their order.
    fn give(&self, turn: Turn, entries: Vec<Entry>, moves: impl FnOnce(&mut Reading)) {
        let stream = &self.shared.streams[turn.index];
        let removed = stream.look(|state| {
            let mut removed = 0;
            let is_current = state.reading.beginning == turn.beginning;
            if !is_current || state.standing.revocation != Revocation::None {
                return removed;
            }
            for Entry { id, fields } in entries {
                let Some(fields) = fields else {
                    removed += usize::from(state.receive_removed(id));
                    continue;
                };
                if let Some(position) = state.receive(id) {
                    let event = self.form.read(&stream.name, id, fields);
                    state.ready.push_back(Taken { position, event });
                }
            }
            moves(&mut state.reading);
            removed
        });
        if removed > 0 {
            tracing::warn!(
                stream = stream.name,
                removed,
                "pending entries were removed from the stream before they were handled (XDEL, XTRIM or MAXLEN): they are lost; a longer stream keeps them"
            );
        }
        self.shared.to_source.notify_one();
    }
}
