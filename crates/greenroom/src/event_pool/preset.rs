//! Well-considered sizes, by purpose.

use std::fmt;

use greenroom_config::schema::camel_case;

/// Workers and inbox by name: a quality that counts most, or a scenario. Every other setting is as
/// it is without a preset, and each can be overridden.
///
/// | preset | workers x inbox | for |
/// |---|---|---|
/// | `low_latency` | 256 x 100 | answers that are late are worth little: refuse soon rather than queue long |
/// | `standard` | 256 x 1,000 | the defaults of a pool |
/// | `high_throughput` | 512 x 5,000 | bursts, by handlers that wait |
/// | `ultra_throughput` | 1,024 x 10,000 | long bursts; two gigabytes at 200 bytes each, when it is full |
/// | `memory_limited` | 128 x 500 | small machines |
/// | `orders` | 256 x 500 | business events, each of which counts |
/// | `logs` | 512 x 10,000 | floods that may wait |
/// | `iot` | 1,024 x 5,000 | very many devices with little each |
/// | `edge` | 128 x 200 | devices with little memory |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// 256 workers, 100 messages each.
    LowLatency,
    /// 256 workers, 1,000 messages each.
    Standard,
    /// 512 workers, 5,000 messages each.
    HighThroughput,
    /// 1,024 workers, 10,000 messages each.
    UltraThroughput,
    /// 128 workers, 500 messages each.
    MemoryLimited,
    /// 256 workers, 500 messages each.
    Orders,
    /// 512 workers, 10,000 messages each.
    Logs,
    /// 1,024 workers, 5,000 messages each.
    Iot,
    /// 128 workers, 200 messages each.
    Edge,
}

impl Preset {
    /// All there are.
    pub const ALL: &[Self] = &[
        Self::LowLatency,
        Self::Standard,
        Self::HighThroughput,
        Self::UltraThroughput,
        Self::MemoryLimited,
        Self::Orders,
        Self::Logs,
        Self::Iot,
        Self::Edge,
    ];

    /// The preset of this name.
    ///
    /// ```
    /// # use greenroom::event_pool::Preset;
    /// assert_eq!(Preset::named("low_latency"), Some(Preset::LowLatency));
    /// assert_eq!(Preset::named("lowLatency"), Some(Preset::LowLatency));
    /// assert_eq!(Preset::named("fast"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let spelt = |preset: &Self| preset.name() == name || camel_case(preset.name()) == name;
        Self::ALL.iter().copied().find(spelt)
    }

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "low_latency",
            Self::Standard => "standard",
            Self::HighThroughput => "high_throughput",
            Self::UltraThroughput => "ultra_throughput",
            Self::MemoryLimited => "memory_limited",
            Self::Orders => "orders",
            Self::Logs => "logs",
            Self::Iot => "iot",
            Self::Edge => "edge",
        }
    }

    /// Workers.
    pub const fn pool_size(self) -> usize {
        self.sizes().0
    }

    /// Messages that may wait for each worker.
    pub const fn inbox_size(self) -> usize {
        self.sizes().1
    }

    const fn sizes(self) -> (usize, usize) {
        match self {
            Self::LowLatency => (256, 100),
            Self::Standard => (256, 1_000),
            Self::HighThroughput => (512, 5_000),
            Self::UltraThroughput => (1_024, 10_000),
            Self::MemoryLimited => (128, 500),
            Self::Orders => (256, 500),
            Self::Logs => (512, 10_000),
            Self::Iot => (1_024, 5_000),
            Self::Edge => (128, 200),
        }
    }
}

impl greenroom_config::Word for Preset {
    const WORDS: &'static [&'static str] = &{
        let (mut words, mut at) = ([""; Preset::ALL.len()], 0);
        while at < words.len() {
            words[at] = Preset::ALL[at].name();
            at += 1;
        }
        words
    };

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|found| found.name() == word)
    }

    fn word(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
