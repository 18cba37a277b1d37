//! The distribution of times: a few percentiles of many measurements.

use std::time::Duration;

use greenroom_queue::lock::Mutex;
use greenroom_queue::stamp::Stamp;
use hdrhistogram::Histogram;

use super::latencies::{Latencies, LatencyHistogram};

/// Digits to keep of each time: percentiles are correct to a hundredth.
const DIGITS: u8 = 2;

/// How long something took, since the pool was started. Messages are sampled: every one if handling
/// takes longer than 32 microseconds; one in eight if it takes longer than two, which then counts
/// for eight; and one in 512 otherwise. The measured one changes from block to block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LatencySummary {
    /// About how many messages these are.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: Duration,
    /// Nine in ten.
    pub p90: Duration,
    /// Ninety-nine in a hundred.
    pub p99: Duration,
    /// The longest measured one.
    pub max: Duration,
}

impl LatencySummary {
    fn of(times: &Histogram<u64>) -> Self {
        let at = |quantile| Duration::from_nanos(times.value_at_quantile(quantile));
        Self {
            count: times.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: Duration::from_nanos(times.max()),
        }
    }
}

/// The measurements of a pool so far, for comparison with later ones. Takes some ten kilobytes.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).spawn().await?;
/// assert!(pool.call(7).await.is_ok());
/// let earlier = pool.admin().latency_snapshot();
/// let now = pool.admin().latency_snapshot();
/// let (queueing, handling) = now.since(&earlier);
/// assert_eq!((queueing.count, handling.count), (0, 0));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct LatencySnapshot(Option<Box<Times>>);

impl LatencySnapshot {
    /// How long messages waited, and how long they were in hand, over those that were measured
    /// after `earlier` was taken from the same pool.
    pub fn since(&self, earlier: &Self) -> (LatencySummary, LatencySummary) {
        (
            self.summary(earlier, |times| &times.queued),
            self.summary(earlier, |times| &times.handled),
        )
    }

    /// How long they were in the pool, waiting and in hand.
    pub(crate) fn residence_since(&self, earlier: &Self) -> LatencySummary {
        self.summary(earlier, |times| &times.total)
    }

    fn summary(&self, earlier: &Self, of: fn(&Times) -> &Histogram<u64>) -> LatencySummary {
        let Some(now) = &self.0 else { return LatencySummary::default() };
        let mut new = of(now).clone();
        // Fails only if `earlier` is from another pool: the result then covers all measurements.
        let _ = earlier.0.as_deref().map(|before| new.subtract(of(before)));
        LatencySummary::of(&new)
    }
}

impl_debug!([] LatencySnapshot, |_|);

/// The measurements of a pool. They take memory from the first on, and more as they spread wider:
/// some fifteen kilobytes.
#[derive(Default)]
pub(crate) struct Measured(Mutex<Option<Box<Times>>>);

#[derive(Clone)]
struct Times {
    queued: Histogram<u64>,
    handled: Histogram<u64>,
    /// Both together.
    total: Histogram<u64>,
}

impl Times {
    fn new() -> Option<Box<Self>> {
        let empty = || Histogram::new(DIGITS).ok();
        let (queued, handled, total) = (empty()?, empty()?, empty()?);
        Some(Box::new(Self { queued, handled, total }))
    }
}

impl Measured {
    /// Adds a message: how long it waited and how long its handling took.
    #[cold]
    pub(crate) fn add(&self, queued: Duration, handled: Duration, stands_for: u64) {
        let mut times = self.0.lock();
        if times.is_none() {
            *times = Times::new();
        }
        if let Some(times) = &mut *times {
            // They grow as needed, so there is room for every time.
            let _ = times.queued.record_n(nanos(queued), stands_for);
            let _ = times.handled.record_n(nanos(handled), stands_for);
            let total = nanos(queued.saturating_add(handled));
            let _ = times.total.record_n(total, stands_for);
        }
    }

    /// All measurements so far.
    pub(crate) fn snapshot(&self) -> LatencySnapshot {
        LatencySnapshot(self.0.lock().clone())
    }

