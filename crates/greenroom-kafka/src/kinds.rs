//! Topics as inputs, outputs and a place for dead letters of a configuration: their options, and
//! what is asked of them. A build without the feature `client` reads them all the same, and opens
//! none.

mod guard;
mod input;
mod letters;
mod output;

use std::{path::PathBuf, time::Duration};

use greenroom_bus::{event::OrderBy, source::StartAt};
use greenroom_config::{
    At, Secret, count, defaults_beside, duration, flag, group, options, path, size, text, texts,
    units::DAY_MS, variables, word, words,
};

use crate::Properties;

pub use self::{guard::GuardOptions, input::INPUT, letters::LETTERS, output::OUTPUT};

options! {
    /// Reads topics as a member of a consumer group: CloudEvents by their Kafka binding, or what
    /// `records` makes events of. Needs a greenroom that was built with the cargo feature `kafka`.
    /// docs/kafka.md says more.
    pub struct KafkaInput = "a kafka input", then KafkaInput::checked {
        /// The brokers to begin with, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The consumer group. All that read as one group share the partitions.
        group: String = text();
        /// What to read. A topic that begins with `^` is a regular expression, which takes topics
        /// that come later too.
        topics: Vec<String> = texts().alias(&["topic"]);
        /// Where to begin in a partition of which the group has committed nothing: `earliest`,
        /// `latest`, or a time (RFC 3339) such as `2026-01-31T12:00:00Z`, whose first record is the
        /// first to be read.
        start: StartAt = text().to::<StartAt>().default("earliest");
        /// What has read as this group before. With `parallel-consumer`, its metadata is read where
        /// the group starts here for the first time, so what it had done out of order is not
        /// handled again. Leave it out afterwards.
        from: Option<FormerConsumer> = word().optional();
        /// Who assigns partitions: the members (`classic`, with cooperative-sticky), or the broker
        /// (`consumer`, from Kafka 4 on).
        protocol: KafkaProtocol = word().default("classic");
        /// The name of this member, when it is to keep its partitions over a restart (static
        /// membership). Each member has another one.
        instance_id: Option<String> = text().optional();
        /// Which records of transactions are read.
        isolation: KafkaIsolation = word().default("read_committed");
        /// Whether a commit remembers what is done beyond the lowest open offset, in the text
        /// beside it. Without that, a crash repeats all that is behind an event that is stuck.
        remember_done: bool = flag().default("true");
        /// Headers of records that an output of Kafka writes again, where their event is passed on:
        /// `all`, or their names. Those that an event is made of (`ce_..`, `content-type`) are
        /// written anyway. They are kept in memory only: not by a log, a file or a dead letter that
        /// is replayed.
        keep_headers: Option<Vec<String>> = texts().optional();
        /// Whether such an output writes the timestamp of the record again, in place of now.
        keep_timestamp: bool = flag().default("false");
        /// How many characters the broker takes beside an offset: its `offset.metadata.max.bytes`.
        metadata_limit: usize = count(16..=1_048_576).default("4096");
        /// How long what is in hand of a partition that is taken away may take to finish; longer
        /// than the slowest handler, so that nothing is handled twice in a rebalance. The group
        /// waits so long.
        drain_budget: Duration = duration(0..=DAY_MS).default("10s");
        /// Moves the oldest events of a partition that is held up by many that are stuck.
        /// Without it, they hold it up.
        guard: Option<GuardOptions> = group().optional();
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// Says who connects.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name:
        /// `{ max.poll.interval.ms: "600000" }`. Those that have an option here, and those
        /// that would break a promise, are refused. Values are never shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

options! {
    /// Publishes to a topic, by the Kafka binding of CloudEvents. An event counts as stored once
    /// the broker says so. A record that the broker refuses for good makes a dead letter of the
    /// event that was handled. Needs a greenroom that was built with the cargo feature `kafka`.
    pub struct KafkaOutput = "a kafka output", then KafkaOutput::checked {
        /// The brokers to begin with, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The topic.
        topic: String = text();
        /// The key of a record: an attribute, an extension, or a JSON pointer into the data.
        /// Without it, the extension `partitionkey`, which is the key that the event came with, as
        /// the bytes that it was; without one its subject; without that, none. Records of one key
        /// stay in order.
        key: Option<String> = text().optional();
        /// `binary` writes attributes as headers and the data as the value, which is none (a
        /// tombstone) without data; `structured` writes the event as JSON into the value.
        mode: KafkaSinkMode = word().default("binary");
        /// How the partition of a key is chosen. Records of one key meet in one partition only if
        /// all producers of the topic choose alike: `murmur2` as clients of Java do, `crc32` as
        /// librdkafka and what is built on it (Python, Go, C#) unless told otherwise, `fnv1a` as
        /// Sarama. Records without a key are spread.
        partitioner: KafkaPartitioner = word().default("murmur2");
        /// The largest record that is sent, with its key and headers. The topic has a limit of its
        /// own, `max.message.bytes`: name that here, so that no batch is refused for one record.
        max_message: u64 = size(1_000..=1_000_000_000).default("1000000");
        /// How records are compressed on their way and at the broker.
        compression: KafkaCompression = word().default("none");
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// Says who connects.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name: `{ linger.ms: "20" }`. Those that have an
        /// option here, and those that would break a promise, are refused. Values are never shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

options! {
    /// Publishes dead letters to a topic: the record that a letter is about, as it was, with
    /// headers that say where it was and why it is a letter (`greenroom_reason` and others); of an
    /// input that is no topic, the letter as JSON. An event counts as settled once the broker has
    /// its letter, and waits for that as long as it takes. Needs a greenroom that was built with
    /// the cargo feature `kafka`. docs/dead-letters.md says more.
    pub struct KafkaLetters = "kafka dead letters", then KafkaLetters::checked {
        /// The brokers to begin with, each `HOST:PORT`.
        brokers: Vec<String> = texts();
        /// The topic. It has to take records as large as those of the inputs, and the headers.
        topic: String = text();
        /// How records are compressed on their way and at the broker.
        compression: KafkaCompression = word().default("none");
        /// Encrypts connections; `{}` trusts the authorities of the system.
        tls: Option<KafkaTls> = group().optional();
        /// Says who connects.
        sasl: Option<KafkaSasl> = group().optional();
        /// Any other property of librdkafka, by its name. Those that have an option here, and those
        /// that would break a promise, are refused. Values are never shown.
        properties: Properties = variables().secret().to::<Properties>().default("{}");
    }
}

options! {
    /// Files are PEM, and are read at the start.
    pub struct KafkaTls = "tls", then KafkaTls::cert_with_its_key {
        /// A file with the certificates of the authorities to trust, in place of those of the
        /// system.
        ca: Option<PathBuf> = path().optional();
        /// A file with the certificate to show to the brokers.
        cert: Option<PathBuf> = path().optional();
        /// The file with its private key.
        key: Option<PathBuf> = path().optional();
        /// What that file is encrypted with, when it is.
        key_password: Option<Secret<String>> = text().secret().optional();
        /// Whether the certificate of a broker has to name its host.
        check_host: bool = flag().default("true");
    }
}

options! {
    /// Who connects. Other mechanisms are set by `properties`.
    pub struct KafkaSasl = "sasl" {
        /// How the password is shown to be known. `PLAIN` sends it, so use that with `tls`.
        mechanism: KafkaMechanism = word().default("SCRAM-SHA-512");
        /// The user.
        user: Secret<String> = text().secret();
        /// The password. Write `${NAME}` or `file:PATH` for what is secret.
        password: Secret<String> = text().secret();
    }
}

words! {
    /// A program that groups move from.
    pub enum FormerConsumer {
        /// Confluent's parallel-consumer, which is retired: what it had done out of order is not
        /// handled again.
        ParallelConsumer = "parallel-consumer",
    }
}

words! {
    /// Who assigns partitions.
    pub enum KafkaProtocol {
        /// The members.
        Classic = "classic",
        /// The broker.
        Consumer = "consumer",
    }
}

words! {
    /// Which records of transactions are read.
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

words! {
    /// How a password is shown to be known.
    pub enum KafkaMechanism {
        /// It is sent.
        Plain = "PLAIN",
        /// By a challenge, with SHA-256.
        ScramSha256 = "SCRAM-SHA-256",
        /// By a challenge, with SHA-512.
        ScramSha512 = "SCRAM-SHA-512",
    }
}

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

impl KafkaTls {
    /// The files that it names, each with its option.
    #[cfg(feature = "client")]
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        files.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }

    fn cert_with_its_key(self, at: &mut At<'_>) -> Option<Self> {
        let help = "a broker is shown a certificate with its key: name both files";
        at.both(("cert", self.cert.is_some()), ("key", self.key.is_some()), help)?;
        Some(self)
    }
}
