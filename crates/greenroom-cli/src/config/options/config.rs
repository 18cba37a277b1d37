//! The file as a whole, and its top-level options.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::{
    engine::{Finish, NoHandler, OutageConfig},
    sink::Rotate,
    store::letters::{LetterStoreOptions, Mask},
};
use greenroom_config::{
    At, Chosen, Kinds, count, defaults, duration, flag, group, named, number, options, path, size,
    texts,
    units::{DAY_MS, GIB},
    word,
};

use super::{
    admin::AdminConfig,
    advisor::{AdvisorConfig, Autotune},
    handler::HandlerConfig,
    input::InputConfig,
    output::OutputConfig,
    pool::PoolConfig,
    telemetry::{OtlpConfig, TelemetryConfig},
};
use crate::config::kinds::Letters;

options! {
    /// One file describes the inputs that events come from, the pools of workers, the handlers of
    /// events, and the places for results and dead letters. Relative paths start at the directory
    /// of the file.
    pub struct Config = "the configuration", then Config::inherited {
        /// Where events come from, by name.
        inputs: Vec<InputConfig> = named();
        /// Pools of workers, by name. `default` always exists.
        pools: Vec<PoolConfig> = named().or_empty();
        /// The handlers of events, by name.
        handlers: Vec<HandlerConfig> = named();
        /// Where handled events go, by name. Each event goes to the first output that matches,
        /// unless `all_outputs` is set.
        outputs: Vec<OutputConfig> = named().or_empty();
        /// With `true`, a handled event goes to every output that matches, rather than to the
        /// first. It is settled once all of them have stored it.
        all_outputs: bool = flag().default("false");
        /// How many events may wait in a pool, in total: the `queue` of every pool that sets none
        /// of `queue`, `inbox_size` and `preset`.
        buffer: usize = count(1..=10_000_000).live().default("1000");
        /// The treatment of an event without a handler: `dead_letter` stores it with the reason,
        /// `ignore` acknowledges and counts it, `refuse` leaves it unacknowledged, and the run ends
        /// with exit code 3.
        no_handler: NoHandler = word().default("dead_letter");
        /// The same for an event whose type has handlers, but whose handlers all reject it by
        /// `match` or `where`.
        handler_rejected: NoHandler = word().default("dead_letter");
        /// Sends events that handlers make back in, instead of to an output.
        loopback: Option<LoopbackConfig> = group().optional();
        /// The reaction to pools whose sizes do not suit their load, unless a pool sets its own:
        /// `off` or `say` (greenroom recommends changes). Advice takes one look at each pool per
        /// second.
        autotune: Autotune = word().live().default("say");
        /// The rules for advice on sizes.
        advisor: AdvisorConfig = group().live().default("{}");
        /// Where events go that could not be handled.
        dead_letters: DeadLettersConfig = group().default("{}");
        /// How a run ends.
        shutdown: ShutdownConfig = group().default("{}");
        /// When failures count as an outage of the target rather than a fault of the events.
        outage: OutageConfig = group().default("{}");
        /// Checks while greenroom runs that a key is in one pair of hands at a time, for a sample
        /// of the keys. Without it, no key is watched, at no cost.
        audit: Option<AuditConfig> = group().optional();
        /// The address where a running greenroom answers questions and takes commands. Without it,
        /// it does not listen at all.
        admin: Option<AdminConfig> = group().optional();
        /// Where traces, metrics and logs go in addition.
        telemetry: Option<TelemetryConfig> = group().optional();
    }
}

options! {
    /// Events that come back belong to the event that they were made from, which is settled once
    /// all of them are. Room for the events that a handler may send back is reserved before it
    /// starts, so that no cycle can deadlock.
    pub struct LoopbackConfig = "loopback" {
        /// The event types that come back: a type, a pattern or a list.
        on: Vec<String> = texts();
        /// How many events may be on their way back at once, reservations included. At least the
        /// number that each handler declares; to keep all workers busy, that times the workers and
        /// the queue of its pool.
        room: usize = count(1..=10_000_000).default("1000");
    }
}

options! {
    /// An event that becomes a dead letter is acknowledged once the letter is stored.
    pub struct DeadLettersConfig = "dead_letters", then DeadLettersConfig::one_place {
        /// Appends to a file, one letter (JSON) per line.
        file: DeadLetterFile = group().default("{}");
        /// Keeps them in a store instead of the file, where they can be found, edited and replayed
        /// (`greenroom dead-letters`, docs/dead-letters.md).
        store: Option<LetterStoreConfig> = group().optional();
        .. /// The broker that they go to.
        broker: Option<Chosen<Letters>>;
    }
}

