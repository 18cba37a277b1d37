//! The consumer on the server: found, created or changed as requested.

use async_nats::datetime::DateTime;
use async_nats::jetstream::{
    Context, Error, ErrorCode,
    consumer::{AckPolicy, DeliverPolicy, Info, PullConsumer, pull},
    context::GetStreamErrorKind,
    stream::{ConsumerErrorKind, Stream},
};

use greenroom_bus::source::StartAt;

use crate::{
    connection::because,
    options::{NatsInput, PARTITION},
};

/// A consumer as it was found or made.
pub(super) struct Found {
    pub(super) consumer: PullConsumer,
    /// When its stream was made: another one of the same name has other messages at the same
    /// positions.
    pub(super) stream_made: DateTime,
}

/// Why there is no consumer.
#[derive(Debug)]
pub(super) enum NoConsumer {
    /// It may pass: the server does not answer, or elects a leader.
    ForNow(String),
    /// An operator has to act.
    ForGood(String),
}

impl NoConsumer {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::ForNow(text) | Self::ForGood(text) => text,
        }
    }
}

/// The settings by which one partition is read.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) stream: String,
    pub(super) name: String,
    config: pull::Config,
}

impl Wanted {
    /// The consumer of one partition, or the only one.
    pub(super) fn new(input: &NatsInput, partition: Option<u32>) -> Self {
        let number = partition.map(|number| number.to_string());
        let name = match &number {
            Some(number) => format!("{}-{number}", input.consumer),
            None => input.consumer.clone(),
        };
        let number = number.as_deref().unwrap_or_default();
        let filters =
            input.subjects.iter().flatten().map(|filter| filter.replace(PARTITION, number));
        let deliver_policy = match input.start {
            StartAt::Earliest => DeliverPolicy::All,
            StartAt::Latest => DeliverPolicy::New,
            StartAt::Time(time) => {
                let since = time.duration_since(std::time::SystemTime::UNIX_EPOCH);
                let nanos = since.map_or(0, |since| since.as_nanos() as i128);
                let start_time = async_nats::datetime::from_nanos(nanos);
                start_time.map_or(DeliverPolicy::All, |start_time| DeliverPolicy::ByStartTime {
                    start_time,
                })
            }
        };
        let config = pull::Config {
            durable_name: Some(name.clone()),
            deliver_policy,
            ack_policy: AckPolicy::Explicit,
            ack_wait: input.ack_wait,
            max_ack_pending: i64::try_from(input.held_at_most()).unwrap_or(i64::MAX),
            filter_subjects: filters.collect(),
            ..pull::Config::default()
        };
        Self { stream: input.stream.clone(), name, config }
    }

    /// As it is made.
    pub(super) fn config(&self) -> &pull::Config {
        &self.config
    }

    /// Finds or creates it. A recreated one begins at this position of the stream that existed
    /// then; in a stream that was created since it begins with the first message, because all are
    /// new there. A consumer that another process reads is left `as_it_is`.
    pub(super) async fn find(
        &self,
        jetstream: &Context,
        again: Option<(u64, DateTime)>,
        as_it_is: bool,
    ) -> Result<Found, NoConsumer> {
        let stream = self.stream(jetstream).await?;
        let stream_made = stream.cached_info().created;
        let from = again.map(|(from, made)| if made == stream_made { from } else { 1 });
        let info = match stream.consumer_info(&self.name).await {
            Ok(info) => Some(info),
            Err(error) => match error.kind() {
                async_nats::jetstream::context::ConsumerInfoErrorKind::NotFound => None,
                _ => return Err(NoConsumer::ForNow(because(&error))),
            },
        };
        let consumer = match info {
            Some(info) => self.change(&stream, info, as_it_is).await?,
            None => self.make(&stream, from).await?,
        };
        Ok(Found { consumer, stream_made })
    }

    pub(super) async fn stream(&self, jetstream: &Context) -> Result<Stream, NoConsumer> {
        jetstream.get_stream(&self.stream).await.map_err(|error| {
            let stream = &self.stream;
            match error.kind() {
                GetStreamErrorKind::JetStream(answer) => match answer.error_code() {
                    ErrorCode::STREAM_NOT_FOUND => NoConsumer::ForGood(format!(
                        "there is no stream {stream:?}; make it, for example with `nats stream add {stream}`"
                    )),
                    _ => answered(&answer),
                },
                _ => NoConsumer::ForNow(because(&error)),
            }
        })
    }

