//! Renewing the claim on entries in hand. Other consumers may claim an entry that was idle for
//! `claim_after`, so each entry in hand is claimed again well before that. The pending list is read
//! first: a process that was frozen for longer may have lost some of its entries.

use std::{collections::HashSet, time::Duration};

use greenroom_bus::source::InputState;
use redis::{RedisError, Value, aio::MultiplexedConnection};
use tokio::time::Instant;

use super::Driver;
use crate::{
    entry::{Id, array, parts},
    source::{groups::Groups, shared::Stream, state::Revocation},
};

/// The longest interval between two renewals of claims; the lag is read then, too.
const KEEP_EVERY: Duration = Duration::from_secs(5);

/// Entries per request.
pub(super) const PAGE: usize = 1_000;

impl Driver {
    /// Renews claims, reads the lag, and starts a search for abandoned entries.
    pub(super) async fn keep(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        let asked = Instant::now();
        let mut is_whole = true;
        for stream in &self.shared.streams {
            if stream.is_refused() {
                self.find_group(stream, connection).await?;
            }
            if stream.is_refused() {
                continue;
            }
            is_whole &= self.keep_of(stream, connection).await?;
            let lag = Groups(&self.input).says(&stream.name, b"lag", connection).await?;
            let lag = match lag {
                Some(Value::Int(lag)) => u64::try_from(lag).ok(),
                // Servers before 7.0 do not say, nor does one after entries were deleted.
                _ => None,
            };
            stream.look(|state| {
                state.standing.lag = lag;
                state.reading.left = state.reading.left.or(Some(Id::ZERO));
            });
        }
        if is_whole {
            self.shared.lease.extend((asked + self.input.claim_after).into_std());
        }
        let (server, input) = (&self.server.shown, &self.input);
        let reads = format!("{} of {server} by group {}", input.streams.join(", "), input.group);
        let refused = |stream: &Stream| stream.look(|state| state.standing.refused.clone());
        match self.shared.streams.iter().find_map(refused) {
            Some(refused) => self.shared.status.set(InputState::Refused, refused),
            None => self.shared.status.set(InputState::Assigned, reads),
        }
        self.shared.to_driver.notify_one();
        Ok(())
    }

    /// False if entries in hand were lost, so that the stream is revoked.
    async fn keep_of(
        &self,
        stream: &Stream,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, RedisError> {
        if stream.look(|state| state.standing.revocation != Revocation::None) {
            return Ok(false);
        }
        if stream.look(|state| state.repeated_at_most() == 0) {
            return Ok(true);
        }
        let ours = self.ours(stream, connection).await?;
        if !stream.look(|state| state.compare(&ours)) {
            tracing::warn!(
                stream = stream.name,
                "entries in hand were claimed by another consumer, or lost by the server; waiting events are given up"
            );
            self.shared.revoke(stream);
            return Ok(false);
        }
        let held = stream.look(|state| state.in_hand());
        // An entry that is idle for less needs no renewal, or was claimed by another consumer since
        // the pending list was read.
        let least = self.keep_every() / 2;
        for page in held.chunks(PAGE) {
            self.claim(stream, page, least, Duration::ZERO)
                .query_async::<Value>(connection)
                .await?;
        }
        Ok(true)
    }

    /// The pending entries of this consumer, by the server.
    async fn ours(
        &self,
        stream: &Stream,
        connection: &mut MultiplexedConnection,
    ) -> Result<HashSet<Id>, RedisError> {
        let (mut ours, mut from) = (HashSet::new(), "-".to_owned());
        loop {
            let mut pending = redis::cmd("XPENDING");
            pending.arg(&stream.name).arg(&self.input.group).arg(&from).arg("+").arg(PAGE);
            pending.arg(&self.input.consumer);
            let page = array(pending.query_async(connection).await?)?;
            let (mut last, is_last) = (None, page.len() < PAGE);
            for entry in page {
                let [id] = parts(entry)?;
                last = Some(Id::read(&id)?);
                ours.extend(last);
            }
            match last {
                Some(last) if !is_last => from = format!("({last}"),
                _ => return Ok(ours),
            }
        }
    }

    /// How often claims are renewed.
    pub(super) fn keep_every(&self) -> Duration {
        (self.input.claim_after / 4).min(KEEP_EVERY)
    }

    /// Claims those entries for this consumer that are idle for at least this long, and sets their
    /// idle time.
    pub(super) fn claim(
        &self,
        stream: &Stream,
        ids: &[Id],
        least: Duration,
        idle: Duration,
    ) -> redis::Cmd {
        let mut claim = redis::cmd("XCLAIM");
        claim.arg(&stream.name).arg(&self.input.group).arg(&self.input.consumer);
        claim.arg(least.as_millis() as u64);
        ids.iter().for_each(|id| _ = claim.arg(id.to_string()));
        claim.arg("IDLE").arg(idle.as_millis() as u64).arg("JUSTID");
        claim
    }
}
