//! The shares of one pool: behind a lock, and on the pool's time.

use std::{collections::HashMap, time::Duration};

use greenroom_queue::{
    lanes::LaneId,
    lock::Mutex,
    shares::{Limits, ShareQueue},
    sync::{AtomicU32, AtomicU64, Ordering},
    wake::Wake,
};
use tokio::time::Instant;

use super::{Share, ShareLimits};
use crate::SpawnError;

/// A lane that stands in the line of its share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShareTicket {
    /// Its shard.
    pub(crate) index: usize,
    pub(crate) id: LaneId,
    /// The lane is in this line as long as it names this number.
    pub(crate) number: u64,
}

/// The shares of one pool.
pub(crate) struct ShareDesk {
    start: Instant,
    inner: Mutex<Inner>,
    /// The number of the next ticket.
    numbers: AtomicU64,
    /// Looks in a row that have found handlers that are not quick, or more waiting than they do
    /// soon.
    pub(crate) late: AtomicU32,
    /// Some messages have keys: those without are handled one by one.
    pub(crate) ordered: bool,
    /// What the pool was built with, for shares that were named.
    pub(super) built: HashMap<Share, Limits>,
}

struct Inner {
    shares: ShareQueue<Share, ShareTicket>,
    /// The clock rings at this time.
    alarm: Option<u64>,
}

impl ShareDesk {
    fn new(defaults: Limits, named: HashMap<Share, Limits>, ordered: bool) -> Self {
        let mut shares = ShareQueue::new(defaults);
        for (share, limits) in &named {
            shares.set(share, Some(*limits), 0);
        }
        let inner = Mutex::new(Inner { shares, alarm: None });
        Self {
            start: Instant::now(),
            inner,
            numbers: AtomicU64::new(0),
            late: AtomicU32::new(0),
            ordered,
            built: named,
        }
    }

    /// Of these limits, if they are in range.
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

    /// Works with the shares, and keeps the pool's map of ready shards up to date: a worker is to
    /// look if something may start. Says in how long the clock is to ring, if not earlier.
    pub(crate) fn work<R>(
        &self,
        wake: &Wake,
        work: impl FnOnce(&mut ShareQueue<Share, ShareTicket>, u64) -> R,
    ) -> (R, Option<Duration>) {
        let mut inner = self.inner.lock();
        let now = self.nanos(Instant::now());
        let result = work(&mut inner.shares, now);
        match inner.shares.is_ready() {
            true => wake.mark_shares(),
            false => wake.clear_shares(),
        }
        let due = inner.shares.next_due();
        let earlier = due.filter(|due| inner.alarm.is_none_or(|alarm| *due < alarm));
        inner.alarm = earlier.or(inner.alarm);
        (result, earlier.map(|at| Duration::from_nanos(at.saturating_sub(now))))
    }

    /// The clock rings.
    pub(crate) fn ring(&self, wake: &Wake) -> Option<Duration> {
        self.inner.lock().alarm = None;
        self.work(wake, ShareQueue::wake).1
    }
}
