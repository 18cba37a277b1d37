//! Where handled events go.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use greenroom_bus::http::{HttpAuth, HttpTls};
use greenroom_config::{
    At, Secret, count, duration, durations, each, flag, group, options, path, size, texts,
    units::DurationRange,
    units::{DAY_MS, GIB},
    url, variables, word, words,
};

use super::{
    condition::FieldCondition, kafka::KafkaOutput, nats::NatsOutput, rotate::RotateConfig,
};

options! {
    /// Where handled events go: exactly one kind.
    pub struct OutputConfig named name = "an output" {
        /// The event types: a type, a pattern or a list, as for handlers.
        on: Vec<String> = texts().default("\"**\"");
        /// Of these, the events to take by what is in them, as for handlers: `{ /total: { greater:
        /// 100 } }`. An event that is not taken goes to the next output that takes it.
        conditions as "where": Vec<FieldCondition> = each().or_empty();
        .. /// What it writes to.
        kind: OutputKind;
    }
}

options! {
    /// What it writes to.
    pub enum OutputKind = "an output" {
        /// Appends to a file, one CloudEvent (JSON) per line, in the order of handling.
        File(FileOutput) as "file" = group();
        /// Posts to a URL, as CloudEvents over HTTP.
        Http(HttpOutput) as "http" = group().live();
        /// Publishes to a topic of Kafka.
        Kafka(KafkaOutput) as "kafka" = group();
        /// Publishes to NATS JetStream.
        Nats(NatsOutput) as "nats" = group();
    }
}

options! {
    /// Written and synced before the events are acknowledged.
    pub struct FileOutput = "a file output" {
        /// The file. It is created when it is missing; its directory is not. `-` is standard
        /// output, which one output can have: the report goes to standard error then.
        path: PathBuf = path();
        /// With `true`, every run starts the file anew. Files that were put aside stay.
        truncate: bool = flag().default("false");
        /// Puts the file aside when it is large or old.
        rotate: Option<RotateConfig> = group().optional();
    }
}

options! {
    /// 2xx stores the event; 408, 425, 429, 5xx, a timeout or a refused connection is tried again
    /// until it is stored, in order; 401 and 403 pause the output; any other answer makes a dead
    /// letter of the event that was handled. A reload changes all of it. docs/outputs.md says
    /// more.
    pub struct HttpOutput = "an http output", then HttpOutput::batch_has_its_mode {
        /// Where to post to.
        url: Secret<String> = url().secret();
        /// Headers added to each request. `ce-*`, `content-type` and the like are written by
        /// greenroom and cannot be set.
        headers: Secret<Vec<(String, String)>> = variables().secret().default("{}");
        /// How the target is told who posts. Without it, by nothing but the URL and the headers.
        auth: Option<HttpAuth> = group().optional();
        /// Whom to trust, and what to show. Without it, the authorities that the system trusts.
        tls: Option<HttpTls> = group().optional();
        /// `binary` sends the data as the body and the attributes as `ce-` headers;
        /// `structured` sends the event as JSON; `batch` sends several as a JSON array.
        mode: HttpOutputMode = word().default("binary");
        /// How many events `mode: batch` sends at once.
        batch: HttpBatch = group().default("{}");
        /// How many requests are under way at once. Events whose inputs have an order
        /// (`order_by` of their handler) arrive in it whatever this is; with 1, all events arrive
        /// in the order in which they were handled.
        concurrency: usize = count(1..=1_024).default("8");
        /// How long one attempt may take.
        timeout: Duration = duration(1..=DAY_MS).default("5s");
        /// How long it waits after an attempt that failed: the first time, and at most. A
        /// `Retry-After` of the target goes before it.
        backoff: DurationRange = durations().default("200ms..30s");
        /// What follows from an answer, where that is to differ from the usual, as for `http`
        /// handlers. `settle` means that it is stored; `park` is the same as `reject`.
        status: Vec<(String, String)> = variables().default("{}");
    }
}

words! {
    /// How events are written into requests.
    pub enum HttpOutputMode {
        /// Data as the body, attributes as headers.
        Binary = "binary",
        /// The event as JSON.
        Structured = "structured",
        /// Several events as a JSON array.
        Batch = "batch",
    }
}

options! {
    /// A request of `mode: batch` is sent when one of these is reached.
    #[derive(Copy, Eq)]
    pub struct HttpBatch = "batch" {
        /// At most so many.
        events: usize = count(1..=10_000).default("100");
        /// About so many bytes of events. A larger event goes alone.
        bytes: usize = size(1024..=GIB).default("1MiB");
        /// How long an event waits for others.
        within: Duration = duration(0..=DAY_MS).default("50ms");
    }
}

impl OutputConfig {
    /// The file that it writes to, where it does.
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            OutputKind::File(file) => Some(&file.path),
            OutputKind::Http(_) | OutputKind::Kafka(_) | OutputKind::Nats(_) => None,
        }
    }

    /// It writes to standard output.
    pub fn is_standard(&self) -> bool {
        self.path() == Some(Path::new("-"))
    }
}

impl HttpOutput {
    fn batch_has_its_mode(self, at: &mut At<'_>) -> Option<Self> {
        if at.has("batch") && self.mode != HttpOutputMode::Batch {
            let text = "`batch` is for `mode: batch` only";
            at.error("batch", text, "write `mode: batch`, or leave `batch` out");
            return None;
        }
        Some(self)
    }
}
