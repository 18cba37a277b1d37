//! The settings of an event-bus pool: their names, ranges and defaults, declared once.

use greenroom_config::{
    At, Options, Place, Problem, Problems, count, defaults, flag, options, size, word,
};

use super::{engine::Engine, preset::Preset};
use crate::size::MAX_CAPACITY;

options! {
    /// The settings of an [`EventPool`](super::EventPool). In YAML, TOML and code they have the
    /// same names, ranges and defaults; YAML and TOML also take them in camel case.
    ///
    /// ```
    /// use greenroom::event_pool::{EventPoolConfig, Preset};
    ///
    /// let config = EventPoolConfig { pool_size: Some(64), ..Preset::Orders.into() };
    /// assert_eq!((config.pool_size(), config.inbox_size()), (64, 500));
    /// ```
    #[derive(Copy, Eq)]
    pub struct EventPoolConfig = "an event pool", then EventPoolConfig::fitting {
        /// Both sizes, by the purpose of the pool; [`Preset::Standard`] by default. Each size may
        /// be overridden.
        preset: Preset = word().default("standard");
        /// Workers: how many messages may be in hand at once. 1 to 65,536; 256 with the standard
        /// preset.
        pool_size: Option<usize> = count(1..=65_536).optional();
        /// Messages per worker that may wait; the bound is one for the whole pool. 1 to 10,000,000;
        /// 1,000 with the standard preset.
        inbox_size: Option<usize> = count(1..=10_000_000).optional();
        /// Restarts of a worker within a minute before its slot is disabled. 0 to 1,000,000; 3 by
        /// default.
        max_restarts: u32 = count(0..=1_000_000).default("3");
        /// Whether the pool reports its events ([`PoolEvents`](crate::PoolEvents)) and logs them;
        /// it does by default.
        enable_event_stream: bool = flag().default("true");
        /// The order of messages; [`Engine::Keyed`] by default.
        engine: Engine = word().default("keyed");
        /// Bytes of memory above which [`MemoryAboveCeiling`](crate::PoolEvent::MemoryAboveCeiling)
        /// is reported. 1MiB or more; 2GiB by default.
        memory_ceiling: u64 = size(1 << 20..=u64::MAX).default("2GiB");
    }
}

impl Default for EventPoolConfig {
    fn default() -> Self {
        defaults("").expect("the declared defaults are values of their options")
    }
}

impl From<Preset> for EventPoolConfig {
    fn from(preset: Preset) -> Self {
        Self { preset, ..Self::default() }
    }
}

impl EventPoolConfig {
    /// The settings of a YAML text: a mapping from keys to values. Missing keys are those of
    /// [`default`](Self::default). With the feature `config`.
    ///
    /// ```
    /// use greenroom::event_pool::EventPoolConfig;
    ///
    /// let config = EventPoolConfig::from_yaml("inboxSize: 200\npreset: orders")?;
    /// assert_eq!((config.pool_size(), config.inbox_size()), (256, 200));
    ///
    /// let errors = EventPoolConfig::from_yaml("pool_size: 0\nengin: keyed").unwrap_err();
    /// let [size, engine] = errors.sorted()[..] else { panic!("{errors}") };
    /// assert!(size.message.starts_with("`pool_size` has to be a whole number from 1 to 65536"));
    /// assert!(errors.to_string().contains("1 | pool_size: 0"));
    /// assert_eq!(engine.help.as_deref(), Some("did you mean `engine`?"));
    /// # Ok::<(), greenroom::event_pool::Problems>(())
    /// ```
    ///
    /// # Errors
    /// All mistakes at once, each with its line and column.
    #[cfg(feature = "config")]
    pub fn from_yaml(text: &str) -> Result<Self, Problems> {
        greenroom_config::read(greenroom_config::Yaml, text)
    }

    /// Like [`from_yaml`](Self::from_yaml), for a TOML text.
    ///
    /// ```
    /// # use greenroom::event_pool::EventPoolConfig;
    /// let config = EventPoolConfig::from_toml("pool_size = 64\nengine = 'shared'")?;
    /// assert_eq!(config.pool_size(), 64);
    /// # Ok::<(), greenroom::event_pool::Problems>(())
    /// ```
    ///
    /// # Errors
    /// All mistakes at once.
    #[cfg(feature = "config")]
    pub fn from_toml(text: &str) -> Result<Self, Problems> {
        greenroom_config::read(greenroom_config::Toml, text)
    }

    /// The number of workers.
    pub fn pool_size(&self) -> usize {
        self.pool_size.unwrap_or(self.preset.pool_size())
    }

    /// The number of messages that may wait for each of them.
    pub fn inbox_size(&self) -> usize {
        self.inbox_size.unwrap_or(self.preset.inbox_size())
    }

    /// Checks that everything is within its range.
    ///
    /// # Errors
    /// Everything that is not.
    pub fn check(&self) -> Result<(), Problems> {
        let mut problems = Problems::new("EventPoolConfig", "");
        for (key, number) in [
            ("pool_size", self.pool_size() as u64),
            ("inbox_size", self.inbox_size() as u64),
            ("max_restarts", u64::from(self.max_restarts)),
            ("memory_ceiling", self.memory_ceiling),
        ] {
            if let Some(opt) = Self::GROUP.find(key).filter(|opt| !opt.kind.allows(number)) {
                let text = format!("`{key}` has to be {}", opt.kind.expected());
                problems.push(Problem::error(text, Place::whole_file()));
            }
        }
        if let Some(text) = self.too_large() {
            problems.push(Problem::error(text, Place::whole_file()));
        }
        if problems.errors() == 0 { Ok(()) } else { Err(problems) }
    }

    fn fitting(self, at: &mut At<'_>) -> Option<Self> {
        let Some(text) = self.too_large() else { return Some(self) };
        let named = ["inbox_size", "pool_size", "preset"].into_iter().find(|name| at.has(name));
        at.error(named.unwrap_or_default(), text, "lower `inbox_size`, or `pool_size`");
        None
    }

    /// Checks both sizes together.
    fn too_large(&self) -> Option<String> {
        let (workers, inbox) = (self.pool_size(), self.inbox_size());
        let most = MAX_CAPACITY / workers.max(1);
        let text = || {
            format!(
                "`inbox_size` is {inbox}, and with {workers} workers it may be {most} at most: \
                 a pool holds 100,000,000 messages"
            )
        };
        (inbox > most).then(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c18_the_declaration_has_no_mistakes() {
        assert_eq!(EventPoolConfig::GROUP.mistakes(), Vec::<String>::new());
    }
}
