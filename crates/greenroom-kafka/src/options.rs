//! The options of an input, an output and a destination of dead letters, and their checks.

mod guard;

use std::time::Duration;

use greenroom_bus::{event::OrderBy, source::StartAt};
use greenroom_config::{
    At, count, defaults_beside, duration, flag, group, options, size, text, texts, units::DAY_MS,
    variables, word, words,
};

pub use self::guard::GuardOptions;
use crate::{
    connection::{KafkaConnection, KafkaSasl, KafkaTls},
    properties::Properties,
};

options! {
    /// Reads topics as a member of a consumer group. Records are CloudEvents in their Kafka
    /// binding, or `records` maps them to events. Needs a greenroom built with the cargo feature
    /// `kafka`; see docs/kafka.md.
    pub struct KafkaInput = "a kafka input", then KafkaInput::checked {
        /// The brokers to connect to first, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The consumer group. Its members divide the partitions.
        group: String = text();
        /// The topics to read. A topic that begins with `^` is a regular expression, which also
        /// matches topics created later.
        topics: Vec<String> = texts().alias(&["topic"]);
        /// Where to start in a partition without commits of the group: `earliest`, `latest`, or a
        /// time (RFC 3339) such as `2026-01-31T12:00:00Z`, from which on records are read.
        start: StartAt = text().to::<StartAt>().default("earliest");
        /// The program that used this group before. With `parallel-consumer`, its metadata is read
        /// at the first start of the group here, so that records that it had done out of order are
        /// not handled again. Remove it afterwards.
        from: Option<FormerConsumer> = word().optional();
        /// Who assigns partitions: the members (`classic`, with cooperative-sticky), or the broker
        /// (`consumer`, needs Kafka 4).
        protocol: KafkaProtocol = word().default("classic");
        /// The name of this member, so that it keeps its partitions over a restart (static
        /// membership). Each member needs its own.
        instance_id: Option<String> = text().optional();
        /// Which records of transactions to read.
        isolation: KafkaIsolation = word().default("read_committed");
        /// Whether the metadata of a commit has the offsets that are done beyond the lowest open
        /// one. Otherwise, a crash repeats everything after a stuck event.
        remember_done: bool = flag().default("true");
        /// Headers of records that a Kafka output writes again if their event is passed on: `all`,
        /// or a list of names. Headers that form the event (`ce_..`, `content-type`) are always
        /// written. They are kept only in memory: a log, a file or a replayed dead letter loses
        /// them.
        keep_headers: Option<Vec<String>> = texts().optional();
        /// Whether such an output keeps the timestamp of the record, instead of the current time.
        keep_timestamp: bool = flag().default("false");
        /// How many characters of metadata the broker allows for an offset: its
        /// `offset.metadata.max.bytes`.
        metadata_limit: usize = count(16..=1_048_576).default("4096");
        /// How long events in hand may take to finish when their partition is revoked. Choose more
        /// than the slowest handler needs, so that a rebalance repeats nothing. The group waits
        /// this long.
        drain_budget: Duration = duration(0..=DAY_MS).default("10s");
        /// Moves the oldest events of a partition to a topic if many stuck events hold it up.
        /// Without it, the partition waits.
        guard: Option<GuardOptions> = group().optional();
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// The credentials.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name: `{ max.poll.interval.ms: "600000" }`.
        /// Properties that have an option here, and those that would break a promise, are refused.
        /// Values are never shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

options! {
    /// Publishes to a topic, in the Kafka binding of CloudEvents. An event counts as stored once
    /// the broker confirms it. If the broker refuses a record for good, the handled event becomes a
    /// dead letter. Needs a greenroom built with the cargo feature `kafka`.
    pub struct KafkaOutput = "a kafka output", then KafkaOutput::checked {
        /// The brokers to connect to first, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The topic.
        topic: String = text();
        /// The key of a record: an attribute, an extension, or a JSON pointer into the data. By
        /// default, the extension `partitionkey` (the key that the event came with, as its original
        /// bytes), or else the subject, or else none. Records of one key stay in order.
        key: Option<String> = text().optional();
        /// `binary` writes attributes as headers and the data as the value (a tombstone if there is
        /// no data); `structured` writes the event as JSON into the value.
        mode: KafkaSinkMode = word().default("binary");
        /// How to choose the partition of a key. Records of one key are in one partition only if
        /// all producers of the topic choose in the same way: `murmur2` like Java clients, `crc32`
        /// like librdkafka and clients built on it by default (Python, Go, C#), `fnv1a` like
        /// Sarama. Records without a key are spread.
        partitioner: KafkaPartitioner = word().default("murmur2");
        /// The largest record to send, with its key and headers. Set it to the topic's own limit,
        /// `max.message.bytes`, so that no batch is refused because of one record.
        max_message: u64 = size(1_000..=1_000_000_000).default("1000000");
        /// How records are compressed, in transit and at the broker.
        compression: KafkaCompression = word().default("none");
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// The credentials.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name: `{ linger.ms: "20" }`. Properties that
        /// have an option here, and those that would break a promise, are refused. Values are never
        /// shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

options! {
    /// Publishes dead letters to a topic: the original record, with headers that say where it was
    /// and why it is a letter (`greenroom_reason` and others). For an event that did not come from
    /// a topic, the letter is JSON. The event is settled once the broker has its letter, and waits
    /// until then. Needs a greenroom built with the cargo feature `kafka`; see
    /// docs/dead-letters.md.
    pub struct KafkaLetters = "kafka dead letters", then KafkaLetters::checked {
        /// The brokers to connect to first, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The topic. It must accept records as large as those of the inputs, plus the headers.
        topic: String = text();
        /// How records are compressed, in transit and at the broker.
        compression: KafkaCompression = word().default("none");
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// The credentials.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name. Properties that have an option here, and
        /// those that would break a promise, are refused. Values are never shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

words! {
    /// A program that groups move from.
    pub enum FormerConsumer {
        /// Confluent's parallel-consumer, which is retired: records that it had done out of order
        /// are not handled again.
        ParallelConsumer = "parallel-consumer",
    }
}

words! {
    /// How partitions are assigned.
    pub enum KafkaProtocol {
        /// The members.
        Classic = "classic",
        /// The broker.
        Consumer = "consumer",
    }
}

words! {
    /// Which records of transactions to read.
    pub enum KafkaIsolation {
        /// Those of transactions that were committed.
        ReadCommitted = "read_committed",
        /// All.
        ReadUncommitted = "read_uncommitted",
    }
}

words! {
    /// How an event is written, by the Kafka binding of CloudEvents 1.0.2.
    pub enum KafkaSinkMode {
        /// Attributes are headers, and the data is the value, as it is. An event without data is a
        /// tombstone.
        Binary = "binary",
        /// The event as JSON is the value.
        Structured = "structured",
    }
}

words! {
    /// How the partition of a key is chosen.
    pub enum KafkaPartitioner {
        /// As clients of Java do.
        Murmur2 = "murmur2",
        /// As librdkafka does.
        Crc32 = "crc32",
        /// As Sarama does.
        Fnv1a = "fnv1a",
    }
}

words! {
    /// How records are compressed.
    pub enum KafkaCompression {
        /// Not at all.
        None = "none",
        /// By gzip.
        Gzip = "gzip",
        /// By snappy.
        Snappy = "snappy",
        /// By lz4.
        Lz4 = "lz4",
        /// By zstd.
        Zstd = "zstd",
    }
}

macro_rules! connects {
    ($($options:ty: $own:expr;)+) => {$(
        impl $options {
            pub(crate) fn connection(&self) -> KafkaConnection<'_> {
                KafkaConnection {
                    brokers: &self.brokers,
                    tls: self.tls.as_ref(),
                    sasl: self.sasl.as_ref(),
                    properties: &self.properties,
                    own: $own,
                }
            }
        }
    )+};
}

connects! {
    KafkaInput: &[];
    KafkaOutput: &HAVE_AN_OPTION_THERE;
    KafkaLetters: &[];
}

/// Properties that have an option in an output only, by what they begin with.
const HAVE_AN_OPTION_THERE: [(&str, &str); 2] =
    [("partitioner", "partitioner"), ("message.max.bytes", "max_message")];

impl KafkaInput {
    /// These topics, with the defaults of a configuration. `brokers`: `HOST:PORT,HOST:PORT`.
    pub fn new<T: Into<String>>(
        brokers: impl AsRef<str>,
        group: impl Into<String>,
        topics: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            brokers: listed(brokers.as_ref()),
            group: group.into(),
            topics: topics.into_iter().map(Into::into).collect(),
            ..defaults_beside(&[
                ("brokers", "broker:9092"),
                ("group", "group"),
                ("topics", "topic"),
            ])
        }
    }

    /// What reports, logs and dead letters call the source.
    #[cfg(feature = "client")]
    pub(crate) fn described(&self) -> String {
        format!("kafka:{}", self.topics.join(","))
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.connection().check(at)?;
        Some(self)
    }
}

impl KafkaLetters {
    /// To this topic, with the defaults of a configuration. `brokers`: `HOST:PORT,HOST:PORT`.
    pub fn new(brokers: impl AsRef<str>, topic: impl Into<String>) -> Self {
        Self {
            brokers: listed(brokers.as_ref()),
            topic: topic.into(),
            ..defaults_beside(&[("brokers", "broker:9092"), ("topic", "topic")])
        }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.connection().check(at)?;
        Some(self)
    }
}

impl KafkaOutput {
    /// To this topic, with the defaults of a configuration. `brokers`: `HOST:PORT,HOST:PORT`.
    pub fn new(brokers: impl AsRef<str>, topic: impl Into<String>) -> Self {
        Self {
            brokers: listed(brokers.as_ref()),
            topic: topic.into(),
            ..defaults_beside(&[("brokers", "broker:9092"), ("topic", "topic")])
        }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.connection().check(at)?;
        if let Some(key) = &self.key
            && let Err(why) = key.parse::<OrderBy>()
        {
            let help = "an attribute such as `subject`, or a JSON pointer such as `/order/id`";
            at.error("key", format!("this is no key: {why}"), help);
            return None;
        }
        Some(self)
    }
}

fn listed(brokers: &str) -> Vec<String> {
    brokers.split(',').map(|broker| broker.trim().to_owned()).collect()
}
