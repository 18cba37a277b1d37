//! The options of an input, an output and a destination of dead letters, and their checks.

use std::time::Duration;

use greenroom::Backoff;
use greenroom_bus::source::StartAt;
use greenroom_config::{
    At, Secret, Take, Typed, count, defaults_beside, duration, durations, group, options, size,
    text, texts,
    units::{DAY_MS, GIB},
    word, words,
};

use crate::{
    key::NatsKey,
    server::{NatsAuth, NatsServer, NatsTls},
    subject::NatsSubject,
};

/// Where a subject and the name of a consumer have the number of a partition.
pub(crate) const PARTITION: &str = "{partition}";

options! {
    /// Reads a stream of NATS JetStream through a durable pull consumer. Messages are CloudEvents
    /// in their NATS binding, or `records` maps them to events. Each message is acknowledged by
    /// itself, once it is settled. Needs a greenroom built with the cargo feature `nats`; see
    /// docs/nats.md.
    pub struct NatsInput = "a nats input", then NatsInput::checked {
        /// The servers to connect to first, each `HOST:PORT` or a URL (`tls://HOST:PORT`).
        servers: Secret<Vec<String>> = texts().secret().alias(&["server"]);
        /// The stream. It must exist.
        stream: String = text();
        /// The durable consumer. It is created if it is missing. One process reads it at a time.
        consumer: String = text();
        /// Only messages with these subjects, which may have wildcards (`orders.*`, `orders.>`). By
        /// default, the whole stream.
        subjects: Option<Vec<String>> = texts().alias(&["subject"]).optional();
        /// The partitions that this process reads, such as `0..3` or `0,4,8`. Each has its own
        /// consumer: the name gets a dash and the number, and `{partition}` in `subjects` becomes
        /// the number. By default, there is one partition.
        partitions: Option<Partitions> = text().to::<Partitions>().optional();
        /// Where a new consumer starts: `earliest`, `latest`, or a time (RFC 3339) such as
        /// `2026-01-31T12:00:00Z`.
        start: StartAt = text().to::<StartAt>().default("earliest");
        /// How many messages may be delivered and not acknowledged (`max_ack_pending` of the
        /// consumer). By default, as many as this input and all pools may hold.
        capacity: Option<usize> = count(1..=10_000_000).optional();
        /// The server delivers a message again if it hears nothing of it for this long. Messages in
        /// hand are reported before half of that. After a crash, a start waits this long for
        /// messages that were in hand.
        ack_wait: Duration = duration(200..=DAY_MS).default("30s");
        /// How many messages one request asks for.
        batch: usize = count(1..=100_000).default("500");
        /// How many bytes one request asks for. A larger message is requested alone.
        batch_bytes: usize = size(1..=GIB).default("8MiB");
        /// The most bytes of messages that are held back while older messages are awaited.
        hold: usize = size(1..=GIB).default("64MiB");
        /// Where the key of a message is taken from. It is the extension `partitionkey` of events,
        /// for `order_by: partitionkey`, and the `key` of records.
        key: Option<NatsKey> = group().optional();
        /// The credentials. Without it, only those in the URL.
        auth: Option<NatsAuth> = group().optional();
        /// Requires TLS.
        tls: Option<NatsTls> = group().optional();
        /// The JetStream domain, if it is not the server's.
        domain: Option<String> = text().optional();
        /// How long to try to connect at the start. A lost connection is retried without end.
        connect_within: Duration = duration(1..=DAY_MS).default("30s");
    }
}

