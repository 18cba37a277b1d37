//! The settings of an event-bus pool: their names, ranges and defaults, written down once.

use super::{
    config_error::{ConfigError, ConfigErrors, ConfigProblem},
    engine::Engine,
    names,
    preset::Preset,
};

/// What a whole pool can hold; as many as [`PoolBuilder::capacity`](crate::PoolBuilder::capacity) takes.
const MAX_CAPACITY: usize = 100_000_000;

const GIB: u64 = 1 << 30;

/// The settings of an [`EventPool`](super::EventPool). In YAML, TOML and code they have the same names, ranges and defaults.
///
/// | key | default | range | |
/// |---|---|---|---|
/// | `preset` | none | see [`Preset`] | `pool_size` and `inbox_size` by name; each may be overridden |
/// | `pool_size` | 256 | 1 to 65,536 | workers: how many messages may be in hand at once |
/// | `inbox_size` | 1,000 | 1 to 10,000,000 | messages per worker that may wait; the bound is one for the whole pool |
/// | `max_restarts` | 3 | 0 to 1,000,000 | restarts of a worker within a minute before its slot is disabled |
/// | `enable_event_stream` | true | true or false | whether the pool tells what happens to it ([`PoolEvents`](crate::PoolEvents)), and logs it |
/// | `engine` | keyed | see [`Engine`] | what order there is |
/// | `memory_ceiling` | 2GiB | 1MiB or more | memory above which [`MemoryAboveCeiling`](crate::PoolEvent::MemoryAboveCeiling) is told |
///
/// ```
/// use greenroom::event_pool::{Engine, EventPoolConfig, Preset};
///
/// let config = EventPoolConfig { pool_size: 64, ..Preset::Orders.into() };
/// assert_eq!((config.pool_size, config.inbox_size), (64, 500));
///
/// // from an environment variable, a command line, ...
/// let mut config = EventPoolConfig::default();
/// config.set("maxRestarts", "10")?;
/// config.set("engine", "shared")?;
/// assert_eq!((config.max_restarts, config.engine), (10, Engine::Shared));
/// let error = config.set("pool_sise", "10").unwrap_err();
/// assert_eq!(error.to_string(), "there is no key pool_sise; did you mean pool_size?");
/// # Ok::<(), greenroom::event_pool::ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPoolConfig {
    /// Workers.
    pub pool_size: usize,
    /// Messages per worker that may wait.
    pub inbox_size: usize,
    /// Restarts of a worker within a minute.
    pub max_restarts: u32,
    /// Whether the pool tells what happens to it.
    pub enable_event_stream: bool,
    /// What order there is.
    pub engine: Engine,
    /// Bytes of memory that are too much.
    pub memory_ceiling: u64,
}

impl Default for EventPoolConfig {
    fn default() -> Self {
        Self {
            pool_size: 256,
            inbox_size: 1_000,
            max_restarts: 3,
            enable_event_stream: true,
            engine: Engine::default(),
            memory_ceiling: 2 * GIB,
        }
    }
}

impl From<Preset> for EventPoolConfig {
    fn from(preset: Preset) -> Self {
        let (pool_size, inbox_size) = (preset.pool_size(), preset.inbox_size());
        Self { pool_size, inbox_size, ..Self::default() }
    }
}

/// A key of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Preset,
    PoolSize,
    InboxSize,
    MaxRestarts,
    EnableEventStream,
    Engine,
    MemoryCeiling,
}

impl Key {
    const ALL: [Self; 7] = [
        Self::Preset,
        Self::PoolSize,
        Self::InboxSize,
        Self::MaxRestarts,
        Self::EnableEventStream,
        Self::Engine,
        Self::MemoryCeiling,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Preset => "preset",
            Self::PoolSize => "pool_size",
            Self::InboxSize => "inbox_size",
            Self::MaxRestarts => "max_restarts",
            Self::EnableEventStream => "enable_event_stream",
            Self::Engine => "engine",
            Self::MemoryCeiling => "memory_ceiling",
        }
    }

    /// The key of this spelling.
    pub(super) fn named(written: &str) -> Result<Self, ConfigError> {
        let mut all = Self::ALL.into_iter();
        all.find(|key| names::is_spelling(key.name(), written)).ok_or_else(|| {
            let did_you_mean = names::nearest(written, Self::ALL.map(Self::name));
            ConfigError::new(written, ConfigProblem::Unknown { did_you_mean })
        })
    }

    /// What it takes, where that is a number.
    fn range(self) -> Range {
        match self {
            Self::PoolSize => Range { min: 1, max: 65_536, shown: "1 to 65,536" },
            Self::InboxSize => Range { min: 1, max: 10_000_000, shown: "1 to 10,000,000" },
            Self::MaxRestarts => Range { min: 0, max: 1_000_000, shown: "0 to 1,000,000" },
            Self::MemoryCeiling => {
                Range { min: 1 << 20, max: u64::MAX, shown: "1MiB or more, such as 2GiB" }
            }
            Self::Preset | Self::EnableEventStream | Self::Engine => {
                Range { min: 0, max: 0, shown: "" }
            }
        }
    }
}

