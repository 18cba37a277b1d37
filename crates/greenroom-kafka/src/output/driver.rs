//! The producer, and the thread that gives it records and receives the results.

use std::{
    collections::VecDeque,
    iter,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use greenroom_bus::sink::{
    Outgoing, Trouble,
    remote::{RemoteDriver, SinkRoom},
};
use rdkafka::{
    ClientContext, Message,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext},
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    record::Record,
    setup::OutputSetup,
    shared::{Meaning, Sent, Shared},
};
use crate::{
    client::{self, advice, code},
    options::KafkaOutput,
    unusable::Unusable,
};

/// The poll interval of librdkafka while nothing is under way, and, shorter, while records wait to
/// be sent again. New records wake the thread.
const IDLE: Duration = Duration::from_millis(100);
const WAITING: Duration = Duration::from_millis(10);

/// The interval between looks at results and new records while anything is under way. librdkafka
/// itself collects batches for longer than that.
const TURN: Duration = Duration::from_millis(1);

/// After this many looks in a row without a result, the next ones are `WAITING` apart: a broker
/// that does not answer does not cost a thousand wake-ups a second.
const TURNS: u64 = 100;

/// Defaults that we set for librdkafka.
const DEFAULTS: [(&str, &str); 3] = [
    // As clients of Java choose, so that records of one key meet those of other producers.
    ("partitioner", "murmur2_random"),
    // Batches of more than one record, at little cost to each.
    ("linger.ms", "5"),
    // How long a missing topic is looked for before that is reported.
    ("topic.metadata.propagation.max.ms", "5000"),
];

/// Properties that would break a promise: an alias of one that is set here, reports of failures
/// only, and transactions, which this driver never begins.
pub(super) const REFUSED: [&str; 3] =
    ["delivery.timeout.ms", "delivery.report.only.error", "transactional.id"];

pub(super) struct OutputContext(Arc<Shared>);

impl ClientContext for OutputContext {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.0.failures.log(&self.0.name, level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = code(&error);
        // A connection that was lost is nothing to speak of while another one is there.
        if code != RDKafkaErrorCode::AllBrokersDown && Meaning::from_code(code) != Meaning::Pauses {
            return;
        }
        let failure = self.0.failures.last();
        let failure = failure.as_deref().unwrap_or(reason);
        match client::to_correct(failure) {
            Some(next) => self.0.fails(format!("{failure}; {next}"), Meaning::Pauses),
            None => self.0.fails(format!("{failure}{}", advice(code)), Meaning::from_code(code)),
        }
    }
}

impl ProducerContext for OutputContext {
    type DeliveryOpaque = Box<Sent>;