options! {
    /// Publishes to a subject, and waits until its stream has stored the event. A message that is
    /// repeated because the answer is missing is stored once, by its `Nats-Msg-Id`. If a stream
    /// refuses a message for good, the handled event becomes a dead letter; a stream that is
    /// missing, or refuses this user, pauses the output. Needs a greenroom built with the cargo
    /// feature `nats`; see docs/nats.md.
    pub struct NatsOutput = "a nats output" {
        /// The servers to connect to first, each `HOST:PORT` or a URL (`tls://HOST:PORT`).
        servers: Secret<Vec<String>> = texts().secret().alias(&["server"]);
        /// The subject, with fields of the event in braces: `orders.{subject}.{type}`,
        /// `tenants.{/customer/id}`.
        subject: NatsSubject = text().to::<NatsSubject>();
        /// `binary` writes attributes as headers and the data as the payload; `structured` writes
        /// the event as JSON.
        mode: NatsSinkMode = word().default("binary");
        /// How many messages are being published at once; only one at a time for each key.
        concurrency: usize = count(1..=4_096).default("1000");
        /// The first and the longest wait after a temporary failure.
        backoff: Backoff = durations().to::<Backoff>().default("100ms..10s");
        /// The first and the longest wait of a paused output before it tries again.
        probe: Backoff = durations().to::<Backoff>().default("1s..60s");
        /// The credentials. Without it, only those in the URL.
        auth: Option<NatsAuth> = group().optional();
        /// Requires TLS.
        tls: Option<NatsTls> = group().optional();
        /// The JetStream domain, if it is not the server's.
        domain: Option<String> = text().optional();
        /// How long to try to connect at the start. A lost connection is retried without end.
        connect_within: Duration = duration(1..=DAY_MS).default("30s");
    }
}

options! {
    /// Publishes dead letters to a subject, as JSON, with headers to filter by (`greenroom-reason`
    /// and others). The event is settled once the stream has its letter, and waits until then.
    /// Needs a greenroom built with the cargo feature `nats`; see docs/dead-letters.md.
    pub struct NatsLetters = "nats dead letters", then NatsLetters::checked {
        /// The servers to connect to first, each `HOST:PORT` or a URL (`tls://HOST:PORT`).
        servers: Secret<Vec<String>> = texts().secret().alias(&["server"]);
        /// The subject. A stream must accept it.
        subject: NatsSubject = text().to::<NatsSubject>();
        /// The credentials. Without it, only those in the URL.
        auth: Option<NatsAuth> = group().optional();
        /// Requires TLS.
        tls: Option<NatsTls> = group().optional();
        /// The JetStream domain, if it is not the server's.
        domain: Option<String> = text().optional();
        /// How long to try to connect at the start. A lost connection is retried without end.
        connect_within: Duration = duration(1..=DAY_MS).default("30s");
    }
}

words! {
    /// How events are written into messages, by the NATS binding of CloudEvents 1.0.
    pub enum NatsSinkMode {
        /// Attributes are headers (`ce-id`), and the data is the payload, as it is.
        Binary = "binary",
        /// The event as JSON is the payload.
        Structured = "structured",
    }
}

/// Numbers of partitions: `0..3`, `0,4,8`, `0..2,7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions(pub Vec<u32>);

impl Partitions {
    /// The most that one process reads: each has a consumer of its own.
    const MOST: usize = 1_024;

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once("..").unwrap_or((part, part));
            let [from, to] = [from, to].map(|number| number.trim().parse::<u32>());
            let (from, to) = (from.ok()?, to.ok()?);
            if from > to || (to - from) as usize >= Self::MOST {
                return None;
            }
            numbers.extend(from..=to);
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        (numbers.len() == count && count <= Self::MOST).then_some(Self(numbers))
    }
}

impl Take for Partitions {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        let written = String::take(found, at)?;
        let partitions = Self::parse(&written);
        if partitions.is_none() {
            let text = format!("`{}` are no partitions", at.written("").show(&written));
            at.error("", text, "each number once, such as `0..3` or `0,4,8`; 1024 at most");
        }
        partitions
    }
}

macro_rules! connects {
    ($($options:ty)+) => {$(
        impl $options {
            pub(crate) fn server(&self) -> NatsServer {
                NatsServer {
                    servers: self.servers.clone(),
                    auth: self.auth.clone(),
                    tls: self.tls.clone(),
                    domain: self.domain.clone(),
                    connect_within: self.connect_within,
                }
            }
        }
    )+};
}

connects!(NatsInput NatsOutput NatsLetters);

