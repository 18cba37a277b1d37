//! Records are read again and published on a separate thread: a broker takes its time, and the
//! consumer has to be polled throughout.

use std::{sync::mpsc, thread, time::Duration};

use parking_lot::Mutex;
use rdkafka::{
    ClientContext, Message,
    config::RDKafkaLogLevel,
    error::KafkaResult,
    message::{BorrowedMessage, OwnedHeaders},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};

use super::{
    super::setup::SourceSetup,
    moves::{Moved, Moves},
};
use crate::{
    again::{self, Again, From, Unread},
    client,
    marks::{self, Form, Marks},
};

/// The timeout for a record to come, and for the broker to store a published one.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Mover {
    asks: mpsc::Sender<Moves>,
    answers: mpsc::Receiver<Moved>,
}

impl Mover {
    /// Begins the thread, which ends with this. It connects when it is first asked.
    ///
    /// # Errors
    /// A property cannot be used, or there is no thread.
    pub(super) fn begin(name: &str, setup: &SourceSetup, topic: &str) -> Result<Self, String> {
        let mut clients = Clients::new(name, setup, topic)?;
        let (asks, asked) = mpsc::channel::<Moves>();
        let (answer, answers) = mpsc::channel();
        let moves = move || {
            for moves in asked {
                // The receiver is gone at the end.
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
    again: Again,
    producer: BaseProducer<MoveContext>,
    topic: String,
}

impl Clients {
    fn new(name: &str, setup: &SourceSetup, topic: &str) -> Result<Self, String> {
        let access = &setup.access;
        let name = format!("{name} (guard)");
        let again = Again::new(name.clone(), From { access, group: &setup.input.group });
        let again = again.map_err(|error| error.why)?;
        let ours = [("enable.idempotence", "true".to_owned())];
        let kept = again::writing(access, &ours);
        let producer = client::config(&kept, &ours, &[], &[])
            .map_err(|error| error.why)?
            .create_with_context(MoveContext { name, stored: Mutex::default() })
            .map_err(|error| client::creation_error(error, &kept.properties).why)?;
        Ok(Self { again, producer, topic: topic.to_owned() })
    }

    fn moved(&mut self, mut moves: Moves) -> Moved {
        let (mut failed, asked) = (None, moves.offsets.len());
        for offset in &moves.offsets {
            let (producer, topic) = (&self.producer, &self.topic);
            let send = |record: &BorrowedMessage<'_>| {
                // In a recreated topic, another record is there. Of the read ones, only their times
                // are known here.
                let was_read = record.timestamp().to_millis().is_none_or(|at| at <= moves.latest);
                was_read.then(|| send(producer, topic, record))
            };
            match self.again.read(&moves.place, *offset, PATIENCE, || true, send) {
                Ok(Ok(())) => {}
                // There is nothing to move; those behind it may still be there.
                Err(Unread::Gone(why)) => failed = Some(why),
                Err(Unread::Other(why)) => {
                    failed = Some(why);
                    break;
                }
                Ok(Err(error)) => {
                    failed = Some(format!("topic {topic} does not take it: {error}"));
                    break;
                }
            }
        }
        // Records that were published before are stored all the same.
        if let Err(error) = self.producer.flush(PATIENCE) {
            failed.get_or_insert(format!("topic {} does not take them: {error}", self.topic));
        }
        let stored = std::mem::take(&mut *self.producer.context().stored.lock());
        moves.offsets.retain(|offset| stored.offsets.contains(offset));
        let left = (asked - moves.offsets.len()) as u64;
        Moved { moves, left, failed: failed.or(stored.failed) }
    }
}

fn send(
    producer: &BaseProducer<MoveContext>,
    topic: &str,
    record: &BorrowedMessage<'_>,
) -> KafkaResult<()> {
    let known = record.headers().map_or_else(OwnedHeaders::new, |headers| headers.detach());
    let marks = Marks::default()
        .with(marks::TOPIC, record.topic())
        .with(marks::PARTITION, &record.partition().to_string())
        .with(marks::OFFSET, &record.offset().to_string())
        .with(marks::REASON, "head_of_line");
    let offset = Box::new(record.offset().unsigned_abs());
    let sent = BaseRecord::<[u8], [u8], _> {
        key: record.key(),
        payload: record.payload(),
        headers: Some(marks.behind(known, Form::Record)),
        ..BaseRecord::with_opaque_to(topic, offset)
    };
    producer.send(sent).map_err(|(error, _)| error)
}

struct MoveContext {
    name: String,
    stored: Mutex<Stored>,
}

/// The broker's answer.
#[derive(Default)]
struct Stored {
    offsets: Vec<u64>,
    failed: Option<String>,
}

impl ClientContext for MoveContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        client::log(&self.name, level, facility, message);
    }
}

impl ProducerContext for MoveContext {
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
