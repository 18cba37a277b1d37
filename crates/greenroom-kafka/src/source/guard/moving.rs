//! Records are read again and published on a thread of its own: a broker takes its time, and the
//! consumer has to be polled meanwhile.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Message, Offset, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, Consumer, ConsumerContext},
    error::{KafkaError, KafkaResult, RDKafkaErrorCode},
    message::{BorrowedMessage, Header, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use super::{
    super::{options::KafkaSourceOptions, place::Place},
    moves::{Moved, Moves},
};
use crate::client::{self, Properties};

/// For a record to come, and for the broker to store what was published.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between looks at whether it has come.
const POLL: Duration = Duration::from_millis(100);

/// Properties that begin so are those of members of a group: a producer has none of them.
const OF_CONSUMERS: [&str; 12] = [
    "auto.offset.",
    "check.crcs",
    "enable.auto.",
    "enable.partition.eof",
    "fetch.",
    "group.",
    "heartbeat.",
    "isolation.level",
    "max.poll.",
    "partition.assignment.",
    "queued.",
    "session.",
];

/// And these a consumer that is no member.
const OF_MEMBERS: [&str; 5] =
    ["group.", "heartbeat.", "max.poll.", "partition.assignment.", "session."];

pub(super) struct Mover {
    asks: mpsc::Sender<Moves>,
    answers: mpsc::Receiver<Moved>,
}

impl Mover {
    /// Begins the thread, which ends with this. It connects when it is first asked.
    ///
    /// # Errors
    /// A property cannot be used, or there is no thread.
    pub(super) fn begin(
        name: &str,
        options: &KafkaSourceOptions,
        topic: &str,
    ) -> Result<Self, String> {
        let clients = Clients::new(name, options, topic)?;
        let (asks, asked) = mpsc::channel::<Moves>();
        let (answer, answers) = mpsc::channel();
        let moves = move || {
            for moves in asked {
                // Nobody listens any more at the end.
                let _ = answer.send(clients.moved(moves));
            }
        };
        thread::Builder::new()
            .name("kafka-guard".to_owned())
            .spawn(moves)
            .map_err(|error| format!("no thread for the head-of-line guard: {error}"))?;
        Ok(Self { asks, answers })
    }

    pub(super) fn ask(&self, moves: Moves) {
        // The thread ends after this.
        let _ = self.asks.send(moves);
    }

    pub(super) fn answer(&self) -> Option<Moved> {
        self.answers.try_recv().ok()
    }
}

/// A consumer that is no member of the group, and a producer.
struct Clients {
    consumer: BaseConsumer<Context>,
    producer: BaseProducer<Context>,
    topic: String,
}

impl Clients {
    fn new(name: &str, options: &KafkaSourceOptions, topic: &str) -> Result<Self, String> {
        let KafkaSourceOptions { brokers, properties, group, .. } = options;
        let context = || Context { name: format!("{name} (guard)"), stored: Mutex::default() };
        let reading = [
            // It is asked for where partitions are assigned by hand, too.
            ("group.id", group.clone()),
            ("enable.auto.commit", "false".to_owned()),
            ("enable.auto.offset.store", "false".to_owned()),
            ("auto.offset.reset", "error".to_owned()),
            // One record is wanted at a time, and soon: after those behind it were fetched as well,
            // librdkafka would not look at another offset for a second.
            ("queued.min.messages", "1".to_owned()),
            ("fetch.queue.backoff.ms", "5".to_owned()),
            ("fetch.message.max.bytes", "65536".to_owned()),
        ];
        let without = |prefixes: &[&str], ours: &[(&str, String)]| -> Properties {
            let is_kept = |name: &&str| {
                let is_ours = ours.iter().any(|(ours, _)| ours == name);
                !is_ours && !prefixes.iter().any(|prefix| name.starts_with(prefix))
            };
            let kept = properties.names().filter(is_kept);
            kept.filter_map(|name| Some((name, properties.get(name)?))).collect()
        };
        let kept = without(&OF_MEMBERS, &reading);
        let consumer = client::config(brokers, &kept, &reading, &[], &[])
            .map_err(|error| error.why)?
            .create_with_context(context())
            .map_err(|error| client::creation_error(error, &kept).why)?;
        let writing = [("enable.idempotence", "true".to_owned())];
        let kept = without(&OF_CONSUMERS, &writing);
        let producer = client::config(brokers, &kept, &writing, &[], &[])
            .map_err(|error| error.why)?
            .create_with_context(context())
            .map_err(|error| client::creation_error(error, &kept).why)?;
        Ok(Self { consumer, producer, topic: topic.to_owned() })
    }

    fn moved(&self, mut moves: Moves) -> Moved {
        let (mut failed, asked) = (None, moves.offsets.len());
        for offset in &moves.offsets {
            match self.publish(&moves.place, *offset) {
                Ok(()) => {}
                // There is nothing to move; those behind it may still be there.
                Err(Failed::Gone(why)) => failed = Some(why),
                Err(Failed::Other(why)) => {
                    failed = Some(why);
                    break;
                }
            }
        }
        // What was published before is stored all the same.
        if let Err(error) = self.producer.flush(PATIENCE) {
            failed.get_or_insert(format!("topic {} does not take them: {error}", self.topic));
        }
        let stored = std::mem::take(&mut *self.producer.context().stored.lock());
        moves.offsets.retain(|offset| stored.offsets.contains(offset));
        let left = (asked - moves.offsets.len()) as u64;
        Moved { moves, left, failed: failed.or(stored.failed) }
    }

    fn publish(&self, place: &Place, offset: u64) -> Result<(), Failed> {
        let unread = |why: &str| format!("{place} at offset {offset} cannot be read again: {why}");
        let gone = || Failed::Gone(unread("retention or compaction has removed it"));
        let other = |error: KafkaError| Failed::Other(unread(&error.to_string()));
        let position = Offset::Offset(i64::try_from(offset).unwrap_or(i64::MAX));
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(&place.topic, place.partition, position)
            .and_then(|()| self.consumer.assign(&list))
            .map_err(other)?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let record = match self.consumer.poll(POLL) {
                None => continue,
                Some(Ok(record)) => record,
                Some(Err(error)) if is_gone(&error) => return Err(gone()),
                Some(Err(error)) => return Err(other(error)),
            };
            let is_of_it = record.topic() == &*place.topic && record.partition() == place.partition;
            match record.offset().unsigned_abs() {
                // What is left of the last one.
                _ if !is_of_it => {}
                before if before < offset => {}
                behind if behind > offset => return Err(gone()),
                _ => {
                    let why = |error| format!("topic {} does not take it: {error}", self.topic);
                    return self.send(&record, offset).map_err(|error| Failed::Other(why(error)));
                }
            }
        }
        Err(Failed::Other(unread(&format!("it has not come within {PATIENCE:?}"))))
    }

    fn send(&self, record: &BorrowedMessage<'_>, offset: u64) -> KafkaResult<()> {
        let (partition, at) = (record.partition().to_string(), offset.to_string());
        let known = record.headers().map_or_else(OwnedHeaders::new, |headers| headers.detach());
        let ours = [
            ("greenroom_topic", record.topic()),
            ("greenroom_partition", &partition),
            ("greenroom_offset", &at),
            ("greenroom_reason", "head_of_line"),
        ];
        let headers = ours.into_iter().fold(known, |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value) })
        });
        let mut sent = BaseRecord::<[u8], [u8], _>::with_opaque_to(&self.topic, Box::new(offset))
            .headers(headers);
        if let Some(key) = record.key() {
            sent = sent.key(key);
        }
        if let Some(payload) = record.payload() {
            sent = sent.payload(payload);
        }
        self.producer.send(sent).map_err(|(error, _)| error)
    }
}

/// Why a record was not published.
enum Failed {
    /// The broker has it no more.
    Gone(String),
    Other(String),
}

/// What a consumer says of an offset below the oldest record.
fn is_gone(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::AutoOffsetReset)
}

struct Context {
    name: String,
    stored: Mutex<Stored>,
}

/// What the broker has answered.
#[derive(Default)]
struct Stored {
    offsets: Vec<u64>,
    failed: Option<String>,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(&self.name, level, facility, message);
    }
}

impl ConsumerContext for Context {}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<u64>;

    fn delivery(&self, result: &DeliveryResult<'_>, offset: Box<u64>) {
        let mut stored = self.stored.lock();
        match result {
            Ok(_) => stored.offsets.push(*offset),
            Err((error, record)) => {
                let why = format!("topic {} does not take them: {error}", record.topic());
                stored.failed.get_or_insert(why);
            }
        }
    }
}
