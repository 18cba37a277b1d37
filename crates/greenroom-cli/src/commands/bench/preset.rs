//! The presets of H02, with the names and in the form of the library's `Preset`, until it is there to take the place of this file.

/// Workers, and messages that may wait for each, by name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Preset(&'static str, usize, usize);

impl Preset {
    /// All there are.
    pub(super) const ALL: &[Self] = &[
        Self("low_latency", 256, 100),
        Self("standard", 256, 1_000),
        Self("high_throughput", 512, 5_000),
        Self("ultra_throughput", 1_024, 10_000),
        Self("memory_limited", 128, 500),
        Self("orders", 256, 500),
        Self("logs", 512, 10_000),
        Self("iot", 1_024, 5_000),
        Self("edge", 128, 200),
    ];

    /// The preset of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.name() == name)
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        self.0
    }

    /// Workers.
    pub(super) const fn pool_size(self) -> usize {
        self.1
    }

    /// Messages that may wait for each.
    pub(super) const fn inbox_size(self) -> usize {
        self.2
    }
}
