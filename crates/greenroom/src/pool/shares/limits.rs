//! The limits of a share.

use std::{collections::HashMap, time::Duration};

use greenroom_queue::shares::{Limits, ShareRate};

use super::Share;
use crate::{SpawnError, pool::limits::Rate, size::check_range};

/// The builder's settings for shares.
#[derive(Clone, Default)]
pub(crate) struct ShareConfig {
    pub(crate) defaults: ShareLimits,
    pub(crate) named: HashMap<Share, ShareLimits>,
}

/// The largest weight.
const MAX_WEIGHT: usize = 1_000_000;

/// The limits of a share: its part of the workers' time, how many attempts may be in hand at once,
/// and how many may be started in a period.
///
/// ```
/// use greenroom::{limits::Rate, shares::ShareLimits};
///
/// let paid = ShareLimits::default().weight(3);
/// let slow = ShareLimits::default().in_hand(5).rate(Rate::per_second(20));
/// assert_ne!(paid, slow);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLimits {
    weight: u32,
    in_hand: Option<usize>,
    rate: Option<Rate>,
}

impl Default for ShareLimits {
    /// A weight of 1, and no cap.
    fn default() -> Self {
        Self { weight: 1, in_hand: None, rate: None }
    }
}

impl ShareLimits {
    /// Its part of the time in hand relative to other shares, while both have messages that could
    /// start: a share with weight 3 gets three times as much as one with weight 1. 1 to 1,000,000;
    /// 1 by default.
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = weight;
        self
    }

    /// At most this many attempts in hand at once, or (`None`, the default) as many as there are
    /// workers. A batch is one attempt. With 0 nothing is started.
    pub fn in_hand(mut self, attempts: impl Into<Option<usize>>) -> Self {
        self.in_hand = attempts.into();
        self
    }

    /// At most this many attempts started in this time, or (`None`, the default) any number. After
    /// a pause, a tenth of a second's worth is started at once. The period may be at most a day.
    pub fn rate(mut self, rate: impl Into<Option<Rate>>) -> Self {
        self.rate = rate.into();
        self
    }

    /// The weight.
    pub fn weighs(&self) -> u32 {
        self.weight
    }

    /// The most attempts in hand at once.
    pub fn most_in_hand(&self) -> Option<usize> {
        self.in_hand
    }

    /// The most attempts started in a period.
    pub fn most_started(&self) -> Option<Rate> {
        self.rate
    }

    pub(super) fn checked(self) -> Result<Limits, SpawnError> {
        let weight = self.weight as usize;
        check_range((1..=MAX_WEIGHT).contains(&weight), "share.weight", weight, "1 to 1,000,000")?;
        let rate = self.rate.map(rate_of).transpose()?;
        let in_hand = self.in_hand.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
        Ok(Limits { weight: self.weight, in_hand, rate })
    }

    pub(super) fn of(limits: Limits) -> Self {
        let rate = limits.rate.map(|rate| Rate::new(rate.messages, Duration::from_nanos(rate.per)));
        Self { weight: limits.weight, in_hand: limits.in_hand.map(|most| most as usize), rate }
    }
}

fn rate_of(rate: Rate) -> Result<ShareRate, SpawnError> {
    let (messages, per) = rate.checked()?;
    Ok(ShareRate { messages, per: per.as_nanos() as u64, burst: rate.burst() })
}
