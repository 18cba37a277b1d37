//! Asking the server for messages.

use std::time::Duration;

use tokio::time::Instant;

use super::{AGAIN_AFTER, Driver};
use crate::connection::because;

/// A request is open for this long at most, and is then replaced.
const EXPIRES: Duration = Duration::from_secs(30);

/// The server signals at least this often that a request is alive, if it brings nothing.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long a request is open. None of a process that is frozen outlives its lease, which is half
/// of `ack_wait` and has a quarter of that less to go: it would take messages from the next one.
fn expires(ack_wait: Duration) -> Duration {
    EXPIRES.min(ack_wait * 3 / 8)
}

impl Driver {
    /// Asks for as many messages as there is room for.
    pub(super) async fn ask(&mut self) {
        let now = Instant::now();
        let is_early = now < self.asking.ask_after;
        if self.bound.lost.is_some() || is_early || self.shared.is_closing() {
            return;
        }
        // Another process may read it by now: messages that came here would be missing there.
        if !self.shared.is_leased(now) {
            return;
        }
        let outstanding = self.asking.requests.outstanding();
        let (open, ready, is_paused) =
            self.shared.look(|state| (state.tracker.open(), state.ready.len(), state.is_paused));
        let (batch, one_by_one) = (self.input.batch, self.asking.suspicion.is_confirmed(now));
        let messages = match &self.holding.hold {
            _ if is_paused || (one_by_one && outstanding > 0) => return,
            // The server gives nothing new beyond the limit; old messages have to come.
            Some(_) if outstanding == 0 => batch,
            Some(_) => return,
            None => {
                let room = self.input.held_at_most().saturating_sub(open + outstanding);
                room.min((2 * batch).saturating_sub(ready + outstanding)).min(batch)
            }
        };
        // Not for a few at a time, unless nothing else is on its way.
        if messages == 0 || (outstanding > 0 && messages < batch.div_ceil(2)) {
            return;
        }
        let is_large = std::mem::take(&mut self.asking.ask_for_large);
        let messages = if is_large || one_by_one { 1 } else { messages };
        if let Err(error) = self.request(messages).await {
            tracing::warn!(
                consumer = self.bound.wanted.name,
                error,
                "messages could not be asked for"
            );
            self.asking.ask_after = now + AGAIN_AFTER;
        }
    }

    async fn request(&mut self, messages: usize) -> Result<(), String> {
        let number = self.asking.requests.begin(messages);
        let bytes = match messages {
            1 => String::new(),
            _ => format!("\"max_bytes\":{},", self.input.batch_bytes),
        };
        let expires = expires(self.input.ack_wait);
        let (expires, heartbeat) = (expires.as_nanos(), HEARTBEAT.min(expires / 2).as_nanos());
        let body = format!(
            "{{\"batch\":{messages},{bytes}\"expires\":{expires},\"idle_heartbeat\":{heartbeat}}}"
        );
        let (stream, consumer) = (&self.bound.wanted.stream, &self.bound.wanted.name);
        let subject = self.api(&format!("CONSUMER.MSG.NEXT.{stream}.{consumer}"));
        let reply = format!("{}.{number}", self.inbox.subject);
        let sent = self.connection.client.publish_with_reply(subject, reply, body.into()).await;
        if self.asking.requests.outstanding() == messages {
            self.asking.heard = Instant::now();
        }
        sent.map_err(|error| because(&error))
    }

    /// A subject of the server's API.
    pub(super) fn api(&self, what: &str) -> String {
        match &self.connection.domain {
            Some(domain) => format!("$JS.{domain}.API.{what}"),
            None => format!("$JS.API.{what}"),
        }
    }
}
