//! Proven sizes, by purpose.

use greenroom_config::words;

words! {
    /// Workers and inbox by name: the quality that matters most, or a scenario. Every other setting
    /// is the same as without a preset, and each can be overridden.
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
    pub enum Preset {
        /// 256 workers, 100 messages each.
        LowLatency = "low_latency",
        /// 256 workers, 1,000 messages each.
        Standard = "standard",
        /// 512 workers, 5,000 messages each.
        HighThroughput = "high_throughput",
        /// 1,024 workers, 10,000 messages each.
        UltraThroughput = "ultra_throughput",
        /// 128 workers, 500 messages each.
        MemoryLimited = "memory_limited",
        /// 256 workers, 500 messages each.
        Orders = "orders",
        /// 512 workers, 10,000 messages each.
        Logs = "logs",
        /// 1,024 workers, 5,000 messages each.
        Iot = "iot",
        /// 128 workers, 200 messages each.
        Edge = "edge",
    }
}

impl Preset {
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
