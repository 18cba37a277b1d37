//! How a broker gives its events.

/// How a [`Broker`](super::Broker) gives its events. The same options and calls give the same
/// batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrokerOptions {
    /// The seed of the sizes of batches, gaps and repeats. Default: 1.
    pub seed: u64,
    /// The most events of one pull, at least 1. Default: 7, so that a test with dozens has several.
    pub batch: usize,
    /// The probability of a skipped position before an event is published, from 0 to 1. Default: 0.
    pub gaps: f64,
    /// The probability that a pull begins a few events back, repeating them, from 0 to 1. Default:
    /// 0.
    pub repeats: f64,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self { seed: 1, batch: 7, gaps: 0.0, repeats: 0.0 }
    }
}
