//! The shares of one pool: behind a lock, and on the pool's time.

use std::{collections::HashMap, time::Duration};

use greenroom_queue::{
    lanes::LaneId,
    shares::{GuardedShares, Limits, ShareQueue},
    sync::{AtomicU32, AtomicU64, Ordering},
    wake::Wake,
};
use tokio::time::Instant;

use super::{Share, ShareLimits};
use crate::SpawnError;

/// A lane in the line of its share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShareTicket {
    /// Its shard.
    pub(crate) index: usize,
    pub(crate) id: LaneId,
    /// The lane is in this line only while it has this number.
    pub(crate) number: u64,
}

/// The shares of one pool.
pub(crate) struct ShareDesk {
    start: Instant,
    shares: GuardedShares<Share, ShareTicket>,
    /// The number of the next ticket.
    numbers: AtomicU64,
    /// The number of checks in a row that found handlers not quick, or more waiting messages than
    /// they can finish soon.
    pub(crate) late: AtomicU32,
    /// Some messages have keys: those without a key are handled one by one.
    pub(crate) ordered: bool,
    /// The limits of named shares from the pool's builder.
    pub(super) built: HashMap<Share, Limits>,
}

impl ShareDesk {
    fn new(defaults: Limits, named: HashMap<Share, Limits>, ordered: bool) -> Self {
        let mut shares = ShareQueue::new(defaults);
        for (share, limits) in &named {
            shares.set(share, Some(*limits), 0);
        }
        Self {
            start: Instant::now(),
            shares: GuardedShares::new(shares),
            numbers: AtomicU64::new(0),
            late: AtomicU32::new(0),
            ordered,
            built: named,
        }
    }

    /// Shares with these limits, if the limits are in range.
    pub(crate) fn checked(
        defaults: ShareLimits,
        named: HashMap<Share, ShareLimits>,
        ordered: bool,
    ) -> Result<Self, SpawnError> {
        let named = named.into_iter().map(|(share, limits)| Ok((share, limits.checked()?)));
        Ok(Self::new(defaults.checked()?, named.collect::<Result<_, SpawnError>>()?, ordered))
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The time of the pool's shares at this moment.
    pub(super) fn nanos(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn moment(&self, nanos: u64) -> Instant {
        self.start + Duration::from_nanos(nanos)
    }

    /// Works with the shares: see [`GuardedShares::work`].
    pub(crate) fn work<R>(
        &self,
        wake: &Wake,
        work: impl FnOnce(&mut ShareQueue<Share, ShareTicket>, u64) -> R,
    ) -> (R, Option<Duration>) {
        self.shares.work(wake, || self.nanos(Instant::now()), work)
    }

    /// The clock rings.
    pub(crate) fn ring(&self, wake: &Wake) -> Option<Duration> {
        self.shares.ring(wake, || self.nanos(Instant::now()))
    }
}
