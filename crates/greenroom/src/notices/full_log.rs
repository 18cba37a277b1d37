//! A mailbox that is full is told once, and that it has room again once.
//!
//! Under load a mailbox is full for most of the time: whenever a message is taken, the next one takes its place. So it has
//! *drained* only when it is down to half, and one that fills and drains many times a second is told once a
//! second.
//!
//! ```text
//! depth   ▁▃▆███▇██▇▆▄▃▁
//! told       full      drained { full_for }
//! ```
//!
//! Each change from not full to full is counted, also where it is not told because another was told less than a second ago.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// A mailbox has drained when it holds no more than its capacity divided by this.
const DRAINED_AT: usize = 2;

/// A mailbox is told to be full no more often than this.
const INTERVAL: Duration = Duration::from_secs(1);

/// Those who look often look no more often than this: it costs a look at every worker.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether it was told that a mailbox is full. One per pool; costs a look where there is nothing to tell.
#[derive(Debug)]
pub(crate) struct FullLog {
    /// What times are counted from.
    since: Instant,
    /// Somebody has found no room since the mailbox was last seen to have drained.
    is_full: AtomicBool,
    /// How often that has begun.
    times: AtomicU64,
    /// When it became full, in microseconds since `since`, from 1; 0 while nothing is told of it.
    full_at: AtomicU64,
    /// When it may be told to be full next. Who moves it on tells.
    due: AtomicU64,
    /// When it may be looked at next, by those who look often.
    look_at: AtomicU64,
}

impl FullLog {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            is_full: AtomicBool::new(false),
            times: AtomicU64::new(0),
            full_at: AtomicU64::new(0),
            due: AtomicU64::new(0),
            look_at: AtomicU64::new(0),
        }
    }

    /// True while `drained` is to be asked. For workers, before they look at the depth of the mailbox.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.full_at.load(Ordering::Relaxed) > 0
    }

    /// How often the mailbox has become full.
    pub(crate) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// True while there is nothing to say to it that there is no room.
    pub(crate) fn is_told(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) && self.full_at.load(Ordering::Relaxed) > 0
    }

    /// Somebody found no room. True where there was some before: then the caller asks `drained` once, because workers may have
    /// emptied the mailbox meanwhile and not come back.
    pub(crate) fn becomes_full(&self) -> bool {
        let is_full = &self.is_full;
        let begins = !is_full.load(Ordering::Relaxed) && !is_full.swap(true, Ordering::Relaxed);
        if begins {
            self.times.fetch_add(1, Ordering::Relaxed);
        }
        begins
    }

    /// Somebody found no room. True when the caller is to tell of it, and then to say that it has
    /// ([`told`](Self::told)).
    pub(crate) fn full(&self, now: Instant) -> bool {
        if self.full_at.load(Ordering::Relaxed) > 0 {
            return false;
        }
        let now = self.micros(now);
        let due = self.due.load(Ordering::Relaxed);
        now >= due && replace(&self.due, due, now + INTERVAL.as_micros() as u64)
    }

    /// It was told that there is no room: from here on it may be told that there is some, and not before. The caller then
    /// asks `drained` once, because workers may have emptied the mailbox meanwhile and not come back.
    pub(crate) fn told(&self, now: Instant) {
        self.full_at.store(self.micros(now), Ordering::Relaxed);
    }

    /// True now and then, for those who would look for every message.
    pub(crate) fn may_look(&self, now: Instant) -> bool {
        let now = self.micros(now);
        let look_at = self.look_at.load(Ordering::Relaxed);
        now >= look_at && replace(&self.look_at, look_at, now + LOOK_INTERVAL.as_micros() as u64)
    }

    /// How long the mailbox was full, when it has drained and the caller is to tell of it. Depth is what was accepted and
    /// not started.
    pub(crate) fn drained(&self, depth: usize, capacity: usize, now: Instant) -> Option<Duration> {
        if depth > capacity / DRAINED_AT {
            return None;
        }
        let full_at = self.full_at.load(Ordering::Relaxed);
        self.is_full.store(false, Ordering::Relaxed);
        let told = full_at > 0 && replace(&self.full_at, full_at, 0);
        told.then(|| Duration::from_micros(self.micros(now).saturating_sub(full_at)))
    }

    fn micros(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.since).as_micros() as u64 + 1
    }
}

