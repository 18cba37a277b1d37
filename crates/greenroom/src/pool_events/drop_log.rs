//! Drops that are counted one by one and reported once a second.
//!
//! A flooded pool drops as fast as senders can send. A line for each drop would be the next flood;
//! no line would hide the loss. So drops are added up, and the sum is reported if the last report
//! was at least a second ago:
//!
//! ```text
//! drops   1  1 1 1       1                    1
//! told    1      (quiet) 4                    1     ...and the rest, when the pool ends
//!         0              1 s                  7 s
//! ```

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// At most one line in this time (P07).
const INTERVAL: Duration = Duration::from_secs(1);

/// Adds up drops until they may be reported. One per pool; a drop costs two atomic accesses and no
/// lock.
#[derive(Debug)]
pub(crate) struct DropLog {
    /// The origin of all times.
    since: Instant,
    /// Drops that were not reported.
    untold: AtomicU64,
    /// When drops may be reported next, in microseconds since `since`. The thread that advances it
    /// reports.
    due: AtomicU64,
}

/// The duty of the caller after counted drops.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// The caller reports this many.
    Tell(u64),
    /// They are the first unreported ones. The caller makes the clock check [`DropLog::next_at`].
    First,
    /// Another caller takes care of them.
    Counted,
}

impl DropLog {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, untold: AtomicU64::new(0), due: AtomicU64::new(0) }
    }

    /// Counts drops.
    pub(crate) fn dropped(&self, messages: u64, now: Instant) -> Dropped {
        // Pairs with the load of `next_at`, by the clock, which `Dropped::First` notifies next:
        // either the clock sees the count, or it looks again. Otherwise the drop is reported with a
        // later one.
        let before = self.untold.fetch_add(messages, Ordering::SeqCst);
        match self.due(now) {
            Some(untold) => Dropped::Tell(untold),
            None if before == 0 => Dropped::First,
            None => Dropped::Counted,
        }
    }

    /// When the unreported drops may be reported; `None` if there are none.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        // Pairs with the `fetch_add` of `dropped`, after which the clock is notified: a count that
        // is not seen here is seen on the next look. Otherwise the clock would sleep over it.
        let untold = self.untold.load(Ordering::SeqCst) > 0;
        untold.then(|| self.since + Duration::from_micros(self.due.load(Ordering::Relaxed)))
    }

    /// `Some` if there are drops that may be reported now. For a periodic check: no further drop
    /// follows the last ones of a flood.
    pub(crate) fn due(&self, now: Instant) -> Option<u64> {
        if self.untold.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let now = now.saturating_duration_since(self.since).as_micros() as u64;
        let due = self.due.load(Ordering::Relaxed);
        let next = now + INTERVAL.as_micros() as u64;
        let won = now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if won { self.rest() } else { None }
    }

    /// The unreported drops, whenever the last report was: for the end of the pool.
    pub(crate) fn rest(&self) -> Option<u64> {
        Some(self.untold.swap(0, Ordering::Relaxed)).filter(|untold| *untold > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    fn log() -> (DropLog, Instant) {
        let now = Instant::now();
        (DropLog::new(now), now)
    }

    fn told(dropped: Dropped) -> Option<u64> {
        match dropped {
            Dropped::Tell(messages) => Some(messages),
            Dropped::First | Dropped::Counted => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn p07_drops_are_told_at_most_once_a_second() {
        let (log, start) = log();
        let told: Vec<_> =
            (0..3000).filter_map(|at| told(log.dropped(1, start + at * MILLI))).collect();
        assert_eq!(told, [1, 1000, 1000]);
        assert_eq!(log.rest(), Some(999));
    }

    #[tokio::test(start_paused = true)]
    async fn p07_the_first_drop_after_a_quiet_time_is_told_at_once() {
        let (log, start) = log();
        assert_eq!(log.dropped(3, start), Dropped::Tell(3));
        assert_eq!(log.dropped(1, start + 1500 * MILLI), Dropped::Tell(1));
        assert_eq!(log.dropped(1, start + 2498 * MILLI), Dropped::First);
        assert_eq!(log.next_at(), Some(start + 2500 * MILLI), "a second from the last line");
        assert_eq!(log.dropped(1, start + 2499 * MILLI), Dropped::Counted);
        assert_eq!(log.dropped(1, start + 2500 * MILLI), Dropped::Tell(3));
        assert_eq!(log.next_at(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn p07_the_last_drops_of_a_flood_are_told_too() {
        let (log, start) = log();
        assert_eq!(
            (log.dropped(1, start), log.dropped(7, start)),
            (Dropped::Tell(1), Dropped::First)
        );
        assert_eq!(log.due(start + 999 * MILLI), None);
        assert_eq!(log.due(start + 1000 * MILLI), Some(7));
        assert_eq!((log.due(start + 5000 * MILLI), log.rest()), (None, None), "none is left");
    }

    #[test]
    fn p07_no_drop_is_lost_or_told_twice_among_threads() {
        let (log, start) = log();
        let drops = |_| {
            let at = |number| start + MILLI * number;
            (0..5000).filter_map(|number| told(log.dropped(1, at(number)))).sum::<u64>()
        };
        let told: u64 = std::thread::scope(|scope| {
            let threads = [0; 4].map(|seed| scope.spawn(move || drops(seed)));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        assert_eq!(told + log.rest().unwrap_or(0), 20_000);
    }
}
