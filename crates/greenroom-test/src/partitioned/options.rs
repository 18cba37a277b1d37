//! How a broker gives what it has.

/// How a [`Broker`](super::Broker) gives what it has. The same options and the same calls give the
/// same batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrokerOptions {
    /// Where chance begins: the sizes of batches, gaps and repeats. Default: 1.
    pub seed: u64,
    /// Events of one pull at most, at least 1. Default: 7, so that a test of dozens has several.
    pub batch: usize,
    /// How likely a position is left out before an event is published, from 0 to 1. Default: 0.
    pub gaps: f64,
    /// How likely a pull begins a few events back, with what was given already, from 0 to 1.
    /// Default: 0.
    pub repeats: f64,
}

impl Default for BrokerOptions {
    fn default() -> Self {
        Self { seed: 1, batch: 7, gaps: 0.0, repeats: 0.0 }
    }
}
