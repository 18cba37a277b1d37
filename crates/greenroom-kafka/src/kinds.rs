//! Topics as inputs, outputs and a place for dead letters of a configuration: their options, and
//! what is asked of them. A build without the feature `client` reads them all the same, and opens
//! none.

mod guard;
mod input;
mod letters;
#[cfg_attr(not(feature = "client"), path = "kinds/without.rs")]
mod library;
mod output;

use std::{path::PathBuf, time::Duration};

use greenroom_bus::{event::OrderBy, source::StartAt};
use greenroom_config::{
    At, Secret, count, duration, flag, group, options, path, size, text, texts, units::DAY_MS,
    variables, word, words,
};

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
        properties: Secret<Vec<(String, String)>> = variables().secret().default("{}");
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
        properties: Secret<Vec<(String, String)>> = variables().secret().default("{}");
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
        properties: Secret<Vec<(String, String)>> = variables().secret().default("{}");
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

impl KafkaTls {
    fn cert_with_its_key(self, at: &mut At<'_>) -> Option<Self> {
        let help = "a broker is shown a certificate with its key: name both files";
        at.both(("cert", self.cert.is_some()), ("key", self.key.is_some()), help)?;
        Some(self)
    }
}

/// How to connect: the same of inputs, outputs and dead letters.
struct KafkaConnection<'a> {
    brokers: &'a [String],
    tls: Option<&'a KafkaTls>,
    sasl: Option<&'a KafkaSasl>,
    properties: &'a [(String, String)],
    /// Properties that have an option in this place only.
    own: &'static [(&'static str, &'static str)],
}

macro_rules! connects {
    ($($options:ty: $own:expr;)+) => {$(
        impl $options {
            fn connection(&self) -> KafkaConnection<'_> {
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

/// Properties that have an option of their own, by what they begin with.
const HAVE_AN_OPTION: [(&str, &str); 10] = [
    ("bootstrap.servers", "brokers"),
    ("metadata.broker.list", "brokers"),
    ("group.id", "group"),
    ("group.instance.id", "instance_id"),
    ("group.protocol", "protocol"),
    ("isolation.level", "isolation"),
    ("auto.offset.reset", "start"),
    ("compression.type", "compression"),
    ("compression.codec", "compression"),
    ("key.password", "tls.key_password"),
];

/// Of an output.
const HAVE_AN_OPTION_THERE: [(&str, &str); 2] =
    [("partitioner", "partitioner"), ("message.max.bytes", "max_message")];

impl KafkaConnection<'_> {
    /// What is wrong in the option of this name, and what to do next.
    fn check(&self, at: &mut At<'_>) -> Option<()> {
        for broker in self.brokers {
            let port = broker.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
            let is_plain = !broker.contains([',', ' ', '/']) && !broker.starts_with(':');
            if port.is_none() || !is_plain {
                let shown = at.written("brokers").show(broker);
                let text = format!("`{shown}` is no broker");
                at.error(
                    "brokers",
                    text,
                    "a host and a port, such as `localhost:9092`; several are a list",
                );
                return None;
            }
        }
        for (name, _) in self.properties {
            let belongs = |of: &str, given: bool| given && name.starts_with(of);
            let is_named = |(property, _): &&(&str, &str)| property == name;
            let option = match HAVE_AN_OPTION.iter().chain(self.own).find(is_named) {
                Some((_, option)) => option,
                None if belongs("ssl.", self.tls.is_some()) => "tls",
                None if belongs("sasl.", self.sasl.is_some()) => "sasl",
                None if belongs("security.protocol", self.tls.is_some() || self.sasl.is_some()) => {
                    "tls` and `sasl"
                }
                None => continue,
            };
            let key = format!("properties.{name}");
            let text = format!("`{name}` has an option of its own, `{option}`");
            at.error(&key, text, format!("leave it out, and write `{option}`"));
            return None;
        }
        Some(())
    }
}

impl KafkaInput {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.connection().check(at)?;
        Some(self)
    }
}

impl KafkaLetters {
    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        self.connection().check(at)?;
        Some(self)
    }
}

impl KafkaOutput {
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
