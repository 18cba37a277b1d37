//! A consumer or a connection that is gone, and its replacement.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::{committer::Command, hold::Hold, shared::Revocation},
    AGAIN_AFTER, Driver, Inbox,
    lost::Lost,
    subscribe,
};

impl Driver {
    pub(super) fn lose(&mut self, wait: Duration) {
        if self.bound.lost.is_none() {
            self.asking.requests.clear();
            self.bound.lost = Some(Lost::LookAt(Instant::now() + wait));
        }
    }

    /// Looks for a consumer that was lost, and makes it again.
    pub(super) async fn look_after_lost(&mut self) {
        let revocation = self.shared.look(|state| state.revocation);
        match self.bound.lost {
            Some(Lost::Revoking) if revocation == Revocation::None => {}
            Some(Lost::LookAt(at)) if Instant::now() >= at => {}
            _ => return,
        }
        let is_begin = matches!(self.bound.lost, Some(Lost::Revoking));
        let again = Some((self.goes_on_with(), self.bound.stream_made));
        let found = match self.bound.wanted.find(&self.connection.jetstream, again, false).await {
            Ok(found) => found,
            Err(error) => {
                if !std::mem::replace(&mut self.bound.has_told, true) {
                    let (consumer, error) = (self.bound.wanted.name.as_str(), error.into_text());
                    tracing::warn!(
                        consumer,
                        error,
                        "nothing can be read now: it is tried again until that is mended"
                    );
                }
                self.bound.lost = Some(Lost::LookAt(Instant::now() + AGAIN_AFTER));
                return;
            }
        };
        if found.stream_made != self.bound.stream_made {
            (self.bound.stream_made, self.bound.delivered_before) = (found.stream_made, 0);
            (self.holding.hold, self.holding.floor, self.last_settled) = (None, Some(0), None);
            tracing::warn!(
                stream = self.bound.wanted.stream,
                "the stream was removed and made anew: what is in hand of the old one is given up"
            );
            self.shared.revoke();
            self.bound.lost = Some(Lost::Revoking);
            return;
        }
        self.bound.lost = None;
        if std::mem::take(&mut self.bound.has_told) {
            tracing::info!(consumer = self.bound.wanted.name, "the consumer is read again");
        }
        let info = found.consumer.cached_info().clone();
        if is_begin {
            self.bound.delivered_before = info.delivered.stream_sequence;
        }
        self.holding.last_number = info.delivered.consumer_sequence;
        let now = Instant::now();
        // Repeated losses are due to a message that never comes. Otherwise messages on their way
        // come again, and newer ones wait for them.
        if !(self.holding.is_in_vain() && self.asking.suspicion.is_fresh(now)) {
            let hold = || Hold::new(self.input.ack_wait, now);
            self.holding.hold.get_or_insert_with(hold);
        }
        self.bound.consumer = found.consumer;
        if std::mem::take(&mut self.holding.was_cut) {
            self.look_for_unreadable(&info).await;
        }
    }

    /// Where a replacement of this consumer begins: with the oldest unsettled message, whether it
    /// is in hand, given back or has not come yet.
    pub(super) fn goes_on_with(&self) -> u64 {
        let (open, next) =
            self.shared.look(|state| (state.tracker.oldest_open(), state.tracker.next()));
        let open = (next > 0).then_some(open);
        let missing = self.holding.floor.map(|floor| floor + 1);
        open.into_iter().chain(missing).min().unwrap_or(1).max(1)
    }

    /// Another connection: the request over the last one gets no answer.
    pub(super) async fn reconnected(&mut self) {
        self.receive_ready();
        self.asking.requests.clear();
        self.asking.heard = Instant::now();
        self.holding.was_cut = true;
        self.holding.hold.iter_mut().for_each(Hold::loses);
        self.subscribe_anew().await;
        // Another process may have taken its lease in between.
        self.bound.lease.iter_mut().for_each(|lease| lease.look_at = Instant::now());
        // The consumer may be gone, with other data that the server has lost.
        self.lose(Duration::ZERO);
    }

    /// Whether another client replaced one that has ended, which happens only after a panic: at a
    /// message with a header that it considers impossible, for example.
    pub(super) async fn opened_again(&mut self) -> bool {
        let ended = self.connection.clone();
        let server = ended.shown.as_str();
        tracing::error!(server, "the NATS client has ended: another one takes its place");
        let mut opening = std::pin::pin!(ended.again());
        let opened = loop {
            tokio::select! {
                opened = &mut opening => break opened,
                command = self.commands.recv() => match command {
                    // Nothing is confirmed. A caller that is gone need not know.
                    Some(Command::Commit(done)) => _ = done.send(()),
                    Some(Command::End) | None => return false,
                },
            }
        };
        match opened {
            Ok(connection) => {
                self.connected = connection.connected();
                self.connected.mark_unchanged();
                self.connection = connection;
                let lease = self.bound.lease.iter_mut();
                lease.for_each(|lease| lease.connect_anew(&self.connection));
                self.reconnected().await;
                true
            }
            Err(why) => {
                self.failed(why).await;
                false
            }
        }
    }

    pub(super) async fn subscribe_anew(&mut self) {
        match subscribe(&self.connection).await {
            Ok((subject, messages)) => self.inbox = Inbox { subject, messages, is_drained: false },
            Err(error) => {
                tracing::warn!(error, "messages cannot be received");
                self.lose(AGAIN_AFTER);
            }
        }
    }
}
