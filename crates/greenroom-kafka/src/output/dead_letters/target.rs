//! The topic as a target of requests. Each letter is one, and a batch of its own: a broker's answer
//! applies to this letter only, and a refused one holds up no other.

use std::{sync::Arc, time::Duration};

use greenroom::Backoff;
use greenroom_bus::{
    event::Event,
    sink::remote::{Attempted, Remote, RequestPace, TargetHad, WaitingEvent},
};
use parking_lot::Mutex;
use rdkafka::{
    ClientContext,
    config::{FromClientConfigAndContext, RDKafkaLogLevel},
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer},
};
use tokio::{sync::oneshot, time::timeout};

use super::{
    super::{driver::REFUSED, shared::Meaning},
    letter::{Content, Letter, LetterResult, PendingLetter},
    reader::Readers,
};
use crate::{
    client::{self, advice, code},
    connection::Access,
    unusable::Unusable,
};

/// A letter that is under way for this long has met brokers that do not answer.
const SLOW: Duration = Duration::from_secs(2);

/// Between two attempts at a letter.
const WAITS: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// Letters that are read again or under way at once. Those that wait for an answer of slow brokers
/// do not count.
const CONCURRENCY: usize = 1_000;

/// Defaults that we set for librdkafka.
const DEFAULTS: [(&str, &str); 2] = [
    // The topic decides how large a record may be: a letter is a record that was taken before, and
    // its headers.
    ("message.max.bytes", "1000000000"),
    // How long a missing topic is looked for before that is reported.
    ("topic.metadata.propagation.max.ms", "5000"),
];

pub(super) struct LetterTarget {
    pub(super) name: String,
    topic: String,
    producer: ThreadedProducer<LetterContext>,
    pub(super) readers: Readers,
}

/// # Errors
/// An option cannot be used; in words for an operator.
pub(super) fn producer<P>(name: &str, access: &Access) -> Result<P, Unusable>
where
    P: FromClientConfigAndContext<LetterContext>,
{
    let ours = [
        ("enable.idempotence", "true".to_owned()),
        // Records that brokers do not answer are sent again for as long as it takes.
        ("message.timeout.ms", "0".to_owned()),
        ("batch.num.messages", "1".to_owned()),
        ("linger.ms", "0".to_owned()),
    ];
    let context = LetterContext { name: name.to_owned(), said: Mutex::default() };
    client::config(access, &ours, &REFUSED, &DEFAULTS)?
        .create_with_context(context)
        .map_err(|error| client::creation_error(error, &access.properties))
}

pub(super) struct LetterContext {
    name: String,
    /// The client's last message since the last answer, and whether an operator has to correct
    /// something.
    said: Mutex<Option<(String, bool)>>,
}

impl ClientContext for LetterContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(&self.name, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = code(&error);
        let is_paused = Meaning::from_code(code) == Meaning::Pauses;
        // That all brokers are lost follows from that none has let us in.
        if is_paused || code != RDKafkaErrorCode::AllBrokersDown {
            *self.said.lock() = Some((format!("{reason}{}", advice(code)), is_paused));
        }
    }
}

impl ProducerContext for LetterContext {
    type DeliveryOpaque = Box<oneshot::Sender<LetterResult>>;

    fn delivery(&self, result: &DeliveryResult<'_>, answer: Self::DeliveryOpaque) {
        *self.said.lock() = None;
        // Without its store, a letter wants no answer.
        let _ = answer.send(result.as_ref().map(drop).map_err(|(error, _)| code(error)));
    }
}

impl Remote for LetterTarget {
    type Kept = Arc<Mutex<Letter>>;

    fn describe(&self) -> String {
        self.name.clone()
    }

    fn keep(&self, _: Event, _: Option<u64>) -> Self::Kept {
        unreachable!("letters are published, and no events")
    }

    fn pace(&self) -> RequestPace {
        RequestPace { concurrency: CONCURRENCY, batching: None, backoff: WAITS, probe: WAITS }
    }

    async fn attempt(&self, letters: &[WaitingEvent<Self::Kept>]) -> Attempted {
        let letter = &letters[0].kept;
        let is_read = letter.lock().content.is_some();
        if !is_read {
            match self.readers.read(letter).await {
                Some(Ok(())) => {}
                Some(Err(why)) => return failed(why),
                None => {
                    let why = "its thread panicked; see the log, and please report this";
                    return Attempted::Ended(why.to_owned());
                }
            }
        }
        let under_way = letter.lock().under_way.take();
        let sent = under_way.map_or_else(|| self.send(&letter.lock()), Ok);
        let told = match sent {
            Ok(mut answered) => match timeout(SLOW, &mut answered).await {
                Ok(told) => told.unwrap_or(Err(RDKafkaErrorCode::Fail)),
                // librdkafka sends it for as long as it takes.
                Err(_) => {
                    letter.lock().under_way = Some(answered);
                    return self.unanswered();
                }
            },
            Err(code) => Err(code),
        };
        match told {
            Ok(()) => Attempted::Stored,
            Err(code) => self.refused(&letter.lock(), code),
        }
    }
}

impl LetterTarget {
    /// # Errors
    /// An option cannot be used, or there is no thread; in words for an operator.
    pub(super) fn new(name: &str, topic: &str, access: &Access) -> Result<Self, Unusable> {
        let (producer, readers) = (producer(name, access)?, Readers::begin()?);
        Ok(Self { name: name.to_owned(), topic: topic.to_owned(), producer, readers })
    }

    fn send(&self, letter: &Letter) -> Result<PendingLetter, RDKafkaErrorCode> {
        let content = letter.content.as_ref().ok_or(RDKafkaErrorCode::Fail)?;
        let (answer, answered) = oneshot::channel();
        // librdkafka copies all of it.
        let record = BaseRecord::<[u8], [u8], _> {
            key: content.key.as_deref(),
            payload: content.value.as_deref(),
            headers: Some(content.headers()),
            ..BaseRecord::with_opaque_to(&self.topic, Box::new(answer))
        };
        self.producer.send(record).map(|()| answered).map_err(|(error, _)| code(&error))
    }

    /// The brokers have said nothing of a letter for a while.
    fn unanswered(&self) -> Attempted {
        match self.producer.context().said.lock().clone() {
            Some((error, true)) => Attempted::Misconfigured(error),
            Some((error, false)) => failed(error),
            None => failed("the brokers have not answered yet".to_owned()),
        }
    }

    /// It is tried again later.
    fn refused(&self, letter: &Letter, code: RDKafkaErrorCode) -> Attempted {
        if let Some((code, reason)) = self.producer.client().fatal_error() {
            return Attempted::Ended(format!(
                "the producer cannot go on, and has to be started again: {code}: {reason}"
            ));
        }
        let (what, topic) = (letter.described(), &self.topic);
        let bytes = letter.content.as_ref().map_or(0, Content::bytes);
        let error = format!("topic {topic} does not take {what}: {code}{}", advice(code));
        match Meaning::from_code(code) {
            Meaning::Rejected => Attempted::Refused(format!(
                "topic {topic} does not take {what} ({bytes} bytes): {code}; correct the topic \
                 (its `max.message.bytes`, where it is too large): the letter is tried again, and \
                 its event stays open"
            )),
            Meaning::Pauses => Attempted::Misconfigured(error),
            Meaning::Again => failed(error),
        }
    }
}

/// It may pass.
fn failed(error: String) -> Attempted {
    Attempted::Failed { error, after: None, had: TargetHad::Nothing }
}
