//! The contents of a stream, for read-only commands (C15).
//!
//! It reads by a consumer of its own, which acknowledges nothing and is removed by the server soon
//! after: the consumer that is named in the options is only asked for its position, and is neither
//! changed nor created. Acknowledgements beyond its lowest open message are known to the server
//! alone, so those messages are read here too.

use std::{fmt, sync::Arc, time::Duration};

use async_nats::jetstream::{
    consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull},
    stream::Stream,
};
use futures_util::StreamExt;
use greenroom_bus::{
    record::Mapping,
    source::{Partition, Pull, Pulling, Source, SourceError, Taken},
};

use super::{consumer::Wanted, delivery::Delivery, form::Form};
use crate::{
    connection::{Connection, because},
    options::NatsInput,
};

/// Messages of one request.
const BATCH: u64 = 256;
/// A request that brings nothing is given up after this time: its messages are gone.
const EXPIRES: Duration = Duration::from_secs(2);
/// The server removes a consumer that is silent for this long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(10);

/// Reads the messages of a stream that a consumer has not finished, up to the present end. It
/// acknowledges nothing, and takes nothing from that consumer.
pub struct NatsLooking {
    described: String,
    form: Form,
    /// Those that are not read to their end; the first is read.
    open: Vec<Reading>,
    partition: Partition,
    /// While it lives, the connection does.
    _connection: Arc<Connection>,
}

struct Reading {
    partition: Partition,
    consumer: PullConsumer,
    /// Messages that were there when it began, and were not read.
    left: u64,
}

impl NatsLooking {
    /// Connects, and finds the position at which the consumer of these options would continue.
    ///
    /// # Errors
    /// The options cannot be used, no server answers in the time that they give, it refuses
    /// the credentials, or the stream does not exist or can have no other consumer.
    ///
    /// # Cancel safety
    /// A dropped future may have made a consumer that the server removes soon.
    pub async fn open(input: &NatsInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let described = input.described();
        let failed = |why: String| SourceError::new(&described, why);
        input.check().map_err(failed)?;
        let connection = Connection::open(&input.server()).await.map_err(failed)?;
        let mut open = Vec::new();
        for number in input.numbers() {
            let wanted = Wanted::new(input, number);
            let stream = wanted.stream(&connection.jetstream).await;
            let stream = stream.map_err(|error| failed(error.into_text()))?;
            let partition = number.map_or(Partition::ONLY, Partition);
            open.push(Reading::begin(&stream, &wanted, partition).await.map_err(failed)?);
        }
        let form = Form::new(input, records);
        let partition = Partition::ONLY;
        Ok(Self { described, form, open, partition, _connection: connection })
    }

    /// At least one message, or `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<Taken>>, String> {
        while let Some(reading) = self.open.first_mut() {
            let taken = reading.batch(&self.form).await?;
            self.partition = reading.partition;
            if reading.left == 0 {
                self.open.remove(0);
            }
            if !taken.is_empty() {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }
}

impl Reading {
    async fn begin(stream: &Stream, wanted: &Wanted, partition: Partition) -> Result<Self, String> {
        let known = match stream.consumer_info(&wanted.name).await {
            Ok(info) => Some(info.ack_floor.stream_sequence + 1),
            Err(error) => match error.kind() {
                async_nats::jetstream::context::ConsumerInfoErrorKind::NotFound => None,
                _ => return Err(because(&error)),
            },
        };
        let mut config = pull::Config {
            durable_name: None,
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGOTTEN_AFTER,
            ..wanted.config().clone()
        };
        if let Some(start_sequence) = known {
            config.deliver_policy = DeliverPolicy::ByStartSequence { start_sequence };
        }
        let consumer = stream.create_consumer(config).await.map_err(|error| {
            format!(
                "the stream {:?} cannot be looked into: {}; a stream that keeps each message for one \
                 consumer has no other",
                wanted.stream,
                because(&error)
            )
        })?;
        let left = consumer.cached_info().num_pending;
        Ok(Self { partition, consumer, left })
    }

    /// The next messages. Those that were removed in between are not waited for.
    async fn batch(&mut self, form: &Form) -> Result<Vec<Taken>, String> {
        let wanted = self.left.min(BATCH);
        let mut taken = Vec::new();
        if wanted > 0 {
            let asked = self.consumer.fetch().max_messages(wanted as usize).expires(EXPIRES);
            let mut messages = asked.messages().await.map_err(|error| because(&error))?;
            while let Some(message) = messages.next().await {
                let message = message.map_err(|error| because(&*error))?;
                let delivery = message.reply.as_deref().and_then(Delivery::read);
                taken.extend(delivery.map(|delivery| form.read(&message, &delivery)));
            }
        }
        self.left = if taken.is_empty() { 0 } else { self.left - taken.len() as u64 };
        Ok(taken)
    }
}

impl Source for NatsLooking {
    fn describe(&self) -> String {
        self.described.clone()
    }

    /// # Cancel safety
    /// A dropped future may have taken messages that no other call returns: a look need not see
    /// all.
    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let next = self.next().await.map_err(|why| SourceError::new(&self.described, why))?;
            let Some(taken) = next else { return Ok(Pull::End) };
            into.extend(taken);
            Ok(Pull::More)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.partition
    }
}

impl fmt::Debug for NatsLooking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsLooking").field("described", &self.described).finish_non_exhaustive()
    }
}
