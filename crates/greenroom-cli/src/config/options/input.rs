//! Where events come from.

use std::{path::PathBuf, time::Duration};

use greenroom_config::{
    count, duration, flag, group, number, options, path, rate, size, texts, units::Rate,
};

use super::{
    bounds::{DAY_MS, GIB},
    http_input::HttpInput,
    kafka::KafkaInput,
    nats::NatsInput,
    records::RecordsConfig,
};

options! {
    /// Where events come from: exactly one kind.
    pub struct InputConfig named name = "an input" {
        /// How many of its events may wait beside full pools before it pauses. Until then a
        /// full pool stops no other.
        run_ahead: usize = count(1..=10_000_000).default("10000");
        /// How many bytes of its events may be taken and not settled before it pauses. An event
        /// that is larger passes while nothing else of its input is in flight.
        in_flight: u64 = size(1024..=1024 * GIB).default("64MiB");
        /// How often its positions are stored, sooner where much was settled since: about so much
        /// settled work is delivered again after a crash. Without it, every 100 ms where they are a
        /// file on this machine (a checkpoint, the log of `http`), and every second with a broker.
        commit_every: Option<Duration> = duration(10..=DAY_MS).optional();
        /// How many levels of arrays and objects the data of an event may have. One with more is a
        /// dead letter (`malformed`): many programs fail at JSON that is nested too deeply.
        max_depth: u32 = count(1..=1_000_000).default("128");
        /// The rule that makes events of what is read, where that is no CloudEvents. Without it,
        /// each line or record, or what is posted, is a CloudEvent.
        records: Option<RecordsConfig> = group().optional();
        .. /// What it reads.
        kind: InputKind;
    }
}

options! {
    /// What it reads.
    pub enum InputKind = "an input" {
        /// Reads a file, or several one after the other, from the start or the checkpoint to the
        /// end.
        File(FileInput) as "file" = group();
        /// Takes what is posted over HTTP, and answers once it is on disk.
        Http(HttpInput) as "http" = group();
        /// Reads topics of Kafka.
        Kafka(KafkaInput) as "kafka" = group();
        /// Reads a stream of NATS JetStream.
        Nats(NatsInput) as "nats" = group();
        /// Makes events up, the same ones for the same seed.
        Generator(GeneratorConfig) as "generator" = group();
    }
}

options! {
    /// One CloudEvent (JSON) on each line, or what `records` makes one of; plain, gzip or zstd,
    /// told apart by their content.
    pub struct FileInput = "a file input" {
        /// The file. `-` is standard input. A directory stands for the files in it whose names end
        /// in `.ndjson`, `.jsonl`, `.json`, `.gz` or `.zst` and begin with no dot; a pattern
        /// (`events/*.ndjson`) for those that match, with `*`, `?`, `[ab]` and, for directories at
        /// any depth, `**`. They are read one after the other, in the order of their names; which
        /// there are is looked up at the start, unless they are followed. A file that is there
        /// under this very name is meant, whatever its characters.
        path: PathBuf = path();
        /// The longest line that is read as an event. Of a longer one, a dead letter keeps so
        /// many bytes, and its length and SHA-256.
        max_event: u64 = size(1024..=GIB).default("16MiB");
        /// A file in which the lines that are done are kept, in whichever order they were done:
        /// a later run goes on from there. Made when it is missing. Of several files it keeps each.
        /// Without it, each run reads the file from its start.
        checkpoint: Option<PathBuf> = path().optional();
        /// The file grows, and is read until a signal: each line when it is finished. It may be
        /// missing, renamed, cut or replaced (docs/follow.md). Of a directory or a pattern, files
        /// that appear are read too.
        follow: bool = flag().default("false");
        /// How often a file that is followed is looked at.
        poll: Duration = duration(1..=DAY_MS).default("200ms");
    }
}

options! {
    /// Events made up from a seed, for trying things out and for measuring.
    pub struct GeneratorConfig = "a generator" {
        /// How many. Without it, until a signal.
        count: Option<u64> = count(1..=1_000_000_000_000).optional();
        /// How fast. Without it, as fast as they are handled.
        rate: Option<Rate> = rate().optional();
        /// How many different subjects.
        keys: u64 = count(1..=100_000_000).default("1000");
        /// How uneven the subjects are: 0 is even, 1 gives the n-th of them a share of 1/n.
        zipf: f64 = number(0.0..=10.0).default("1.0");
        /// The event types, each as likely as the others.
        types: Vec<String> = texts().default("[greenroom.generated]");
        /// The size of the data of each event.
        payload: u64 = size(0..=16 << 20).default("100");
        /// The same seed makes the same events.
        seed: u64 = count(0..=i64::MAX as u64).default("1");
    }
}

impl InputKind {
    /// It keeps positions: a later run goes on where this one ends.
    pub(crate) fn keeps_positions(&self) -> bool {
        match self {
            Self::File(file) => file.checkpoint.is_some(),
            Self::Http(_) | Self::Kafka(_) | Self::Nats(_) => true,
            Self::Generator(_) => false,
        }
    }
}