/// True for the one who replaces it.
fn replace(value: &AtomicU64, present: u64, next: u64) -> bool {
    value.compare_exchange(present, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    const CAPACITY: usize = 100;

    /// True where it was told that there is no room.
    fn full(log: &FullLog, now: Instant) -> bool {
        log.becomes_full();
        let full = log.full(now);
        if full {
            log.told(now);
        }
        full
    }

    #[tokio::test(start_paused = true)]
    async fn x01_that_it_has_drained_is_not_told_before_it_was_told_to_be_full() {
        let start = Instant::now();
        let log = FullLog::new(start);
        assert!(log.full(start) && !log.full(start), "one tells");
        assert_eq!((log.is_full(), log.drained(0, CAPACITY, start)), (false, None));
        log.told(start);
        assert_eq!(log.drained(0, CAPACITY, start + MILLI), Some(MILLI));
    }

    #[tokio::test(start_paused = true)]
    async fn x01_who_would_look_for_every_message_looks_now_and_then() {
        let start = Instant::now();
        let log = FullLog::new(start);
        let looks = (0..100).filter(|at| log.may_look(start + *at * MILLI));
        assert_eq!(looks.count(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn x01_full_is_told_once_until_it_has_drained() {
        let start = Instant::now();
        let log = FullLog::new(start);
        let empty = |now| log.drained(0, CAPACITY, now);
        assert_eq!((empty(start), log.is_full()), (None, false), "it was not full");
        assert!(full(&log, start + 10 * MILLI) && log.is_full());
        assert!(!full(&log, start + 2000 * MILLI));
        assert_eq!(empty(start + 2500 * MILLI), Some(2490 * MILLI));
        assert_eq!((empty(start + 2500 * MILLI), log.is_full()), (None, false));
        assert!(full(&log, start + 2500 * MILLI), "it is full again");
    }

    #[tokio::test(start_paused = true)]
    async fn x01_room_for_a_few_is_not_drained() {
        let start = Instant::now();
        let log = FullLog::new(start);
        assert!(full(&log, start));
        assert_eq!(log.drained(51, CAPACITY, start + MILLI), None);
        assert_eq!(log.drained(50, CAPACITY, start + MILLI), Some(MILLI));
    }

    #[tokio::test(start_paused = true)]
    async fn x01_a_mailbox_that_fills_and_drains_all_the_time_is_told_once_a_second() {
        let start = Instant::now();
        let log = FullLog::new(start);
        let times = (0..3000).map(|at| start + at * MILLI);
        let told = times.map(|now| (full(&log, now), log.drained(0, CAPACITY, now).is_some()));
        let (full, drained): (Vec<bool>, Vec<bool>) = told.unzip();
        assert_eq!(full.iter().filter(|told| **told).count(), 3);
        assert_eq!(full, drained, "each that is told has its end");
        assert_eq!(log.times(), 3000, "all of them are counted");
    }

    #[tokio::test(start_paused = true)]
    async fn h10_becoming_full_is_counted_once_until_it_has_drained() {
        let start = Instant::now();
        let log = FullLog::new(start);
        assert!(log.becomes_full() && !log.becomes_full());
        assert_eq!((log.drained(51, CAPACITY, start), log.is_full(), log.times()), (None, true, 1));
        log.drained(50, CAPACITY, start);
        assert!(!log.is_full(), "it was not told, and has drained all the same");
        assert!(log.becomes_full());
        assert_eq!(log.times(), 2);
    }
}
