//! The thread that reads records again, publishes letters, and receives the results.
//!
//! A letter is a batch of its own: a broker's answer applies to this letter only, and a refused one
//! blocks no other.

use std::{
    cmp::Reverse,
    collections::HashMap,
    mem,
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use super::{
    super::shared::Meaning,
    letter::{Content, Letter},
    reader::RecordReader,
    shared::{Arrived, Shared},
};
use crate::{
    client::{self, advice},
    connection::Access,
    unusable::Unusable,
};

/// Between looks, with nothing under way, and with something.
const IDLE: Duration = Duration::from_millis(100);
const BUSY: Duration = Duration::from_millis(10);

/// Records are read again for this long before letters are published in between.
const READING: Duration = Duration::from_millis(200);

/// Between two attempts at a letter: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The same trouble is logged at most this often.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Defaults that we set for librdkafka.
const DEFAULTS: [(&str, &str); 2] = [
    // The topic decides how large a record may be: a letter is a record that was taken before, and
    // its headers.
    ("message.max.bytes", "1000000000"),
    // How long a missing topic is looked for before that is reported.
    ("topic.metadata.propagation.max.ms", "5000"),
];

/// Properties that would break a promise.
const REFUSED: [&str; 3] =
    ["delivery.timeout.ms", "delivery.report.only.error", "transactional.id"];

/// Ends its thread when it is dropped.
pub(super) struct LetterDriver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LetterDriver {
    /// # Errors
    /// An option cannot be used; in words for an operator.
    pub(super) fn begin(shared: &Arc<Shared>, access: &Access) -> Result<Self, Unusable> {
        let mut drives = Drive {
            shared: shared.clone(),
            producer: producer(shared, access)?,
            readers: HashMap::new(),
            unread: Vec::new(),
            waiting: Vec::new(),
            under_way: 0,
            next: 0,
            told: None,
        };
        let thread = thread::Builder::new()
            .name("kafka-letters".to_owned())
            .spawn(move || drives.run())
            .map_err(|error| format!("no thread to publish letters on: {error}"))?;
        shared.is_driven_by(thread.thread());
        Ok(Self { shared: shared.clone(), thread: Some(thread) })
    }
}

impl Drop for LetterDriver {
    /// Unstored letters are refused.
    fn drop(&mut self) {
        self.shared.give_up(None);
        if let Some(thread) = self.thread.take() {
            // It looks every tenth of a second. A panic of it was told by its end.
            let _ = thread.join();
        }
    }
}

/// # Errors
/// An option cannot be used; in words for an operator.
pub(super) fn producer(
    shared: &Arc<Shared>,
    access: &Access,
) -> Result<BaseProducer<LetterContext>, Unusable> {
    let ours = [
        ("enable.idempotence", "true".to_owned()),
        // Records that brokers do not answer are sent again for as long as it takes.
        ("message.timeout.ms", "0".to_owned()),
        ("batch.num.messages", "1".to_owned()),
        ("linger.ms", "0".to_owned()),
    ];
    let context = LetterContext { shared: shared.clone(), told: Mutex::default() };
    client::config(access, &ours, &REFUSED, &DEFAULTS)?
        .create_with_context(context)
        .map_err(|error| client::creation_error(error, &access.properties))
}

/// The result for a letter.
type ToldLetter = (Box<Letter>, Result<(), RDKafkaErrorCode>);

pub(super) struct LetterContext {
    shared: Arc<Shared>,
    told: Mutex<Vec<ToldLetter>>,
}

impl ClientContext for LetterContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(&self.shared.name, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        let is_paused = Meaning::from_code(code) == Meaning::Pauses;
        // That all brokers are lost follows from that none has let us in.
        if is_paused || code != RDKafkaErrorCode::AllBrokersDown {
            self.shared.says(format!("{reason}{}", advice(code)), is_paused);
        }
    }
}

impl ProducerContext for LetterContext {
    type DeliveryOpaque = Box<Letter>;