    fn delivery(&self, result: &DeliveryResult<'_>, sent: Box<Sent>) {
        let shared = &self.0;
        let failed = result.as_ref().err();
        let failed =
            failed.map(|(error, record)| (code(error), record.payload().map_or(0, <[u8]>::len)));
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
        let meaning = Meaning::from_code(code);
        if meaning == Meaning::Rejected && sent.is_alone {
            let (is_news, is_done) = (state.works(), state.is_done());
            drop(state);
            shared.tell_works(is_news);
            let topic = &shared.setup.output.topic;
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

/// A record that librdkafka itself does not send: no broker has seen it.
fn reject_unsent(sent: Sent, code: RDKafkaErrorCode, output: &KafkaOutput) {
    let bytes = sent.record.value().map_or(0, |value| value.len());
    let topic = &output.topic;
    let why = match code {
        RDKafkaErrorCode::MessageSizeTooLarge => {
            let most = output.max_message;
            format!(
                "it is not sent to topic {topic}: with key and headers, its {bytes} bytes are more than \
                 the {most} that this output sends; raise its `max_message` (property \
                 `message.max.bytes`), and `max.message.bytes` of the topic where that is less"
            )
        }
        code => format!("it is not sent to topic {topic} ({bytes} bytes): {code}"),
    };
    sent.ack.reject(why);
}

/// Ends its thread when it is dropped.
pub struct Driver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// # Errors
    /// An option cannot be used; in words for an operator.
    pub(super) fn begin(shared: &Arc<Shared>) -> Result<Self, Unusable> {
        let (producer, drives) = (producer(shared)?, shared.clone());
        let thread = thread::Builder::new()
            .name("kafka-produce".to_owned())
            .spawn(move || drive(&producer, &drives))
            .map_err(|error| format!("no thread to produce on: {error}"))?;
        Ok(Self { shared: shared.clone(), thread: Some(thread) })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl RemoteDriver for Driver {
    fn describe(&self) -> String {
        self.shared.name.clone()
    }

    fn room(&self) -> &SinkRoom {
        &self.shared.room
    }

    /// The thread sends it: at once, if it has nothing else under way.
    fn push(&self, Outgoing { event, ack, .. }: Outgoing, room: OwnedSemaphorePermit) {
        let record = Record::new(event, self.shared.setup.output.mode);
        let mut state = self.shared.state.lock();
        if !state.accepts() {
            drop(state);
            // It is refused outside the lock.
            return drop(ack);
        }
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(Sent { record, ack, number, is_alone: false, _room: room });
        let is_idle = state.under_way == 0;
        drop(state);
        if is_idle {
            self.wake();
        }
    }

    fn finish(&self) {
        self.shared.finish();
    }

    fn trouble(&self) -> Option<Trouble> {
        self.shared.trouble()
    }

    fn resume(&self) -> bool {
        self.shared.resume()
    }
}

/// # Errors
/// An option cannot be used; in words for an operator.
pub(super) fn producer(shared: &Arc<Shared>) -> Result<BaseProducer<OutputContext>, Unusable> {
    let access = &shared.setup.access;
    let ours = [
        ("enable.idempotence", "true".to_owned()),
        // Records that brokers do not answer are sent again for as long as it takes.
        ("message.timeout.ms", "0".to_owned()),
    ];
    client::config(access, &ours, &REFUSED, &DEFAULTS)?
        .create_with_context(OutputContext(shared.clone()))
        .map_err(|error| client::creation_error(error, &access.properties))
}

impl Drop for Driver {
    /// Unsettled events are refused.
    fn drop(&mut self) {
        self.shared.give_up(None);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It never panics, and ends within half a second.
            let _ = thread.join();
        }
    }
}

/// Sends, and receives results: one thread does both, so that everything stays in order, and
/// librdkafka's memory for a record is freed by the thread that allocated it.
fn drive(producer: &BaseProducer<OutputContext>, shared: &Shared) {
    let mut in_vain = 0_u64;
    loop {
        pump(producer, shared);
        let under_way = shared.state.lock().under_way;
        // The deliveries of one answer, if there is one. With a timeout, it would spin for a
        // millisecond.
        producer.poll(Duration::ZERO);
        if let Some((code, reason)) = producer.client().fatal_error() {
            return shared.give_up(Some(format!(
                "the producer cannot go on, and has to be started again: {code}: {reason}"
            )));
        }
        let rest = {
            let state = shared.state.lock();
            if state.is_over {
                return;
            }
            let now = state.under_way;
            in_vain = if now > 0 && now == under_way { in_vain + 1 } else { 0 };
            match (now, state.waiting.is_empty()) {
                _ if now < under_way => continue,
                (0, true) => IDLE,
                (0, false) => WAITING,
                _ if in_vain > TURNS => WAITING,
                _ => TURN,
            }
        };
        // A new record wakes it if nothing is under way.
        thread::park_timeout(rest);
    }
}

/// Gives librdkafka the sendable records, without the lock: only this thread gives it any.
fn pump(producer: &BaseProducer<OutputContext>, shared: &Shared) {
    let (revoked, sendable): (_, VecDeque<Sent>) = {
        let mut state = shared.state.lock();
        (state.take_revoked(), iter::from_fn(|| state.take_next()).collect())
    };
    let mut is_fewer = !revoked.is_empty();
    // They are refused outside the lock.
    drop(revoked);
    let mut rest = sendable;
    while let Some(sent) = rest.pop_front() {
        match send(producer, &shared.setup, sent) {
            Ok(()) => {}
            Err((code, sent)) if Meaning::from_code(code) == Meaning::Rejected => {
                shared.state.lock().under_way -= 1;
                is_fewer = true;
                reject_unsent(sent, code, &shared.setup.output);
            }
            // Its queue is full, for now.
            Err((_, sent)) => {
                rest.push_front(sent);
                shared.state.lock().has_not_sent(rest);
                break;
            }
        }
    }
    if is_fewer {
        let is_done = shared.state.lock().is_done();
        shared.tell_done(is_done);
    }
}

fn send(
    producer: &BaseProducer<OutputContext>,
    setup: &OutputSetup,
    sent: Sent,
) -> Result<(), (RDKafkaErrorCode, Sent)> {
    let content = sent.record.clone();
    // librdkafka copies all of it.
    let (key, value) = (content.key(setup.key.as_ref()), content.value());
    let record = BaseRecord::<[u8], [u8], _> {
        key: key.as_deref(),
        payload: value.as_deref(),
        headers: Some(content.headers()),
        timestamp: content.timestamp(),
        ..BaseRecord::with_opaque_to(&setup.output.topic, Box::new(sent))
    };
    producer.send(record).map_err(|(error, record)| (code(&error), *record.delivery_opaque))
}
