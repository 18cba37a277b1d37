//! What is accepted and not settled, and what holds it up.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use greenroom_bus::{
    event::Event,
    settlement::Ack,
    sink::{SinkError, Trouble},
};
use parking_lot::Mutex;
use rdkafka::error::RDKafkaErrorCode;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{options::KafkaSinkOptions, record::Record};

/// What is accepted and not settled takes at most this many bytes.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
/// And is at most so many events: each takes at least its share of [`ROOM_BYTES`].
const ROOM_EVENTS: usize = 16_384;

/// Between two attempts at what was refused: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// A record on its way. It gives its room back when it is dropped.
pub(super) struct Sent {
    pub(super) record: Record,
    pub(super) ack: Ack,
    /// In the order of acceptance.
    pub(super) number: u64,
    /// Nothing else was under way: what a broker says of its batch, it says of this record.
    pub(super) is_alone: bool,
    pub(super) _room: OwnedSemaphorePermit,
}

pub(super) struct Shared {
    pub(super) name: String,
    pub(super) options: KafkaSinkOptions,
    pub(super) state: Mutex<State>,
    /// One permit is one byte. Closed when nothing is published any more.
    pub(super) room: Arc<Semaphore>,
    /// True once all that was accepted is settled, and nothing is accepted any more.
    pub(super) ended: watch::Sender<bool>,
}

#[derive(Default)]
pub(super) struct State {
    /// Not with librdkafka, by their numbers.
    pub(super) waiting: VecDeque<Sent>,
    /// With librdkafka.
    pub(super) under_way: usize,
    /// The number of the next.
    pub(super) next: u64,
    /// Of those below this number, something was refused: they are sent one by one.
    pub(super) singly_below: u64,
    /// Nothing is sent before.
    held_until: Option<Instant>,
    holding: Option<Holding>,
    finishes: bool,
    /// The sink was dropped, or cannot go on.
    pub(super) is_over: bool,
    failure: Option<SinkError>,
}

struct Holding {
    since: Instant,
    error: String,
    is_paused: bool,
    attempts: u32,
}

/// What an error means for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It will never be stored.
    Rejected,
    /// Somebody has to correct something.
    Pauses,
    /// It may pass.
    Again,
}

/// An event that is larger than all room takes the whole of it, and so passes alone.
pub(super) fn room_of(event: &Event) -> u32 {
    let bytes = event.approximate_bytes().clamp(ROOM_BYTES / ROOM_EVENTS, ROOM_BYTES);
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Meaning {
    pub(super) fn of(code: RDKafkaErrorCode) -> Self {
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
    pub(super) fn new(name: String, options: KafkaSinkOptions) -> Self {
        Self {
            name,
            options,
            state: Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM_BYTES)),
            ended: watch::Sender::new(false),
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
            self.room.close();
            self.ended.send_replace(true);
        }
    }

    /// Nothing is published any more: what waits is refused.
    pub(super) fn give_up(&self, failure: Option<String>) {
        let mut state = self.state.lock();
        state.is_over = true;
        if let Some(why) = failure {
            state.failure.get_or_insert(SinkError::new(self.name.clone(), why));
        }
        let refused = std::mem::take(&mut state.waiting);
        drop(state);
        self.room.close();
        drop(refused);
        self.ended.send_replace(true);
    }

    pub(super) fn failure(&self) -> Option<SinkError> {
        self.state.lock().failure.clone()
    }

    pub(super) fn trouble(&self) -> Option<Trouble> {
        let state = self.state.lock();
        let Holding { since, error, is_paused, .. } = state.holding.as_ref()?;
        Some(match is_paused {
            true => Trouble::paused(since.elapsed(), error.clone()),
            false => Trouble::failing(since.elapsed(), error.clone()),
        })
    }

    pub(super) fn resume(&self) -> bool {
        let mut state = self.state.lock();
        let is_paused = state.holding.as_ref().is_some_and(|holding| holding.is_paused);
        if is_paused {
            state.held_until = None;
        }
        is_paused
    }

    /// A record was stored.
    pub(super) fn works(&self) {
        let works = self.state.lock().works();
        if works {
            tracing::info!("{}: the output delivers again", self.name);
        }
    }

    /// Something went wrong that may pass, or has to be corrected. Its events wait.
    pub(super) fn fails(&self, error: String, meaning: Meaning) {
        let is_paused = meaning == Meaning::Pauses;
        let is_new = self.state.lock().fails(error.clone(), is_paused);
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

    /// The next that may be sent now.
    pub(super) fn take_next(&mut self) -> Option<Sent> {
        if self.held_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let is_single = self.waiting.front()?.number < self.singly_below;
        if is_single && self.under_way > 0 {
            return None;
        }
        let mut sent = self.waiting.pop_front()?;
        sent.is_alone = is_single;
        Some(sent)
    }

    /// True where that is news.
    fn works(&mut self) -> bool {
        self.held_until = None;
        self.holding.take().is_some()
    }

    /// True where that is news.
    fn fails(&mut self, error: String, is_paused: bool) -> bool {
        let now = Instant::now();
        let known = self.holding.as_ref();
        let is_new = known.is_none_or(|known| !known.is_paused && is_paused);
        let (since, attempts) = known.map_or((now, 0), |known| (known.since, known.attempts + 1));
        let wait = FIRST_WAIT.saturating_mul(1 << attempts.min(10)).min(LONGEST_WAIT);
        self.held_until = Some(now + wait);
        self.holding = Some(Holding { since, error, is_paused, attempts });
        is_new
    }
}
