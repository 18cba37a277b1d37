//! The settings of an event-bus pool: their names, ranges and defaults, declared once.

use greenroom_config::{
    NotSet, Options, count, defaults, flag, near, options,
    schema::{Kind, Opt},
    set, size,
    units::{count as whole, show_size},
    word,
};

use super::{
    config_error::{ConfigError, ConfigErrors, ConfigProblem},
    engine::Engine,
    preset::Preset,
};
use crate::size::MAX_CAPACITY;

#[cfg(feature = "config")]
mod text;

options! {
    /// The settings of an [`EventPool`](super::EventPool). In YAML, TOML and code they have the
    /// same names, ranges and defaults. With the key `preset`, both sizes are set by name
    /// ([`Preset`]); each may be overridden.
    #[derive(Copy, Eq)]
    pub struct EventPoolConfig = "an event pool" {
        /// Workers: how many messages may be in hand at once. 1 to 65,536; 256 unless said
        /// otherwise.
        pool_size: usize = count(1..=65_536).default("256");
        /// Messages per worker that may wait; the bound is one for the whole pool. 1 to 10,000,000;
        /// 1,000 unless said otherwise.
        inbox_size: usize = count(1..=10_000_000).default("1_000");
        /// Restarts of a worker within a minute before its slot is disabled. 0 to 1,000,000; 3
        /// unless said otherwise.
        max_restarts: u32 = count(0..=1_000_000).default("3");
        /// Whether the pool tells what happens to it ([`PoolEvents`](crate::PoolEvents)), and logs
        /// it; it does unless said otherwise.
        enable_event_stream: bool = flag().default("true");
        /// What order there is; [`Engine::Keyed`] unless said otherwise.
        engine: Engine = word().default("keyed");
        /// Bytes of memory above which [`MemoryAboveCeiling`](crate::PoolEvent::MemoryAboveCeiling)
        /// is told. 1MiB or more; 2GiB unless said otherwise.
        memory_ceiling: u64 = size(1 << 20..=u64::MAX).default("2GiB");
    }
}

/// Sets both sizes. Not a field, since the sizes are.
pub(super) const PRESET: Opt =
    word::<Preset>().optional().opt("preset", "Both sizes, by what the pool is for.");

impl Default for EventPoolConfig {
    fn default() -> Self {
        defaults("").expect("the declared defaults are values of their options")
    }
}

impl From<Preset> for EventPoolConfig {
    fn from(preset: Preset) -> Self {
        let (pool_size, inbox_size) = (preset.pool_size(), preset.inbox_size());
        Self { pool_size, inbox_size, ..Self::default() }
    }
}

/// The option of this spelling.
pub(super) fn known(key: &str) -> Result<&'static Opt, ConfigError> {
    let found =
        EventPoolConfig::GROUP.find(key).or_else(|| PRESET.is_named(key).then_some(&PRESET));
    found.ok_or_else(|| {
        let names = EventPoolConfig::GROUP.all().map(|opt| opt.name).chain([PRESET.name]);
        let did_you_mean = near::nearest(key, names);
        ConfigError::new(key, ConfigProblem::Unknown { did_you_mean })
    })
}

impl EventPoolConfig {
    /// Sets a key by its name, in snake case or in camel case, to a value as text. A preset sets
    /// both sizes, so set it before the sizes that override it.
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
    ///
    /// # Errors
    /// There is no such key, or it does not take that value. Nothing has been changed then.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let opt = known(key)?;
        if opt.name == PRESET.name {
            let preset = Preset::named(value).ok_or_else(|| wrong(opt, value))?;
            (self.pool_size, self.inbox_size) = (preset.pool_size(), preset.inbox_size());
            return Ok(());
        }
        set(self, opt.name, value).map_err(|why| match why {
            NotSet::Wrong(opt) => wrong(opt, value),
            NotSet::Unknown => ConfigError::new(key, ConfigProblem::Unknown { did_you_mean: None }),
        })
    }

    /// Looks whether everything is in its range.
    ///
    /// # Errors
    /// All that is not.
    pub fn check(&self) -> Result<(), ConfigErrors> {
        let beyond = self.beyond().into_iter();
        let mut errors: Vec<_> = beyond
            .filter_map(|(key, value)| Some(wrong(EventPoolConfig::GROUP.find(key)?, &value)))
            .collect();
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
        (self.inbox_size > most)
            .then(|| ConfigError::wrong("inbox_size", self.inbox_size, expected()))
    }

    /// How many messages may wait in all.
    pub fn capacity(&self) -> usize {
        self.pool_size.saturating_mul(self.inbox_size)
    }
}

/// The error of a value that the option does not take.
fn wrong(opt: &Opt, value: &str) -> ConfigError {
    match opt.kind {
        Kind::Count { min, max } => {
            let (min, max) = (grouped(min), grouped(max));
            match whole(value) {
                Some(number) => ConfigError::wrong(opt.name, number, format!("{min} to {max}")),
                None => {
                    let expected = format!("a whole number, {min} to {max}");
                    ConfigError::wrong(opt.name, value, expected)
                }
            }
        }
        Kind::Size { min, .. } => {
            let expected = format!("{} or more, such as 2GiB", show_size(min));
            ConfigError::wrong(opt.name, value, expected)
        }
        Kind::Choice(words) => {
            let expected = format!("one of {}", words.join(", "));
            let did_you_mean = near::nearest(value, words.iter().copied());
            let value = value.to_owned();
            ConfigError::new(opt.name, ConfigProblem::Wrong { value, expected, did_you_mean })
        }
        _ => ConfigError::wrong(opt.name, value, opt.kind.expected().replace('`', "")),
    }
}

/// `65536` as `65,536`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_the_declaration_has_no_mistakes() {
        assert_eq!(EventPoolConfig::GROUP.mistakes(), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let grouped = [0, 999, 1_000, 65_536, 10_000_000].map(grouped);
        assert_eq!(grouped, ["0", "999", "1,000", "65,536", "10,000,000"]);
    }
}
