//! The limits of a share.

use super::bucket::ShareRate;

/// The limits of a share: its part of the workers' time, and its caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its part of the time, in relation to other shares: at least 1.
    pub weight: u32,
    /// Attempts in hand at once; none at all if that is 0.
    pub in_hand: Option<u32>,
    /// Attempts started in a time.
    pub rate: Option<ShareRate>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { weight: 1, in_hand: None, rate: None }
    }
}
