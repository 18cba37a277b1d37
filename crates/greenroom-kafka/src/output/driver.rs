//! The producer, and the thread that hears of what it has delivered.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use greenroom_bus::settlement::Ack;
use parking_lot::MutexGuard;
use rdkafka::{
    ClientContext, Message,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    options::KafkaSinkOptions,
    record::Record,
    shared::{Meaning, Sent, Shared, State},
};
use crate::{
    client::{self, advice},
    unusable::Unusable,
};

/// For reports, which wake the thread, so long; for what waits to be sent again, which does not,
/// less.
const IDLE: Duration = Duration::from_millis(100);
const WAITING: Duration = Duration::from_millis(10);

/// What librdkafka does unless it is told otherwise.
const DEFAULTS: [(&str, &str); 3] = [
    // As clients of Java choose, so that records of one key meet those of other producers.
    ("partitioner", "murmur2_random"),
    // Batches of more than one record, at little cost to each.
    ("linger.ms", "5"),
    // How long a topic that is not there is looked for before that is said.
    ("topic.metadata.propagation.max.ms", "5000"),
];

/// The largest record that librdkafka sends, and what that is unless it is set.
const MOST_BYTES: &str = "message.max.bytes";
const MOST_BYTES_DEFAULT: &str = "1000000";

/// Properties that would break a promise: another name of one that is set here, reports of what has
/// failed only, and transactions, which this driver never begins.
const REFUSED: [&str; 3] =
    ["delivery.timeout.ms", "delivery.report.only.error", "transactional.id"];

pub(super) struct OutputContext(Arc<Shared>);

impl ClientContext for OutputContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.failures.log(&self.0.name, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        // A connection that was lost is nothing to speak of while another one is there.
        if code != RDKafkaErrorCode::AllBrokersDown && Meaning::of(code) != Meaning::Pauses {
            return;
        }
        let failure = self.0.failures.last();
        let failure = failure.as_deref().unwrap_or(reason);
        match client::to_correct(failure) {
            Some(next) => self.0.fails(format!("{failure}; {next}"), Meaning::Pauses),
            None => self.0.fails(format!("{failure}{}", advice(code)), Meaning::of(code)),
        }
    }
}

impl ProducerContext for OutputContext {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let shared = &self.0;
        let failed = result.as_ref().err().map(|(error, record)| {
            let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
            (code, record.payload().map_or(0, <[u8]>::len))
        });
        let mut state = shared.state.lock();
        state.under_way -= 1;
        let Some((code, bytes)) = failed else {
            let (is_news, is_done) = (state.works(), state.is_done());
            drop(state);
            shared.tell_works(is_news);
            sent.ack.confirm();
            return shared.tell_done(is_done);
        };
        if state.is_over {
            drop(state);
            // Dropped, it is refused.
            return drop(sent);
        }
        let meaning = Meaning::of(code);
        if meaning == Meaning::Rejected && sent.is_alone {
            let (is_news, is_done) = (state.works(), state.is_done());
            drop(state);
            shared.tell_works(is_news);
            let topic = &shared.options.topic;
            let raise = match code {
                RDKafkaErrorCode::MessageSizeTooLarge => {
                    "; `max.message.bytes` of the topic says how large one may be"
                }
                _ => "",
            };
            sent.ack
                .reject(format!("topic {topic} does not take it ({bytes} bytes): {code}{raise}"));
            return shared.tell_done(is_done);
        }
        state.put_back(*sent);
        drop(state);
        if meaning != Meaning::Rejected {
            shared.fails(format!("{code}{}", advice(code)), meaning);
        }
    }
}