impl NatsInput {
    /// This consumer of this stream, with the defaults of a configuration. `server`: `HOST:PORT`,
    /// or a URL.
    pub fn new(
        server: impl Into<String>,
        stream: impl Into<String>,
        consumer: impl Into<String>,
    ) -> Self {
        Self {
            servers: Secret(vec![server.into()]),
            stream: stream.into(),
            consumer: consumer.into(),
            ..defaults_beside(&[("servers", "server"), ("stream", "s"), ("consumer", "c")])
        }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        let flaw = self.flaw(|option, name| at.written(option).show(name));
        if let Some((option, why, help)) = flaw {
            at.error(option, why, help);
            return None;
        }
        Some(self)
    }

    /// The option that does not go with the others or is no name, why, and what to do. `shown` is
    /// how a message has the value of an option.
    fn flaw(
        &self,
        shown: impl Fn(&'static str, &str) -> String,
    ) -> Option<(&'static str, String, &'static str)> {
        let subjects = self.subjects.as_deref().unwrap_or_default();
        let has_place = subjects.iter().any(|subject| subject.contains(PARTITION));
        if has_place != self.partitions.as_ref().is_some_and(|these| !these.0.is_empty()) {
            let why = "`partitions` and a subject with `{partition}` belong together";
            let (option, help) = match has_place {
                true => ("subjects", "say which ones this process reads: `partitions: 0..3`"),
                false => {
                    ("partitions", "write `{partition}` into a subject: `orders.{partition}.*`")
                }
            };
            return Some((option, why.to_owned(), help));
        }
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || ".*>/\\".contains(c);
        let names = [("stream", &self.stream), ("consumer", &self.consumer)];
        let (option, name) =
            names.into_iter().find(|(_, name)| name.is_empty() || name.contains(is_bad))?;
        let why = format!("`{}` is no name of a {option}", shown(option, name));
        Some((option, why, "no dots, spaces, slashes or wildcards"))
    }
}

#[cfg(feature = "client")]
impl NatsInput {
    /// What is wrong with them, in words for an operator.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some((_, why, help)) = self.flaw(|_, name| name.to_owned()) {
            return Err(format!("{why}: {help}"));
        }
        if self.held_at_most() == 0 || self.batch == 0 || self.batch_bytes == 0 {
            return Err("`capacity`, `batch` and `batch_bytes` are at least 1".to_owned());
        }
        if self.ack_wait < Duration::from_millis(200) {
            return Err("`ack_wait` is at least 200 ms".to_owned());
        }
        Ok(())
    }

    /// What reports, logs and dead letters call the source.
    pub(crate) fn described(&self) -> String {
        format!("nats:{}/{}", self.stream, self.consumer)
    }

    /// Of the partitions; `None` is the only one.
    pub(crate) fn numbers(&self) -> Vec<Option<u32>> {
        match self.partitions.as_ref().map_or(&[][..], |partitions| &partitions.0) {
            [] => vec![None],
            numbers => numbers.iter().copied().map(Some).collect(),
        }
    }

    /// How many messages of a consumer may be delivered and not acknowledged.
    pub(crate) fn held_at_most(&self) -> usize {
        self.capacity.unwrap_or(10_000)
    }
}

impl NatsOutput {
    /// To this subject, with the defaults of a configuration. `server`: `HOST:PORT`, or a URL.
    pub fn new(server: impl Into<String>, subject: NatsSubject) -> Self {
        let servers = Secret(vec![server.into()]);
        Self { servers, subject, ..defaults_beside(&[("servers", "server"), ("subject", "s")]) }
    }
}

impl NatsLetters {
    /// To this subject, with the defaults of a configuration. `server`: `HOST:PORT`, or a URL.
    pub fn new(server: impl Into<String>, subject: NatsSubject) -> Self {
        let servers = Secret(vec![server.into()]);
        Self { servers, subject, ..defaults_beside(&[("servers", "server"), ("subject", "s")]) }
    }

    fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if self.subject.wildcard().is_some() {
            let text = "a letter may have no event, so no field of one can be in its subject";
            at.error("subject", text, "for example `letters.orders`");
            return None;
        }
        Some(self)
    }
}
