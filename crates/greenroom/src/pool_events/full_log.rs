//! Reports once that a mailbox is full, and once that it has room again.
//!
//! Under load a mailbox is full most of the time: whenever a message is taken, the next one takes
//! its place. So it has *drained* only when it is down to half: the time from its first refusal
//! until then is one *episode*. Each is counted; a mailbox that fills and drains many times a
//! second is reported once a second.
//!
//! ```text
//! depth   ▁▃▆███▇██▇▆▄▃▁
//! told       full      drained { full_for }
//! ```

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// A mailbox has drained when it holds no more than its capacity divided by this.
const DRAINED_AT: usize = 2;

/// A full mailbox is reported at most this often.
const INTERVAL: Duration = Duration::from_secs(1);

/// Frequent checks look no more often than this: a look reads the figures of every worker.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Used instead of the time when it became full, while a thread is about to report it.
const ABOUT_TO_TELL: u64 = u64::MAX;

/// The duty of a sender that finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing: others have found that before.
    Known,
    /// An episode begins that is not reported. The caller calls `drained` once.
    Begun,
    /// An episode begins. The caller reports it, then says so ([`FullLog::told`]), and calls
    /// `drained` once.
    ToBeTold,
}

/// Whether a mailbox is full, and whether that was reported. One per pool; costs a look if there is
/// nothing to report.
#[derive(Debug)]
pub(crate) struct FullLog {
    /// The origin of all times.
    since: Instant,
    /// When it became full, in microseconds since `since`, from 1; 0 outside of an episode.
    full_at: AtomicU64,
    /// Whether the present episode was reported. Set before `full_at`.
    told: AtomicBool,
    /// The number of episodes.
    episodes: AtomicU64,
    /// When it may be reported as full next. The thread that advances it reports.
    due: AtomicU64,
    /// When a frequent check may look next.
    look_at: AtomicU64,
}

impl FullLog {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            full_at: AtomicU64::new(0),
            told: AtomicBool::new(false),
            episodes: AtomicU64::new(0),
            due: AtomicU64::new(0),
            look_at: AtomicU64::new(0),
        }
    }

    /// True while `drained` must be called. For workers, before they look at the depth of the
    /// mailbox.
    pub(crate) fn is_full(&self) -> bool {
        self.full_at.load(Ordering::Relaxed) > 0
    }

    /// A sender found no room.
    pub(crate) fn full(&self, now: Instant) -> Found {
        if self.is_full() || !replace(&self.full_at, 0, ABOUT_TO_TELL) {
            return Found::Known;
        }
        self.episodes.fetch_add(1, Ordering::Relaxed);
        let now = self.micros(now);
        let due = self.due.load(Ordering::Relaxed);
        let told = now >= due && replace(&self.due, due, now + INTERVAL.as_micros() as u64);
        self.told.store(told, Ordering::Relaxed);
        if told {
            return Found::ToBeTold;
        }
        self.full_at.store(now, Ordering::Release);
        Found::Begun
    }

    /// The mailbox was reported as full: only from now on may it be reported to have room. The
    /// caller then calls `drained` once, because workers may have emptied the mailbox in between
    /// without coming back.
    pub(crate) fn told(&self, now: Instant) {
        self.full_at.store(self.micros(now), Ordering::Release);
    }

    /// How often it became full.
    pub(crate) fn episodes(&self) -> u64 {
        self.episodes.load(Ordering::Relaxed)
    }

    /// True from time to time, for callers that would otherwise check for every message.
    pub(crate) fn may_look(&self, now: Instant) -> bool {
        let now = self.micros(now);
        let look_at = self.look_at.load(Ordering::Relaxed);
        now >= look_at && replace(&self.look_at, look_at, now + LOOK_INTERVAL.as_micros() as u64)
    }

    /// Ends the episode, if the mailbox has drained: returns how long it was full, if the caller
    /// must report it. `depth` is the number of messages accepted and not started.
    pub(crate) fn drained(&self, depth: usize, capacity: usize, now: Instant) -> Option<Duration> {
        let full_at = self.full_at.load(Ordering::Acquire);
        if full_at == 0 || full_at == ABOUT_TO_TELL || depth > capacity / DRAINED_AT {
            return None;
        }
        let told = self.told.load(Ordering::Relaxed);
        let told = replace(&self.full_at, full_at, 0) && told;
        told.then(|| Duration::from_micros(self.micros(now).saturating_sub(full_at)))
    }

    fn micros(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.since).as_micros() as u64 + 1
    }
}

/// True for the thread that replaces it.
fn replace(value: &AtomicU64, present: u64, next: u64) -> bool {
    value.compare_exchange(present, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    const CAPACITY: usize = 100;

    /// True if the mailbox was reported as full.
    fn full(log: &FullLog, now: Instant) -> bool {
        let told = log.full(now) == Found::ToBeTold;
        if told {
            log.told(now);
        }
        told
    }

    #[tokio::test(start_paused = true)]
    async fn x01_that_it_has_drained_is_not_told_before_it_was_told_to_be_full() {
        let start = Instant::now();
        let log = FullLog::new(start);
        assert_eq!(
            (log.full(start), log.full(start)),
            (Found::ToBeTold, Found::Known),
            "one tells"
        );
        assert_eq!(log.drained(0, CAPACITY, start), None);
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
        assert_eq!(log.episodes(), 3000, "each is counted");
    }
}