/// The numbers that a key takes, both ends included.
#[derive(Debug, Clone, Copy)]
struct Range {
    min: u64,
    max: u64,
    shown: &'static str,
}

impl Range {
    fn checked(self, key: Key, value: u64) -> Result<u64, ConfigError> {
        match (self.min..=self.max).contains(&value) {
            true => Ok(value),
            false => Err(ConfigError::wrong(key.name(), value, self.shown)),
        }
    }
}

impl EventPoolConfig {
    /// Sets a key by its name, in snake case or in camel case, to what is written. A preset sets both sizes, so it comes before
    /// what overrides it.
    ///
    /// # Errors
    /// There is no such key, or it does not take that value. Nothing has been changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        self.set_key(Key::named(key)?, value)
    }

    pub(super) fn set_key(&mut self, key: Key, value: &str) -> Result<(), ConfigError> {
        match key {
            Key::Preset => {
                let preset = word(key, value, Preset::ALL, |preset| preset.name())?;
                (self.pool_size, self.inbox_size) = (preset.pool_size(), preset.inbox_size());
            }
            Key::Engine => self.engine = word(key, value, Engine::ALL, |engine| engine.name())?,
            Key::EnableEventStream => self.enable_event_stream = flag(key, value)?,
            Key::PoolSize => self.pool_size = narrow(count(key, value)?),
            Key::InboxSize => self.inbox_size = narrow(count(key, value)?),
            Key::MaxRestarts => self.max_restarts = narrow(count(key, value)?),
            Key::MemoryCeiling => self.memory_ceiling = bytes(key, value)?,
        }
        Ok(())
    }

    /// Looks whether everything is in its range.
    ///
    /// # Errors
    /// All that is not.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let values = [
            (Key::PoolSize, self.pool_size as u64),
            (Key::InboxSize, self.inbox_size as u64),
            (Key::MaxRestarts, u64::from(self.max_restarts)),
            (Key::MemoryCeiling, self.memory_ceiling),
        ];
        let checked = values.map(|(key, value)| key.range().checked(key, value));
        let mut errors: Vec<_> = checked.into_iter().filter_map(Result::err).collect();
        errors.extend(self.too_large().filter(|_| errors.is_empty()));
        ConfigErrors::of(errors)
    }

    /// What holds of both sizes together.
    fn too_large(&self) -> Option<ConfigError> {
        let most = MAX_CAPACITY / self.pool_size.max(1);
        let expected = || {
            let (workers, capacity) = (self.pool_size, "100,000,000 messages");
            format!("at most {most}: with a pool_size of {workers}, a pool holds {capacity}")
        };
        let key = Key::InboxSize.name();
        (self.inbox_size > most).then(|| ConfigError::wrong(key, self.inbox_size, expected()))
    }

    /// How many messages may wait in all.
    pub fn capacity(&self) -> usize {
        self.pool_size.saturating_mul(self.inbox_size)
    }
}

fn count(key: Key, value: &str) -> Result<u64, ConfigError> {
    let range = key.range();
    let wrong =
        || ConfigError::wrong(key.name(), value, format!("a whole number, {}", range.shown));
    range.checked(key, whole(value).ok_or_else(wrong)?)
}

/// `1000` and `1_000`.
fn whole(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let framed = text.starts_with('_') || text.ends_with('_');
    (digits && !framed).then(|| text.replace('_', "").parse().ok()).flatten()
}

/// `2GiB`, `500MB`, or a number of bytes.
fn bytes(key: Key, value: &str) -> Result<u64, ConfigError> {
    const UNITS: [(&str, u64); 6] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", GIB),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| value.strip_suffix(name).map(|number| (number.trim_end(), unit)))
        .unwrap_or((value, 1));
    let range = key.range();
    let wrong = || ConfigError::wrong(key.name(), value, range.shown);
    let bytes = whole(number).and_then(|number| number.checked_mul(unit));
    range.checked(key, bytes.ok_or_else(wrong)?).map_err(|_| wrong())
}

fn flag(key: Key, value: &str) -> Result<bool, ConfigError> {
    value.parse().map_err(|_| ConfigError::wrong(key.name(), value, "true or false"))
}

fn word<T: Copy>(
    key: Key,
    value: &str,
    all: &'static [T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, ConfigError> {
    let found = all.iter().find(|word| names::is_spelling(name(**word), value));
    found.copied().ok_or_else(|| {
        let words: Vec<_> = all.iter().map(|word| name(*word)).collect();
        let did_you_mean = names::nearest(value, words.iter().copied());
        let (value, expected) = (value.to_owned(), format!("one of {}", words.join(", ")));
        ConfigError::new(key.name(), ConfigProblem::Wrong { value, expected, did_you_mean })
    })
}

/// What is in range fits.
fn narrow<T: TryFrom<u64> + Default>(value: u64) -> T {
    T::try_from(value).unwrap_or_default()
}