    async fn make(&self, stream: &Stream, from: Option<u64>) -> Result<PullConsumer, NoConsumer> {
        let mut config = self.config.clone();
        if let Some(start_sequence) = from {
            config.deliver_policy = DeliverPolicy::ByStartSequence { start_sequence };
        }
        let (name, of) = (self.name.as_str(), self.stream.as_str());
        let made = stream.create_consumer(config).await;
        tracing::info!(consumer = name, stream = of, "the consumer does not exist, and is made");
        made.map_err(|error| self.failed(error.kind(), || because(&error)))
    }

    /// Changes the changeable settings of an existing consumer, and refuses one that is not of this
    /// kind.
    async fn change(
        &self,
        stream: &Stream,
        info: Info,
        as_it_is: bool,
    ) -> Result<PullConsumer, NoConsumer> {
        let refused = |why: &str| {
            let (name, stream) = (&self.name, &self.stream);
            let text = format!(
                "the consumer {name:?} of stream {stream:?} {why}; name another consumer, or remove it with `nats consumer rm {stream} {name}`"
            );
            Err(NoConsumer::ForGood(text))
        };
        let was = &info.config;
        if was.deliver_subject.is_some() {
            return refused("is one that pushes, not one that is pulled from");
        }
        if was.ack_policy != AckPolicy::Explicit {
            return refused("does not have each message acknowledged by itself");
        }
        if as_it_is {
            return self.get(stream).await;
        }
        if was.max_deliver > 0 {
            tracing::warn!(
                consumer = self.name,
                max_deliver = was.max_deliver,
                "the server gives a message up that it has delivered so often: after that many crashes it is lost"
            );
        }
        let mut known = was.filter_subjects.clone();
        if known.is_empty() && !was.filter_subject.is_empty() {
            known.push(was.filter_subject.clone());
        }
        let mut wanted = self.config.filter_subjects.clone();
        known.sort();
        wanted.sort();
        if known != wanted {
            let shown = |filters: &[String]| match filters {
                [] => "all of the stream".to_owned(),
                some => some.join(", "),
            };
            tracing::warn!(
                consumer = self.name,
                was = shown(&known),
                is = shown(&wanted),
                "the consumer is changed to the subjects that are configured; what it has passed over already stays unread"
            );
        }
        let is_same = was.ack_wait == self.config.ack_wait
            && was.max_ack_pending == self.config.max_ack_pending
            && known == wanted;
        if !is_same {
            let mut config = was.clone();
            config.ack_wait = self.config.ack_wait;
            config.max_ack_pending = self.config.max_ack_pending;
            // A schedule of its own would come before the time that is counted on here.
            config.backoff = Vec::new();
            config.filter_subject = String::new();
            config.filter_subjects = self.config.filter_subjects.clone();
            let changed = stream.update_consumer(config).await;
            changed.map_err(|error| {
                NoConsumer::ForGood(format!(
                    "the consumer {:?} cannot be changed to what is configured: {}",
                    self.name,
                    because(&error)
                ))
            })?;
        }
        self.get(stream).await
    }

    async fn get(&self, stream: &Stream) -> Result<PullConsumer, NoConsumer> {
        stream.get_consumer(&self.name).await.map_err(|error| NoConsumer::ForNow(error.to_string()))
    }

    fn failed(&self, kind: ConsumerErrorKind, because: impl Fn() -> String) -> NoConsumer {
        match kind {
            ConsumerErrorKind::JetStream(answer) => answered(&answer),
            ConsumerErrorKind::InvalidName | ConsumerErrorKind::InvalidConsumerType => {
                NoConsumer::ForGood(because())
            }
            _ => NoConsumer::ForNow(because()),
        }
    }
}

/// The server's answer: 503 and the like pass, 400 and the like do not.
fn answered(answer: &Error) -> NoConsumer {
    let text = answer.to_string();
    match answer.code() {
        500.. => NoConsumer::ForNow(text),
        _ => NoConsumer::ForGood(text),
    }
}
