//! The file as a whole, and what stands at its top.

use std::{path::PathBuf, time::Duration};

use greenroom_bus::{
    engine::{NoHandler, OutageConfig},
    sink::Rotate,
    store::letters::{LetterStoreOptions, Mask},
};
use greenroom_config::{
    At, Chosen, Kinds, count, defaults, duration, flag, group, named, options, path, size, texts,
    units::{DAY_MS, GIB},
    word, words,
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
    /// One file says where events come from, which pools of workers there are, what handles
    /// which events, and where results and dead letters go. Relative paths start at the
    /// directory of the file.
    pub struct Config = "the configuration", then Config::inherited {
        /// Where events come from, by name.
        inputs: Vec<InputConfig> = named();
        /// Pools of workers, by name. `default` always exists.
        pools: Vec<PoolConfig> = named().or_empty();
        /// What handles which events, by name.
        handlers: Vec<HandlerConfig> = named();
        /// Where handled events go, by name. Each event goes to the first output that matches,
        /// unless `all_outputs` says otherwise.
        outputs: Vec<OutputConfig> = named().or_empty();
        /// With `true`, a handled event goes to every output that matches, rather than to the
        /// first. It is settled when all of them have stored it.
        all_outputs: bool = flag().default("false");
        /// How many events may wait in a pool, in all: the `queue` of every pool that names
        /// neither `queue` nor `inbox_size` nor a `preset`.
        buffer: usize = count(1..=10_000_000).live().default("1000");
        /// What happens to an event that no handler takes: `dead_letter` stores it with the
        /// reason, `ignore` acknowledges and counts it, `refuse` leaves it unacknowledged, and
        /// the run ends with exit code 3.
        no_handler: NoHandler = word().default("dead_letter");
        /// The same for an event that handlers are named for, but that none of them takes: their
        /// `match` or `where` leaves it.
        handler_rejected: NoHandler = word().default("dead_letter");
        /// Lets what handlers make come back in, instead of going to an output.
        loopback: Option<LoopbackConfig> = group().optional();
        /// What is done about pools whose sizes do not suit their load, where a pool says nothing
        /// else: `off` or `say` (greenroom tells what to change). To say it costs a look at each
        /// pool a second.
        autotune: Autotune = word().live().default("say");
        /// When sizes are worth advice.
        advisor: AdvisorConfig = group().live().default("{}");
        /// Where events go that could not be handled.
        dead_letters: DeadLettersConfig = group().default("{}");
        /// How a run ends.
        shutdown: ShutdownConfig = group().default("{}");
        /// When failures are an outage of the target and no fault of the events.
        outage: OutageConfig = group().default("{}");
        /// Where a running greenroom can be asked what it does, and told what to change.
        /// Without it, it listens nowhere.
        admin: Option<AdminConfig> = group().optional();
        /// Where traces, metrics and logs go beside that.
        telemetry: Option<TelemetryConfig> = group().optional();
    }
}

options! {
    /// What comes back in belongs to the event that it was made of, which is settled when all
    /// of it is. Room for what a handler may send back is reserved before it starts, so no
    /// cycle can stand still.
    pub struct LoopbackConfig = "loopback" {
        /// The event types that come back: a type, a pattern or a list.
        on: Vec<String> = texts();
        /// How many events may be on their way back, or reserved for, at once. At least what
        /// each handler declares; for all workers to have something to do, that times the
        /// workers and the queue of its pool.
        room: usize = count(1..=10_000_000).default("1000");
    }
}