    fn delivery(&self, result: &DeliveryResult<'_>, letter: Box<Letter>) {
        let code =
            |error: &KafkaError| error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        let how = result.as_ref().map(drop).map_err(|(error, _)| code(error));
        self.told.lock().push((letter, how));
    }
}

struct Drive {
    shared: Arc<Shared>,
    producer: BaseProducer<LetterContext>,
    /// By the names of their inputs.
    readers: HashMap<Arc<str>, RecordReader>,
    /// Their records have to be read again.
    unread: Vec<Letter>,
    /// To be published.
    waiting: Vec<Letter>,
    /// With librdkafka.
    under_way: usize,
    /// The number of the next.
    next: u64,
    /// When trouble was told last, while it lasts.
    told: Option<Instant>,
}

impl Drive {
    fn run(&mut self) {
        let _end = End(self.shared.clone());
        loop {
            let Arrived { letters, readers, finishes, is_over } = self.shared.take();
            if is_over {
                return;
            }
            self.readers.extend(readers);
            self.sort(letters);
            self.read();
            self.publish();
            self.hear();
            if let Some((code, reason)) = self.producer.client().fatal_error() {
                return self.shared.give_up(Some(format!(
                    "the producer cannot go on, and has to be started again: {code}: {reason}"
                )));
            }
            self.tell();
            if finishes && self.unread.is_empty() && self.waiting.is_empty() && self.under_way == 0
            {
                return;
            }
            self.wait();
        }
    }

    /// Letters whose records can be read again, and others.
    fn sort(&mut self, letters: Vec<greenroom_bus::dead_letter::DeadLetter>) {
        if letters.is_empty() {
            return;
        }
        for letter in letters {
            let mut letter = Letter::new(self.next, letter);
            self.next += 1;
            match letter.place.is_some() && self.readers.contains_key(&letter.letter.input) {
                true => self.unread.push(letter),
                false => {
                    letter.is_json(None);
                    self.waiting.push(letter);
                }
            }
        }
        // In the order of the log, so that they are read in one go: the last is taken first.
        self.unread.sort_by_cached_key(|of| {
            Reverse((of.letter.input.clone(), of.place.clone(), of.letter.position))
        });
    }

    fn read(&mut self) {
        let begun = Instant::now();
        let mut held = Vec::new();
        while begun.elapsed() < READING
            && let Some(mut letter) = self.unread.pop()
        {
            let reader = self.readers.get_mut(&letter.letter.input);
            let Some(reader) = reader.filter(|reader| !reader.is_held(Instant::now())) else {
                held.push(letter);
                continue;
            };
            let idle = || {
                self.producer.poll(Duration::ZERO);
                !self.shared.is_over()
            };
            match reader.read(&mut letter, idle) {
                Ok(()) => {
                    self.shared.works(letter.number);
                    self.waiting.push(letter);
                }
                Err(why) => {
                    self.shared.fails(letter.number, why, false);
                    held.push(letter);
                }
            }
        }
        held.reverse();
        self.unread.append(&mut held);
    }

    fn publish(&mut self) {
        let now = Instant::now();
        let mut later = Vec::new();
        let mut waiting = mem::take(&mut self.waiting).into_iter();
        for letter in waiting.by_ref() {
            if !letter.is_due(now) {
                later.push(letter);
                continue;
            }
            match send(&self.producer, &self.shared.topic, letter) {
                Ok(()) => self.under_way += 1,
                // Its queue is full, for now.
                Err((RDKafkaErrorCode::QueueFull, letter)) => {
                    later.push(*letter);
                    break;
                }
                Err((code, letter)) => later.push(self.failed(*letter, code)),
            }
        }
        later.extend(waiting);
        self.waiting = later;
        self.shared.awaits(self.under_way > 0);
    }

