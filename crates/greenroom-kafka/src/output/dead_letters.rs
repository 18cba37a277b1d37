//! Dead letters to a topic (D06).
//!
//! ```text
//! letter ──▶ of a record? ──read again──▶ the record, as it was, and headers that say why ─┐
//!                 │                                                                        ├─▶ broker ── stored ──▶ confirmed
//!                 └── of another source, or the record is gone ──▶ the letter, as JSON ────┘
//!                                                              refused, no answer: again, after a backoff
//! ```

mod letter;
mod reader;
mod target;

use std::{fmt, mem, sync::Arc};

use greenroom_bus::{
    BoxFuture,
    dead_letter::{DeadLetter, DeadLetterStore},
    record::Mapping,
    settlement::Ack,
    sink::{
        SinkError, Trouble,
        remote::{RemoteDriver, Requests, SinkRoom},
    },
    source::{InputKind, InputSetup},
};
use greenroom_config::Word;
use parking_lot::Mutex;
use rdkafka::producer::BaseProducer;

use self::{letter::Letter, reader::RecordReader, target::LetterTarget};
use crate::{
    connection::Access,
    options::{KafkaInput, KafkaLetters},
    source::SourceSetup,
    topic::check_name,
    unusable::Unusable,
};

/// Publishes each dead letter to a topic.
///
/// A letter of a record of Kafka, of an [input that it was told of](Self::input), is that record:
/// key, value and headers as they were, read again from its topic. Behind the headers that it had
/// there are others, which begin with `greenroom_letter`, whose value is `record`.
///
/// A letter from another source, or for a record that retention or compaction has removed, or whose
/// offset has another record since its topic was recreated, is JSON with the fields of a line of a
/// [file](greenroom_bus::dead_letter::file::FileDeadLetterStore); its key is the one by which its
/// handler orders it, and `greenroom_letter` is `json`.
///
/// | header | |
/// |---|---|
/// | `greenroom_topic`, `greenroom_partition`, `greenroom_offset` | where the record was |
/// | `greenroom_source`, `greenroom_position` | where it was, of another source |
/// | `greenroom_reason`, `greenroom_error`, `greenroom_attempts` | why it is here; of the error at most 512 bytes |
/// | `greenroom_input`, `greenroom_pool`, `greenroom_handler` | by which input it came, and which pool and handler it has reached |
/// | `greenroom_trace_id` | the trace that its event belongs to |
/// | `greenroom_first_at`, `greenroom_last_at` | when it was taken, and when it was given up: RFC 3339 |
/// | `greenroom_rejected_by` | what outputs have rejected, and why: JSON |
/// | `greenroom_unread` | why the record could not be read again |
///
/// A letter is confirmed when the broker has stored it, and until then its event stays unsettled.
/// Whatever the reason for a refusal, the letter waits and is retried: a letter is never given up
/// or cut. [`trouble`](DeadLetterStore::trouble) names the correction: for a record that is too
/// large for the topic, its `max.message.bytes`. Letters behind it continue. When dropped, the
/// store refuses all unstored letters.
///
/// [`redrive`](crate::redrive()) sends the records back to their topics.
pub struct KafkaDeadLetters {
    requests: Requests<LetterTarget>,
}

impl KafkaDeadLetters {
    /// Publishes by these options, on the runtime that this is called on. It connects in the
    /// background: brokers that do not answer are tried again.
    ///
    /// # Errors
    /// An option or a property cannot be used, or there is no runtime. Values of properties are not
    /// shown.
    pub fn open(letters: &KafkaLetters) -> Result<Self, SinkError> {
        let (name, topic) = (format!("kafka:{}", letters.topic), &letters.topic);
        let target = access(letters).and_then(|access| LetterTarget::new(&name, topic, &access));
        let target = target.map_err(|error| SinkError::new(&name, error.why))?;
        // The engine bounds the letters on their way, so they take no room.
        Ok(Self { requests: Requests::begin(target, SinkRoom::new(1, 1))? })
    }

    /// Whether [`open`](Self::open) would take these options. No broker is asked; files that
    /// properties name are read.
    ///
    /// # Errors
    /// An option cannot be used. Values of properties are not shown.
    pub fn check(letters: &KafkaLetters) -> Result<(), Unusable> {
        let access = access(letters)?.disconnected();
        check_name("topic", &letters.topic)?;
        target::producer::<BaseProducer<_>>("", &access).map(drop)
    }

    /// The options of the input of this name, and the rule for its records: the records of its
    /// letters are read again with them. They replace earlier ones for the same name.
    ///
    /// # Errors
    /// A property cannot be used.
    pub fn input(
        &self,
        name: impl Into<Arc<str>>,
        input: &KafkaInput,
        records: Option<Mapping>,
    ) -> Result<(), SinkError> {
        let LetterTarget { name: store, readers, .. } = self.requests.remote();
        let setup = SourceSetup::new(input.clone(), records);
        let reader = setup.and_then(|setup| RecordReader::new(store, setup));
        readers.add(name.into(), reader.map_err(|error| SinkError::new(store, error.why))?);
        Ok(())
    }
}

/// # Errors
/// What is missing, or said twice.
fn access(letters: &KafkaLetters) -> Result<Access, Unusable> {
    let access =
        letters.connection().access(&[("compression.type", letters.compression.word())])?;
    match letters.topic.trim() {
        "" => Err("`topic` is empty; name the topic for dead letters".to_owned().into()),
        _ => Ok(access),
    }
}

impl DeadLetterStore for KafkaDeadLetters {
    fn describe(&self) -> String {
        self.requests.describe()
    }

    fn store(&self, mut letter: DeadLetter) {
        let ack = mem::replace(&mut letter.ack, Ack::detached());
        let mut letter = Letter::new(letter);
        if letter.place.is_none() {
            letter.is_json(None);
        }
        self.requests.take(Arc::new(Mutex::new(letter)), ack);
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.requests.finish();
        Box::pin(self.requests.room().ended())
    }

    fn failure(&self) -> Option<SinkError> {
        self.requests.room().failure()
    }

    fn trouble(&self) -> Option<Trouble> {
        self.requests.trouble()
    }

    fn add_input(&self, kind: &dyn InputKind, setup: &InputSetup) -> Result<(), SinkError> {
        let Some(kafka) = kind.as_any().downcast_ref::<KafkaInput>() else { return Ok(()) };
        self.input(setup.name.as_str(), kafka, setup.records.clone())
    }
}

impl fmt::Debug for KafkaDeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaDeadLetters").field("name", &self.describe()).finish_non_exhaustive()
    }
}
