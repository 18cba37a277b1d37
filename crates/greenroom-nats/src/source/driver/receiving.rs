//! Taking messages that the server delivers.

use std::time::Duration;

use async_nats::{Message, StatusCode};
use futures_util::{FutureExt, StreamExt};
use greenroom_bus::source::Taken;
use tokio::time::Instant;

use super::{
    super::{
        delivery::Delivery,
        hold::Hold,
        shared::{Answer, Revocation},
        tracker::Received,
    },
    Driver,
};

/// Messages that are handled in a row before anything else gets a turn.
const TURN: usize = 256;

impl Driver {
    /// Takes a message, and others that have arrived with it.
    pub(super) fn receive(&mut self, first: Message) {
        let mut ready = Vec::new();
        self.take(first, &mut ready);
        for _ in 1..TURN {
            let Some(Some(message)) = self.inbox.messages.next().now_or_never() else { break };
            self.take(message, &mut ready);
        }
        if !ready.is_empty() {
            self.shared.give(ready);
        }
    }

    /// Takes all that has come.
    pub(super) fn receive_ready(&mut self) {
        while let Some(Some(message)) = self.inbox.messages.next().now_or_never() {
            self.receive(message);
        }
    }

    fn take(&mut self, message: Message, ready: &mut Vec<Taken>) {
        self.asking.heard = Instant::now();
        let reply = message.reply.as_ref().map(|reply| reply.as_str());
        let Some((reply, delivery)) = reply.and_then(|reply| Some((reply, Delivery::read(reply)?)))
        else {
            // Only here it is the server's: a message may have been stored with a status as well.
            return message.status.into_iter().for_each(|status| self.status(status, &message));
        };
        self.asking.requests.delivered();
        self.notice_gap(delivery.number);
        let (received, now) = (&self.shared, self.asking.heard);
        let received = received.look(|state| {
            state.lag = Some(delivery.pending);
            if state.revocation != Revocation::None {
                return Received::InHand;
            }
            let received = state.tracker.receive(delivery.position, reply, now);
            match received {
                Received::New => {}
                Received::InHand => state.stats.doubled += 1,
                Received::Done => {
                    state.stats.skipped += 1;
                    state.answers.push((reply.into(), Answer::Ack));
                }
            }
            received
        });
        if received != Received::New {
            return;
        }
        let taken = self.form.read(&message, &delivery);
        ready.extend(self.holding.keep(taken));
    }

    /// Deliveries are numbered without gaps: one is missing that never came, and comes again.
    fn notice_gap(&mut self, number: u64) {
        let is_gap = number > self.holding.last_number + 1;
        self.holding.last_number = number;
        let now = self.asking.heard;
        if self.holding.hold.is_some() || self.holding.is_in_vain() {
            return;
        }
        match is_gap {
            true => self.holding.hold = Some(Hold::new(self.input.ack_wait, now)),
            false => self.holding.floor = None,
        }
    }

    fn status(&mut self, status: StatusCode, message: &Message) {
        if status == StatusCode::IDLE_HEARTBEAT {
            return;
        }
        let number = message.subject.as_str().rsplit('.').next().and_then(|text| text.parse().ok());
        if let Some(number) = number {
            self.asking.requests.ended(number);
        }
        let why = message.description.as_deref().unwrap_or_default();
        match status.as_u16() {
            // Nothing there, or its time is over.
            404 | 408 => {}
            409 if why.eq_ignore_ascii_case("message size exceeds maxbytes") => {
                self.asking.ask_for_large = true;
            }
            409 if why.eq_ignore_ascii_case("batch completed") => {}
            _ => {
                let (consumer, status) = (self.bound.wanted.name.as_str(), status.as_u16());
                tracing::info!(
                    consumer,
                    status,
                    why,
                    "NATS ended a request for messages: the consumer is looked for"
                );
                self.lose(Duration::ZERO);
            }
        }
    }
}