    /// Takes the brokers' answers.
    fn hear(&mut self) {
        self.producer.poll(Duration::ZERO);
        let told = mem::take(&mut *self.producer.context().told.lock());
        if told.is_empty() {
            return;
        }
        self.under_way -= told.len();
        self.shared.is_answered();
        for (letter, how) in told {
            match how {
                Ok(()) => {
                    self.shared.works(letter.number);
                    letter.letter.ack.confirm();
                }
                Err(code) => {
                    let letter = self.failed(*letter, code);
                    self.waiting.push(letter);
                }
            }
        }
        self.shared.awaits(self.under_way > 0);
    }

    /// It is tried again later.
    fn failed(&self, mut letter: Letter, code: RDKafkaErrorCode) -> Letter {
        let meaning = Meaning::from_code(code);
        let (what, topic) = (letter.described(), &self.shared.topic);
        let bytes = letter.content.as_ref().map_or(0, Content::bytes);
        let error = match meaning {
            Meaning::Rejected => format!(
                "topic {topic} does not take {what} ({bytes} bytes): {code}; correct the topic \
                 (its `max.message.bytes`, where it is too large): the letter is tried again, and \
                 its event stays open"
            ),
            _ => format!("topic {topic} does not take {what}: {code}{}", advice(code)),
        };
        self.shared.fails(letter.number, error, meaning != Meaning::Again);
        let wait = FIRST_WAIT.saturating_mul(1 << letter.failures.min(10)).min(LONGEST_WAIT);
        letter.failures += 1;
        letter.due = Some(Instant::now() + wait);
        letter
    }

    fn tell(&mut self) {
        let name = &self.shared.name;
        match (self.shared.trouble(), self.told) {
            (None, None) => {}
            (None, Some(_)) => {
                tracing::info!("{name}: dead letters are stored again");
                self.told = None;
            }
            (Some(_), Some(told)) if told.elapsed() < TOLD_EVERY => {}
            (Some(trouble), _) => {
                tracing::warn!(
                    "{name}: dead letters wait, and their events with them: {}",
                    trouble.error
                );
                self.told = Some(Instant::now());
            }
        }
    }

    /// For something to come.
    fn wait(&self) {
        if self.under_way > 0 {
            // It comes back with the first report.
            self.producer.poll(BUSY);
        } else if self.unread.is_empty() && self.waiting.is_empty() {
            thread::park_timeout(IDLE);
        } else {
            let now = Instant::now();
            let is_ready = |letter: &Letter| letter.is_due(now);
            let is_read = |letter: &Letter| {
                self.readers.get(&letter.letter.input).is_some_and(|reader| !reader.is_held(now))
            };
            if !self.waiting.iter().any(is_ready) && !self.unread.iter().any(is_read) {
                thread::park_timeout(IDLE);
            }
        }
    }
}

fn send(
    producer: &BaseProducer<LetterContext>,
    topic: &str,
    letter: Letter,
) -> Result<(), (RDKafkaErrorCode, Box<Letter>)> {
    let mut letter = Box::new(letter);
    // It has a content since it was read; it goes back into the letter below.
    let Some(content) = letter.content.take() else {
        return Err((RDKafkaErrorCode::Fail, letter));
    };
    let headers = content.headers();
    // librdkafka copies both.
    let (key, value) = (content.key.clone(), content.value.clone());
    letter.content = Some(content);
    let mut record = BaseRecord::<[u8], [u8], _>::with_opaque_to(topic, letter).headers(headers);
    if let Some(key) = &key {
        record = record.key(key);
    }
    if let Some(value) = &value {
        record = record.payload(value);
    }
    producer.send(record).map_err(|(error, record)| {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        (code, record.delivery_opaque)
    })
}

/// However the thread ends, nothing that came or comes later waits for ever.
struct End(Arc<Shared>);

impl Drop for End {
    fn drop(&mut self) {
        let panicked = "its thread panicked; see the log, and please report this".to_owned();
        self.0.give_up(thread::panicking().then_some(panicked));
        self.0.has_ended();
    }
}
