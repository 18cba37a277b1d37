//! The limits of a share.

use super::bucket::ShareRate;

/// The limits of a share: its part of the workers' time, and its caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its part of the time relative to other shares: at least 1.
    pub weight: u32,
    /// The most attempts in hand at once; with 0, none are started.
    pub in_hand: Option<u32>,
    /// The most attempts started in a period.
    pub rate: Option<ShareRate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { weight: 1, in_hand: None, rate: None }
    }
}
