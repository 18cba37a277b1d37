//! Accepted, unsettled events, and the outage that blocks them.

use std::{collections::VecDeque, time::Duration};

use greenroom::Backoff;
use greenroom_bus::{
    outage::Outage,
    settlement::Ack,
    sink::{SinkError, Trouble, remote::SinkRoom},
};
use parking_lot::Mutex;
use rdkafka::error::RDKafkaErrorCode;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{record::Record, setup::OutputSetup};
use crate::client::Failures;

/// The limit on the bytes of accepted, unsettled events.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
/// And at most this many events.
const ROOM_EVENTS: usize = 4_096;

/// librdkafka has at most this many of them. It publishes these even if their partitions were lost
/// in an outage: at most this many are published twice. At 5 ms to collect a batch and 5 ms for its
/// answer, these are 200,000 a second.
const UNDER_WAY: usize = 2_048;

/// Between two attempts at refused records.
const WAITS: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));

/// A record on its way. It gives its room back when it is dropped.
pub(super) struct Sent {
    pub(super) record: Record,
    pub(super) ack: Ack,
    /// In the order of acceptance.
    pub(super) number: u64,
    /// Nothing else was under way, so a broker's answer to its batch applies to this record.
    pub(super) is_alone: bool,
    pub(super) _room: OwnedSemaphorePermit,
}

pub(super) struct Shared {
    pub(super) name: String,
    pub(super) setup: OutputSetup,
    pub(super) failures: Failures,
    pub(super) state: Mutex<State>,
    pub(super) room: SinkRoom,
}

#[derive(Default)]
pub(super) struct State {
    /// Not with librdkafka, by their numbers.
    pub(super) waiting: VecDeque<Sent>,
    /// With librdkafka, or about to be.
    pub(super) under_way: usize,
    /// The number of the next.
    pub(super) next: u64,
    /// Of those below this number, something was refused: they are sent one by one.
    pub(super) singly_below: u64,
    hold: Hold,
    finishes: bool,
    /// The sink was dropped, or cannot continue.
    pub(super) is_over: bool,
}

/// The obstacle for records.
#[derive(Default)]
struct Hold {
    /// Since the last failure, until a record is stored. Nothing is sent before its next probe.
    outage: Option<Outage>,
    is_paused: bool,
    /// Those below this number waited through a failure. The partitions of their inputs may have
    /// been lost by now.
    waited_below: u64,
}

/// The meaning of an error for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It will never be stored.
    Rejected,
    /// An operator has to correct an error.
    Pauses,
    /// It may pass.
    Again,
}

impl Meaning {
    pub(super) fn from_code(code: RDKafkaErrorCode) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            Code::MessageSizeTooLarge
            | Code::MessageBatchTooLarge
            | Code::InvalidRecord
            | Code::InvalidMessageSize
            | Code::InvalidTimestamp
            | Code::PolicyViolation
            | Code::UnsupportedForMessageFormat => Self::Rejected,
            Code::TopicAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::SaslAuthenticationFailed
            | Code::Authentication
            | Code::UnknownTopic
            | Code::UnknownTopicOrPartition
            | Code::UnknownPartition
            | Code::InvalidTopic
            | Code::InvalidRequiredAcks => Self::Pauses,
            _ => Self::Again,
        }
    }
}

impl Shared {
    pub(super) fn new(name: String, setup: OutputSetup) -> Self {
        Self {
            name,
            setup,
            failures: Failures::default(),
            state: Mutex::default(),
            room: SinkRoom::new(ROOM_BYTES, ROOM_EVENTS),
        }
    }

    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        state.finishes = true;
        let is_done = state.is_done();
        drop(state);
        self.tell_done(is_done);
    }

    pub(super) fn tell_done(&self, is_done: bool) {
        if is_done {
            self.room.end();
        }
    }

    /// Nothing is published any more: waiting records are refused.
    pub(super) fn give_up(&self, failure: Option<String>) {
        let mut state = self.state.lock();
        state.is_over = true;
        let refused = std::mem::take(&mut state.waiting);
        drop(state);
        if let Some(why) = failure {
            self.room.fail(SinkError::new(self.name.clone(), why));
        }
        drop(refused);
        self.room.end();
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        let state = self.state.lock();
        let outage = state.hold.outage.as_ref()?;
        Some(match state.hold.is_paused {
            true => Trouble::paused(outage.since.elapsed(), &*outage.error),
            false => Trouble::failing(outage.since.elapsed(), &*outage.error),
        })
    }

    pub(super) fn resume(&self) -> bool {
        let mut state = self.state.lock();
        let Hold { outage, is_paused, .. } = &mut state.hold;
        let paused = outage.as_mut().filter(|_| *is_paused);
        paused.map(|outage| outage.next_probe = Instant::now()).is_some()
    }

    /// A record was stored; `is_news` if that ends an outage.
    pub(super) fn tell_works(&self, is_news: bool) {
        if is_news {
            self.failures.forget();
            tracing::info!("{}: the output delivers again", self.name);
        }
    }

    /// An error that may pass, or that an operator has to correct. Its events wait.
    pub(super) fn fails(&self, error: String, meaning: Meaning) {
        let is_paused = meaning == Meaning::Pauses;
        let is_new = self.state.lock().fails(&error, is_paused);
        match (is_new, is_paused) {
            (true, true) => tracing::error!(
                "{}: the output is paused until this is corrected, and probes meanwhile: {error}",
                self.name
            ),
            (true, false) => {
                tracing::warn!("{}: the output fails for now, and tries again: {error}", self.name)
            }
            (false, _) => {}
        }
    }
}