/// The one place that dead letters go to.
#[derive(Debug, Clone, Copy)]
pub enum LettersTo<'a> {
    /// A file.
    File(&'a DeadLetterFile),
    /// A store.
    Store(&'a LetterStoreConfig),
    /// A topic or a subject of a broker.
    Broker(&'a Chosen<Letters>),
}

options! {
    /// A directory of its own, used by one greenroom at a time. Only its owner can read it.
    pub struct LetterStoreConfig = "a store of dead letters", then LetterStoreConfig::masks {
        /// The directory. It is created if it is missing; its parent is not.
        path: PathBuf = path().default("dead-letters");
        /// How many letters are kept, and for how long; all of them, forever, if this is not given.
        /// A letter that is to be replayed is never removed.
        retention: LetterRetention = group().default("{}");
        /// The parts of an event that lists, exports and the admin listener hide: JSON pointers
        /// such as `/data/card`, in which `*` matches every name or number. Handlers still get
        /// them. The bytes of a record that is no event are then hidden entirely. The owner of the
        /// store can show hidden values with `--unmasked`.
        mask: Option<Vec<String>> = texts().optional();
        /// Whether values that `mask` hides are also hidden in errors: the error of a handler or an
        /// output may quote them. Texts and numbers of four characters or more are replaced by
        /// `***` before the error is stored, logged or shown, so `--unmasked` does not bring them
        /// back.
        mask_errors: bool = flag().default("false");
    }
}

options! {
    /// The oldest letters are removed first. Removed letters are logged and counted.
    #[derive(Copy, Eq)]
    pub struct LetterRetention = "retention" {
        /// A letter is removed this long after its event was given up.
        age: Option<Duration> = duration(1_000..=3_660 * DAY_MS).optional();
        /// Letters are removed while their total size is larger than this.
        size: Option<u64> = size(1_048_576..=1_024 * GIB).optional();
    }
}

options! {
    /// One JSON object per line: the event or the raw bytes, the reason, the last error, the
    /// attempts.
    pub struct DeadLetterFile = "a dead-letter file" {
        /// The file. It is created if it is missing; its directory is not. A file without a letter
        /// at the end of a run is removed.
        path: PathBuf = path().default("dead-letters.ndjson");
        /// Rotates the file when it is large or old. The admin listener does not show letters in
        /// rotated files; with `keep`, the oldest are lost.
        rotate: Option<Rotate> = group().optional();
    }
}

options! {
    /// Two events of a key in hand at once, or an event out of order, are defects of greenroom:
    /// each is logged and counted (`greenroom_invariant_violations_total`). Batches are not
    /// watched.
    #[derive(Copy)]
    pub struct AuditConfig = "audit" {
        /// The share of the keys that are watched, chosen by their hash: 0.01 is one of a hundred,
        /// 1 is all. A watched key costs a lock at the start and end of each attempt.
        share: f64 = number(0.0..=1.0).default("0.01");
    }
}

options! {
    /// The first Ctrl-C drains, the second stops at once.
    pub struct ShutdownConfig = "shutdown" {
        /// How long draining may take; events that remain are then refused, so that their source
        /// delivers them again.
        deadline: Duration = duration(0..=DAY_MS).default("30s");
        /// The events that draining waits for, at every input. By default, an input that stores its
        /// positions (Kafka, NATS, `http`, a file with a checkpoint) waits for those that handlers
        /// have in hand, since the rest is delivered again; any other waits for all that it has
        /// read.
        finish: Option<Finish> = word().optional();
    }
}

impl DeadLettersConfig {
    fn one_place(self, at: &mut At<'_>) -> Option<Self> {
        let others = self.store.as_ref().map(|_| "store").into_iter();
        let others = others.chain(self.broker.as_ref().map(Kinds::key));
        let file = at.has("file").then_some("file");
        let places: Vec<_> = file.into_iter().chain(others).collect();
        if let [one, another, ..] = places[..] {
            let help = format!("leave `{one}` or `{another}` out");
            let text = format!("dead letters go to one place, and `{another}` is another");
            at.error(one, text, &help);
            return None;
        }
        Some(self)
    }

    /// Where they go.
    pub fn destination(&self) -> LettersTo<'_> {
        match (&self.store, &self.broker) {
            (Some(store), _) => LettersTo::Store(store),
            (None, Some(broker)) => LettersTo::Broker(broker),
            (None, None) => LettersTo::File(&self.file),
        }
    }
}

impl LetterStoreConfig {
    fn masks(self, at: &mut At<'_>) -> Option<Self> {
        for pointer in self.mask.iter().flatten() {
            if let Err(error) = Mask::new(&[pointer]) {
                let help = "for example `mask: [/data/card, /data/items/*/iban]`";
                at.error("mask", error.to_string(), help);
                return None;
            }
        }
        Some(self)
    }

    /// The data that the store keeps and shows.
    ///
    /// # Errors
    /// An invalid mask; a checked configuration has none.
    pub(crate) fn options(&self) -> Result<LetterStoreOptions, String> {
        let mask = Mask::new(self.mask.as_deref().unwrap_or_default());
        let mask = mask.map_err(|error| format!("dead_letters.store.mask: {error}"))?;
        let (age, size) = (self.retention.age, self.retention.size);
        Ok(LetterStoreOptions { age, size, mask, mask_errors: self.mask_errors })
    }
}

impl Config {
    /// An output writes to standard output, so nothing else may be written there.
    pub fn has_standard_output(&self) -> bool {
        self.outputs.iter().any(OutputConfig::is_standard)
    }

    /// The settings of OTLP, if it sends anything.
    pub fn otlp(&self) -> Option<&OtlpConfig> {
        self.telemetry.as_ref()?.otlp.as_ref()
    }

    /// Fills in what pools inherit from the top, and handlers from their pools.
    fn inherited(mut self, at: &mut At<'_>) -> Option<Self> {
        if !self.pools.iter().any(|pool| pool.name == "default") && !at.has("pools.default") {
            self.pools.insert(0, defaults("default")?);
        }
        for pool in &mut self.pools {
            if !["queue", "inbox_size", "preset"]
                .iter()
                .any(|option| at.has(&format!("pools.{}.{option}", pool.name)))
            {
                pool.queue = self.buffer;
            }
            if !at.has(&format!("pools.{}.autotune", pool.name)) {
                pool.autotune = self.autotune;
            }
            pool.advisor = pool.advisor.inherit(&self.advisor, &pool.name, at);
        }
        for handler in &mut self.handlers {
            let pool = self.pools.iter().find(|pool| pool.name == handler.pool);
            handler.inherit(pool, at);
        }
        Some(self)
    }
}
