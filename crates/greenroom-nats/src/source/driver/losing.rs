//! A consumer or a connection that is gone, and what takes its place.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::{
    super::{hold::Hold, shared::Revocation},
    AGAIN_AFTER, Driver,
    lost::Lost,
    subscribe,
};

impl Driver {
    pub(super) fn lose(&mut self, wait: Duration) {
        if self.lost.is_none() {
            self.requests.clear();
            self.lost = Some(Lost::LookAt(Instant::now() + wait));
        }
    }

    /// Looks for a consumer that was lost, and makes it again.
    pub(super) async fn look_after_lost(&mut self) {
        let revocation = self.shared.look(|state| state.revocation);
        match self.lost {
            Some(Lost::Revoking) if revocation == Revocation::None => {}
            Some(Lost::LookAt(at)) if Instant::now() >= at => {}
            _ => return,
        }
        let is_new = matches!(self.lost, Some(Lost::Revoking));
        // One that is made anew goes on with what is not done.
        let from = self.shared.look(|state| state.tracker.oldest_open()).max(1);
        let from = (!is_new && from > 1).then_some(from);
        let found = match self.wanted.find(&self.connection.jetstream, from).await {
            Ok(found) => found,
            Err(error) => {
                if !std::mem::replace(&mut self.has_told, true) {
                    let (consumer, error) = (self.wanted.name.as_str(), error.into_text());
                    tracing::warn!(
                        consumer,
                        error,
                        "nothing can be read now: it is tried again until that is mended"
                    );
                }
                self.lost = Some(Lost::LookAt(Instant::now() + AGAIN_AFTER));
                return;
            }
        };
        if found.stream_made != self.stream_made {
            self.stream_made = found.stream_made;
            (self.hold, self.last_settled) = (None, None);
            tracing::warn!(
                stream = self.wanted.stream,
                "the stream was removed and made anew: what is in hand of the old one is given up"
            );
            self.shared.revoke();
            self.lost = Some(Lost::Revoking);
            return;
        }
        self.lost = None;
        if std::mem::take(&mut self.has_told) {
            tracing::info!(consumer = self.wanted.name, "the consumer is read again");
        }
        let info = found.consumer.cached_info();
        self.last_number = info.delivered.consumer_sequence;
        if self.hold.is_none() {
            self.hold = Some(Hold::new(self.options.ack_wait, Instant::now()));
        }
        self.consumer = found.consumer;
    }

    /// Another connection: what was asked for over the last one does not come.
    pub(super) async fn reconnected(&mut self) {
        while let Some(Some(message)) = self.messages.next().now_or_never() {
            self.receive(message);
        }
        self.requests.clear();
        self.heard = Instant::now();
        self.subscribe_anew().await;
        // The consumer may be gone with what the server has lost.
        self.lose(Duration::ZERO);
    }

    pub(super) async fn subscribe_anew(&mut self) {
        match subscribe(&self.connection).await {
            Ok((inbox, messages)) => (self.inbox, self.messages) = (inbox, messages),
            Err(error) => {
                tracing::warn!(error, "messages cannot be received");
                self.lose(AGAIN_AFTER);
            }
        }
    }
}