/// What librdkafka itself does not send: no broker has seen it.
fn reject_unsent(sent: Sent, code: RDKafkaErrorCode, options: &KafkaSinkOptions) {
    let bytes = sent.record.value().map_or(0, |value| value.len());
    let topic = &options.topic;
    let why = match code {
        RDKafkaErrorCode::MessageSizeTooLarge => {
            let most = options.properties.get(MOST_BYTES).unwrap_or(MOST_BYTES_DEFAULT);
            format!(
                "it is not sent to topic {topic}: with key and headers, its {bytes} bytes are more than \
                 the {most} that this output sends; raise its `max_message` (property \
                 `{MOST_BYTES}`), and `max.message.bytes` of the topic where that is less"
            )
        }
        code => format!("it is not sent to topic {topic} ({bytes} bytes): {code}"),
    };
    sent.ack.reject(why);
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    producer: Arc<BaseProducer<OutputContext>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// # Errors
    /// What cannot be used, for an operator.
    pub(super) fn begin(shared: &Arc<Shared>) -> Result<Self, Unusable> {
        shared.options.check()?;
        let producer = Arc::new(producer(shared)?);
        let (polled, of) = (producer.clone(), shared.clone());
        let thread = thread::Builder::new()
            .name("kafka-produce".to_owned())
            .spawn(move || drive(&polled, &of))
            .map_err(|error| format!("no thread to hear of deliveries: {error}"))?;
        Ok(Self { shared: shared.clone(), producer, thread: Some(thread) })
    }

    /// Takes a record. It goes to librdkafka at once, unless others wait.
    pub(super) fn push(&self, record: Record, ack: Ack, room: OwnedSemaphorePermit) {
        // Made before, so that others wait for less.
        let headers = Some(record.headers());
        let mut state = self.shared.state.lock();
        if !state.accepts() {
            drop(state);
            // It is refused outside the lock.
            return drop(ack);
        }
        let number = state.next;
        state.next += 1;
        let sent = Sent { record, headers, ack, number, is_alone: false, _room: room };
        state.waiting.push_back(sent);
        pump(&self.producer, &self.shared, state);
    }
}

/// # Errors
/// What cannot be used, for an operator.
pub(super) fn producer(shared: &Arc<Shared>) -> Result<BaseProducer<OutputContext>, Unusable> {
    let options = &shared.options;
    let ours = [
        ("enable.idempotence", "true".to_owned()),
        // What brokers do not answer is sent again for as long as it takes.
        ("message.timeout.ms", "0".to_owned()),
    ];
    client::config(&options.brokers, &options.properties, &ours, &REFUSED, &DEFAULTS)?
        .create_with_context(OutputContext(shared.clone()))
        .map_err(|error| client::creation_error(error, &options.properties))
}

impl Drop for Driver {
    /// What is not settled is refused.
    fn drop(&mut self) {
        self.shared.give_up(None);
        if let Some(thread) = self.thread.take() {
            // It never panics, and ends within a tenth of a second.
            let _ = thread.join();
        }
    }
}

fn drive(producer: &BaseProducer<OutputContext>, shared: &Shared) {
    loop {
        let (is_over, waits) = {
            let state = shared.state.lock();
            (state.is_over, !state.waiting.is_empty())
        };
        if is_over {
            return;
        }
        producer.poll(if waits { WAITING } else { IDLE });
        if let Some((code, reason)) = producer.client().fatal_error() {
            return shared.give_up(Some(format!(
                "the producer cannot go on, and has to be started again: {code}: {reason}"
            )));
        }
        pump(producer, shared, shared.state.lock());
    }
}

/// Gives librdkafka what may be sent. Under the lock, so that all goes in order.
fn pump(producer: &BaseProducer<OutputContext>, shared: &Shared, mut state: MutexGuard<'_, State>) {
    let (mut rejected, revoked) = (Vec::new(), state.take_revoked());
    while let Some(sent) = state.take_next() {
        match send(producer, &shared.options, sent) {
            Ok(()) => state.under_way += 1,
            Err((code, sent)) if Meaning::of(code) == Meaning::Rejected => {
                rejected.push((code, sent));
            }
            // Its queue is full, for now.
            Err((_, sent)) => {
                state.waiting.push_front(sent);
                break;
            }
        }
    }
    drop(state);
    if rejected.is_empty() && revoked.is_empty() {
        return;
    }
    // They are refused outside the lock.
    drop(revoked);
    for (code, sent) in rejected {
        reject_unsent(sent, code, &shared.options);
    }
    let is_done = shared.state.lock().is_done();
    shared.tell_done(is_done);
}

fn send(
    producer: &BaseProducer<OutputContext>,
    options: &KafkaSinkOptions,
    mut sent: Sent,
) -> Result<(), (RDKafkaErrorCode, Sent)> {
    let content = sent.record.clone();
    let headers = sent.headers.take().unwrap_or_else(|| content.headers());
    // librdkafka copies both.
    let (key, value) = (content.key(options.key.as_ref()), content.value());
    let mut record = BaseRecord::<[u8], [u8], _>::with_opaque_to(&options.topic, Box::new(sent))
        .headers(headers);
    if let Some(timestamp) = content.timestamp() {
        record = record.timestamp(timestamp);
    }
    if let Some(key) = &key {
        record = record.key(key);
    }
    if let Some(value) = &value {
        record = record.payload(value);
    }
    producer.send(record).map_err(|(error, record)| {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail);
        (code, Sent { headers: record.headers, ..*record.delivery_opaque })
    })
}