    /// How long messages waited, and how long their handling took.
    pub(in crate::pool) fn spreads(&self) -> (LatencySummary, LatencySummary) {
        let times = self.0.lock();
        let Some(times) = &*times else { return Default::default() };
        (LatencySummary::of(&times.queued), LatencySummary::of(&times.handled))
    }

    /// The same in buckets, and both together.
    pub(crate) fn latencies(&self) -> Latencies {
        let times = self.0.lock();
        let Some(times) = &*times else { return Latencies::default() };
        Latencies {
            queueing: LatencyHistogram::of(&times.queued),
            handling: LatencyHistogram::of(&times.handled),
            residence: LatencyHistogram::of(&times.total),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A measured message, while it is in hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measurement {
    queued: Duration,
    since: u64,
    stands_for: u64,
}

impl Measurement {
    /// It starts now.
    pub(crate) fn begin(stamp: Stamp, now: u64) -> Self {
        Self { queued: stamp.age(now), since: now, stands_for: stamp.stands_for() }
    }

    /// The number of messages that it represents.
    pub(crate) fn stands_for(&self) -> u64 {
        self.stands_for
    }

    /// It ends now. Returns how long its handling took.
    pub(crate) fn end(self, now: u64, measured: &Measured) -> Duration {
        let took = Duration::from_nanos(now.saturating_sub(self.since));
        measured.add(self.queued, took, self.stands_for);
        took
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn h10_the_time_in_the_pool_is_that_of_each_message_and_of_the_period_alone() {
        let measured = Measured::default();
        measured.add(500 * MILLI, 500 * MILLI, 1);
        let begun = measured.snapshot();
        assert_eq!(begun.residence_since(&begun).count, 0, "what was before does not count");
        // The slowest to wait are the quickest to be handled: no sum of percentiles tells this.
        measured.add(99 * MILLI, MILLI, 50);
        measured.add(MILLI, 99 * MILLI, 50);
        let ended = measured.snapshot();
        let p99 = ended.residence_since(&begun).p99;
        assert!(p99 >= 100 * MILLI && p99 < 102 * MILLI, "{p99:?}");
        measured.add(MILLI, MILLI, 1);
        assert!(measured.snapshot().residence_since(&ended).p99 < 3 * MILLI);
        assert_eq!(measured.spreads().0.count, 102);
    }

    #[test]
    fn o03_a_message_that_waits_long_and_one_that_takes_long_are_as_long_in_the_pool() {
        let measured = Measured::default();
        assert_eq!(measured.latencies(), Latencies::default());
        measured.add(99 * MILLI, MILLI / 2, 8);
        measured.add(MILLI / 2, 99 * MILLI, 1);
        let Latencies { queueing, handling, residence } = measured.latencies();
        let upto = |times: LatencyHistogram, most: Duration| {
            times.buckets().filter(|(bound, _)| *bound <= most).map(|(_, count)| count).sum::<u64>()
        };
        assert_eq!(
            (upto(queueing, MILLI), upto(handling, MILLI), upto(residence, MILLI)),
            (1, 8, 0)
        );
        assert_eq!(upto(residence, 100 * MILLI), 9);
    }

    #[test]
    fn o07_what_came_since_an_earlier_look_is_summed_up_alone() {
        let measured = Measured::default();
        let nothing = measured.snapshot();
        measured.add(400 * MILLI, 400 * MILLI, 1);
        let earlier = measured.snapshot();
        assert_eq!(earlier.since(&nothing).0.count, 1);
        assert_eq!(earlier.since(&earlier).1, LatencySummary::default());
        (0..100).for_each(|_| measured.add(MILLI, 5 * MILLI, 8));
        let (queueing, handling) = measured.snapshot().since(&earlier);
        assert_eq!((queueing.count, handling.count), (800, 800));
        assert!(queueing.p99 >= MILLI && queueing.max < 2 * MILLI, "{queueing:?}");
        assert!(handling.p50 >= 5 * MILLI && handling.p99 < 6 * MILLI, "{handling:?}");
    }
}