impl State {
    pub(super) fn is_done(&self) -> bool {
        self.finishes && self.under_way == 0 && self.waiting.is_empty()
    }

    pub(super) fn accepts(&self) -> bool {
        !self.finishes && !self.is_over
    }

    /// Behind those with a lower number.
    pub(super) fn put_back(&mut self, sent: Sent) {
        self.singly_below = self.singly_below.max(sent.number + 1);
        let at = self.waiting.partition_point(|waiting| waiting.number < sent.number);
        self.waiting.insert(at, sent);
    }

    /// Those that waited through a failure, and whose partitions were lost by now: their new owner
    /// publishes them.
    pub(super) fn take_revoked(&mut self) -> Vec<Sent> {
        let below = match self.hold.outage {
            Some(_) => u64::MAX,
            None => self.hold.waited_below,
        };
        let mut revoked = Vec::new();
        if self.waiting.front().is_some_and(|first| first.number < below) {
            let (gone, kept) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(|sent| sent.number < below && sent.ack.is_revoked());
            (revoked, self.waiting) = (Vec::from(gone), kept);
        }
        revoked
    }

    /// librdkafka had no room for these: they are the next again.
    pub(super) fn has_not_sent(&mut self, mut rest: VecDeque<Sent>) {
        self.under_way -= rest.len();
        rest.append(&mut self.waiting);
        self.waiting = rest;
    }

    /// The next that may be sent now; from here on it is under way.
    pub(super) fn take_next(&mut self) -> Option<Sent> {
        let next = self.hold.outage.as_ref().map(|outage| outage.next_probe);
        if next.is_some_and(|next| Instant::now() < next) {
            return None;
        }
        let is_single = self.waiting.front()?.number < self.singly_below;
        // Records that librdkafka has cannot be taken back: while it stores nothing, it is given no
        // more.
        let waits_for_those = is_single || next.is_some();
        let most = if waits_for_those { 1 } else { UNDER_WAY };
        if self.under_way >= most {
            return None;
        }
        let mut sent = self.waiting.pop_front()?;
        sent.is_alone = is_single;
        self.under_way += 1;
        Some(sent)
    }

    /// A record was stored. True if that is a change.
    pub(super) fn works(&mut self) -> bool {
        let is_news = self.hold.outage.take().is_some();
        if is_news {
            self.hold.waited_below = self.next;
        }
        is_news
    }

    /// True if that is a change.
    fn fails(&mut self, error: &str, is_paused: bool) -> bool {
        let is_new = self.hold.outage.is_none() || (is_paused && !self.hold.is_paused);
        Outage::fails(&mut self.hold.outage, error, &WAITS, 1.0, Instant::now());
        self.hold.is_paused = is_paused;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    use greenroom_bus::{
        event::Event,
        settlement::{Settle, Settled},
    };
    use tokio::sync::Semaphore;

    use super::*;
    use crate::options::KafkaSinkMode;

    /// The settlement of an event whose partition may be lost.
    struct Ticket(Arc<AtomicBool>);

    impl Settle for Ticket {
        fn settled(&self, _how: Settled) {}

        fn is_revoked(&self) -> bool {
            self.0.load(Relaxed)
        }
    }

    fn accept(state: &mut State, is_revoked: &Arc<AtomicBool>) {
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let event = Event::builder("1", "tests", "made").build().unwrap();
        let record = Record::new(event, KafkaSinkMode::Binary);
        let (ack, number) = (Ack::new(Ticket(is_revoked.clone())), state.next);
        state.next += 1;
        state.waiting.push_back(Sent { record, ack, number, is_alone: false, _room: room });
    }

    fn numbers(sent: &[Sent]) -> Vec<u64> {
        sent.iter().map(|sent| sent.number).collect()
    }

    #[test]
    fn d12_what_waited_through_an_outage_and_is_not_ours_any_more_is_not_sent() {
        let (mut state, lost, kept) = (State::default(), Arc::default(), Arc::default());
        for is_revoked in [&lost, &kept, &lost, &kept] {
            accept(&mut state, is_revoked);
        }
        assert_eq!(state.take_next().unwrap().number, 0);
        state.fails("no broker answers", false);
        state.hold.outage.as_mut().unwrap().next_probe = Instant::now();
        assert!(state.take_next().is_none(), "librdkafka has one, and does not store it");
        lost.store(true, Relaxed);
        state.works();
        assert_eq!(numbers(&state.take_revoked()), [2]);
        assert_eq!(state.take_next().unwrap().number, 1);
        accept(&mut state, &lost);
        assert_eq!(numbers(&state.take_revoked()), [0; 0], "it came after the outage");
    }

    #[test]
    fn d13_records_of_one_batch_that_are_refused_put_off_the_probe_once() {
        let mut state = State::default();
        (0..100).for_each(|_| _ = state.fails("not authorized", true));
        let probe = state.hold.outage.unwrap().next_probe;
        assert!(probe <= Instant::now() + WAITS.first);
    }

    #[test]
    fn d12_librdkafka_is_given_a_bounded_number_of_records() {
        let (mut state, ours) = (State::default(), Arc::default());
        accept(&mut state, &ours);
        state.under_way = UNDER_WAY;
        assert!(state.take_next().is_none());
        state.under_way -= 1;
        assert!(state.take_next().is_some());
    }
}
