//! Whether brokers answer, and the input's state that follows (O17), how long its partitions are
//! its own (D12), and where they end.

use std::{mem, time::Instant};

use greenroom_bus::source::InputState;
use rdkafka::{consumer::Consumer, error::RDKafkaErrorCode};

use super::{super::figures::Figures, Poller};
use crate::{
    client::{self, Matter, advice},
    place::spans,
};

/// So often the end of a partition is seen without anything new, before it is gone to.
const SEEN_AT_END: u32 = 3;

impl Poller {
    /// librdkafka's statistics, once a second.
    pub(super) fn hear_figures(&mut self, figures: &Figures) {
        let was_connected = mem::replace(&mut self.contact.is_connected, figures.is_connected);
        self.contact.was_connected |= figures.is_connected;
        if figures.is_connected && !was_connected {
            self.consumer.context().failures.forget();
        }
        self.extend_lease(figures);
        {
            let mut state = self.shared.state.lock();
            for (number, reading) in &self.reading {
                if let Some(part) = state.parts.get_mut(number) {
                    part.end = figures.ends.get(&reading.place).copied().or(part.end);
                }
            }
        }
        self.go_to_ends(figures);
        self.show_status();
    }

    /// Its partitions are its own for one session after the last request that the group has
    /// answered. Without any partition, there is nothing to lose, once the engine has given up
    /// those that it had.
    fn extend_lease(&mut self, figures: &Figures) {
        let moment = self.contact.moment(figures.at);
        let (Some(lease), Some(moment)) = (&self.shared.lease, moment) else { return };
        let session = self.contact.session.unwrap_or_default();
        if self.reading.is_empty() && self.shared.state.lock().leaving.is_empty() {
            lease.extend(Instant::now() + session);
        } else if let Some(heard) = figures.coordinator.and_then(|age| moment.checked_sub(age)) {
            lease.extend(heard + session);
        }
    }

    /// After the last record of a partition there may be offsets that are never delivered: markers
    /// of transactions, and records of aborted ones. Once all available records were taken, its
    /// position is beyond these as well.
    fn go_to_ends(&mut self, figures: &Figures) {
        for reading in self.reading.values_mut() {
            let is_read =
                reading.queue.is_some() && reading.anew.is_none() && reading.sought.is_none();
            let end = figures.fetched.get(&reading.place).copied().filter(|_| is_read);
            reading.at_end = end.map(|end| match reading.at_end {
                Some((known, times)) if known == end => (end, times.saturating_add(1)),
                _ => (end, 1),
            });
            if let Some((end, SEEN_AT_END..)) = reading.at_end
                && end > reading.read.next
            {
                reading.tracker.watermark.lock().pass(end);
                reading.read.next = end;
            }
        }
    }

    pub(super) fn tell(&mut self, code: RDKafkaErrorCode, what: &str) {
        let matter = Matter::from_code(code);
        self.contact.hear(code, matter);
        self.show_status();
        let is_shown = !self.shared.status.get().is_connected() && matter.is_known();
        if is_shown || !self.contact.is_news(code) {
            return;
        }
        let failure = self.consumer.context().failures.last();
        let failure = failure.filter(|_| matter.is_of_connections());
        let what = failure.as_deref().unwrap_or(what);
        tracing::warn!("{}: {what}{}", self.shared.name, advice(code));
    }

    /// Why partitions were lost, for an operator.
    pub(super) fn why_lost(&self) -> String {
        let is_heard = self.shared.lease.as_ref().is_some_and(|lease| lease.is_held());
        match (self.contact.is_missing, self.contact.session) {
            (true, _) => "their topic was deleted, or has fewer partitions".to_owned(),
            (false, Some(session)) if !is_heard => {
                format!("the group has not heard of this member for {session:?}")
            }
            _ => "the group has put this member out, and it joins again".to_owned(),
        }
    }

    pub(super) fn show_status(&self) {
        let (state, detail) = self.status();
        self.shared.status.set(state, detail);
    }

    fn status(&self) -> (InputState, String) {
        let (contact, group) = (&self.contact, &self.setup.input.group);
        if !contact.is_connected {
            return self.unconnected();
        }
        if !self.reading.is_empty() {
            let places = self.reading.values().map(|reading| &reading.place);
            return (InputState::Assigned, format!("group {group}: {}", spans(places)));
        }
        if let Some(denied) = &contact.denied {
            return (InputState::Refused, denied.clone());
        }
        if contact.is_missing {
            let topics = self.setup.input.topics.join(", ");
            let code = RDKafkaErrorCode::UnknownTopicOrPartition;
            return (InputState::Waiting, format!("no such topic: {topics}{}", advice(code)));
        }
        if contact.has_joined {
            let detail = "no partition, since other members have all of them";
            return (InputState::Assigned, format!("group {group}: {detail}"));
        }
        (InputState::Joining, format!("group {group}"))
    }

    fn unconnected(&self) -> (InputState, String) {
        let state = match self.contact.was_connected {
            true => InputState::Lost,
            false => InputState::Connecting,
        };
        let Some(failure) = self.consumer.context().failures.last() else {
            return (state, format!("brokers {}", self.setup.access.brokers));
        };
        match client::to_correct(&failure) {
            Some(next) => (InputState::Refused, format!("{failure}; {next}")),
            None => {
                let next = advice(RDKafkaErrorCode::AllBrokersDown);
                (state, format!("no broker answers: {failure}{next}"))
            }
        }
    }
}