options! {
    /// An event that becomes a dead letter is acknowledged once the letter is stored.
    pub struct DeadLettersConfig = "dead_letters", then DeadLettersConfig::one_place {
        /// Appends to a file, one letter (JSON) per line.
        file: DeadLetterFile = group().default("{}");
        /// Keeps them in a store in place of the file, where they can be found, edited and replayed
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
    /// A directory of its own, which one greenroom has at a time. Nobody but its owner can read it.
    pub struct LetterStoreConfig = "a store of dead letters", then LetterStoreConfig::masks {
        /// The directory. It is created when it is missing; its parent is not.
        path: PathBuf = path().default("dead-letters");
        /// How many letters are kept, and for how long; all of them and for ever when this is not
        /// given. One that is to be replayed is never removed.
        retention: LetterRetention = group().default("{}");
        /// What of an event nobody is shown by a list, an export or the admin listener: JSON
        /// pointers such as `/data/card`, in which a `*` stands for every name or number. Handlers
        /// get it all the same. The bytes of what is no event are not shown at all then. The owner
        /// of the store sees it with `--unmasked`.
        mask: Option<Vec<String>> = texts().optional();
        /// Whether values that `mask` hides are hidden in errors as well: what a handler or an
        /// output says of an event may repeat them. Texts and numbers of four characters or more
        /// are replaced by `***` before the error is stored, logged or shown, so that
        /// `--unmasked` does not bring them back.
        mask_errors: bool = flag().default("false");
    }
}

options! {
    /// The oldest letters are removed first. What is removed is logged and counted.
    #[derive(Copy, Eq)]
    pub struct LetterRetention = "retention" {
        /// A letter is removed once it was given up so long ago.
        age: Option<Duration> = duration(1_000..=3_660 * DAY_MS).optional();
        /// Letters are removed while all together are larger than this.
        size: Option<u64> = size(1_048_576..=1_024 * GIB).optional();
    }
}

options! {
    /// One JSON object per line: the event or the raw bytes, the reason, the last error, the
    /// attempts.
    pub struct DeadLetterFile = "a dead-letter file" {
        /// The file. It is created when it is missing; its directory is not. One that has no letter
        /// at the end of a run is removed.
        path: PathBuf = path().default("dead-letters.ndjson");
        /// Puts the file aside when it is large or old. Letters in files that were put aside are
        /// not among those that the admin listener shows; with `keep`, the oldest are lost.
        rotate: Option<Rotate> = group().optional();
    }
}

options! {
    /// The first Ctrl-C drains, the second stops at once.
    pub struct ShutdownConfig = "shutdown" {
        /// How long draining may take; what is left then is refused, so that its source
        /// delivers it again.
        deadline: Duration = duration(0..=DAY_MS).default("30s");
        /// What draining waits for, of every input. Without it: of inputs that keep their
        /// positions (Kafka, NATS, `http`, a file with a checkpoint) what handlers have in hand,
        /// since the rest is delivered again; of others all that was taken.
        finish: Option<Finish> = word().optional();
    }
}

words! {
    /// What a stop waits for.
    pub enum Finish {
        /// What handlers have in hand. What waits is given back, and of an input that keeps no
        /// positions it is refused: exit code 3.
        InHand = "in_hand",
        /// All that was taken.
        All = "all",
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
    pub fn to(&self) -> LettersTo<'_> {
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
            if let Err(error) = Mask::of(&[pointer]) {
                let help = "for example `mask: [/data/card, /data/items/*/iban]`";
                at.error("mask", error.to_string(), help);
                return None;
            }
        }
        Some(self)
    }

    /// What it keeps and shows.
    ///
    /// # Errors
    /// A mask that is none; a configuration that was checked has none.
    pub(crate) fn options(&self) -> Result<LetterStoreOptions, String> {
        let mask = Mask::of(self.mask.as_deref().unwrap_or_default());
        let mask = mask.map_err(|error| format!("dead_letters.store.mask: {error}"))?;
        let (age, size) = (self.retention.age, self.retention.size);
        Ok(LetterStoreOptions { age, size, mask, mask_errors: self.mask_errors })
    }
}

impl Config {
    /// An output has standard output, so nothing else is written there.
    pub fn has_standard_output(&self) -> bool {
        self.outputs.iter().any(OutputConfig::is_standard)
    }

    /// What is sent by OTLP, where anything is.
    pub fn otlp(&self) -> Option<&OtlpConfig> {
        self.telemetry.as_ref()?.otlp.as_ref()
    }

    /// Puts in place what pools inherit from the top, and handlers from their pools.
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
