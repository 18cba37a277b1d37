//! A message that ends the connection each time it comes.
//!
//! A server stores a message whatever its headers are. At one that it cannot read, the client ends
//! the connection, or panics, without naming it; the server delivers it again once its time is
//! over. So after each lost connection, the delivered messages that have not come are read from the
//! stream, in a form that is readable for any message. One that the client cannot read is given to
//! the engine as one that is not an event, and is terminated as a dead letter from then on.
//!
//! If reading the stream is not permitted, or finds no message that is known to be unreadable,
//! messages are requested one by one from the second time on: all behind that one would be lost
//! with it again, since they come again in the same order.

use std::time::Duration;

use async_nats::jetstream::consumer::{Config, Info};
use greenroom_bus::source::{Malformed, Taken};
use tokio::time::{Instant, timeout_at};

use super::{
    super::{delivery::unseen, hold::patience, shared::Answer, stored::Stored, tracker::Received},
    Driver,
    suspicion::{LookFrom, Suspicion},
};
use crate::connection::because;

/// They are searched for at most this long.
pub(super) const LOOK_FOR: Duration = Duration::from_secs(2);

const TOO_LONG: &str = "to look takes too long, and goes on once it is lost again";

impl Driver {
    /// Searches for them among the delivered messages that have not come, by this info.
    pub(super) async fn look_for_unreadable(&mut self, info: &Info) {
        let open = self.shared.look(|state| state.tracker.open());
        if self.shared.is_closing() || info.num_ack_pending <= open {
            return self.asking.suspicion = Suspicion::default();
        }
        // Messages in hand have to be reported as in progress during that time.
        let until = Instant::now() + LOOK_FOR.min(self.input.ack_wait / 8);
        // The rest is searched next time.
        let mut from = std::mem::take(&mut self.asking.suspicion.look_from);
        let looked = timeout_at(until, self.look_through_missing(info, &mut from)).await;
        self.asking.suspicion.look_from = from;
        match looked.unwrap_or_else(|_| Err(TOO_LONG.to_owned())) {
            Ok(true) => return self.asking.suspicion = Suspicion::default(),
            Ok(false) => {}
            Err(error) => tracing::warn!(
                consumer = self.bound.wanted.name,
                error,
                "whether the connection was lost by a message that cannot be read is not known"
            ),
        }
        let now = Instant::now();
        self.asking.suspicion.loses(patience(self.input.ack_wait), now);
        if self.asking.suspicion.is_confirmed(now)
            && let Some(in_vain) = self.holding.in_vain.filter(|in_vain| in_vain.lasts(now))
        {
            self.holding.waits_in_vain(in_vain.missing, self.input.ack_wait);
        }
    }

    /// Whether any was found. `below` is, for each filter, the position from which to search the
    /// deliveries to an earlier process.
    async fn look_through_missing(
        &mut self,
        info: &Info,
        below: &mut LookFrom,
    ) -> Result<bool, String> {
        let (floor, last) = (info.ack_floor.stream_sequence, info.delivered.stream_sequence);
        // Messages on their way are above all that have come, unless they came before.
        let next = self.shared.look(|state| state.tracker.next());
        let middle = next.max(self.bound.delivered_before + 1).max(floor + 1).min(last + 1);
        let filters = filters(&info.config);
        let mut found = false;
        for filter in &filters {
            found |= self.look_through(filter, &mut { middle }, last).await?;
        }
        // The range below also contains messages that an earlier process has finished, such as a
        // dead letter: the server does not say which. So only messages that are lost again are
        // searched for there.
        if found || !self.asking.suspicion.is_fresh(Instant::now()) {
            return Ok(found);
        }
        for filter in filters {
            let from = below.entry(filter.clone()).or_default();
            *from = (*from).max(floor + 1);
            found |= self.look_through(&filter, from, middle - 1).await?;
        }
        Ok(found)
    }

    /// Leaves `from` above the searched range.
    async fn look_through(
        &mut self,
        filter: &str,
        from: &mut u64,
        to: u64,
    ) -> Result<bool, String> {
        let mut found = false;
        loop {
            *from = self.shared.look(|state| state.tracker.unknown_from(*from));
            if *from > to {
                return Ok(found);
            }
            let answer = self.ask_for_stored(filter, *from).await?;
            match Stored::read(&answer)? {
                Some(stored) if stored.position <= to => {
                    *from = stored.position + 1;
                    found |= self.take_unreadable(&stored).await;
                }
                _ => return Ok(found),
            }
        }
    }

    /// The first message with these subjects from that position on.
    async fn ask_for_stored(&self, filter: &str, from: u64) -> Result<String, String> {
        let subject = self.api(&format!("STREAM.MSG.GET.{}", self.bound.wanted.stream));
        let body = format!("{{\"seq\":{from},\"next_by_subj\":{filter:?}}}");
        let answer = self.connection.client.request(subject, body.into()).await;
        let answer = answer.map_err(|error| because(&error))?;
        Ok(String::from_utf8_lossy(&answer.payload).into_owned())
    }

    /// Whether it is one.
    async fn take_unreadable(&mut self, stored: &Stored<'_>) -> bool {
        let position = stored.position;
        let Some((payload, why)) = stored.unreadable(self.bound.stream_made) else { return false };
        let reply = unseen(&self.bound.wanted.stream, &self.bound.wanted.name, position);
        let now = Instant::now();
        let received = self.shared.look(|state| state.tracker.receive(position, &reply, now));
        if received != Received::New {
            return false;
        }
        tracing::warn!(
            consumer = self.bound.wanted.name,
            position,
            why,
            "a message ends the connection, because the client cannot read it: it becomes a dead letter"
        );
        self.tell(&reply, Answer::Progress).await;
        let taken = Taken { position, event: Err(Malformed::new(payload, why)) };
        if let Some(taken) = self.holding.keep(taken) {
            self.shared.give([taken]);
        }
        true
    }
}

fn filters(config: &Config) -> Vec<String> {
    match (config.filter_subjects.as_slice(), config.filter_subject.as_str()) {
        ([], "") => vec![">".to_owned()],
        ([], one) => vec![one.to_owned()],
        (some, _) => some.to_vec(),
    }
}
