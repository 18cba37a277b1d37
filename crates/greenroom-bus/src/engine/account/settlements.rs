//! How events were settled, and how long that took. Threads do not contend: each thread that
//! settles has a counter of its own, up to a limit, behind a lock that no other thread takes.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use greenroom::stats::LatencyHistogram;
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::settlement::{Outcome, Refusal, Settled};

/// Latencies above this are counted as this: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// Threads that settle without meeting. A few more than most machines run at once.
const PLACES: usize = 16;

/// Events by how they were settled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcomes {
    pub(crate) handled: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) ignored: u64,
    pub(crate) refused: u64,
    pub(crate) revoked: u64,
    pub(crate) given_back: u64,
}

impl Outcomes {
    fn count(&mut self, how: Settled) {
        *match how {
            Settled::Acknowledged(Outcome::Handled) => &mut self.handled,
            Settled::Acknowledged(Outcome::DeadLettered) => &mut self.dead_lettered,
            Settled::Acknowledged(Outcome::Ignored) => &mut self.ignored,
            Settled::Refused(Refusal::Revoked) => &mut self.revoked,
            Settled::Refused(Refusal::GivenBack) => &mut self.given_back,
            Settled::Refused(_) => &mut self.refused,
        } += 1;
    }

    pub(crate) fn sum(&self) -> u64 {
        let Self { handled, dead_lettered, ignored, refused, revoked, given_back } = self;
        handled + dead_lettered + ignored + refused + revoked + given_back
    }

    fn add(&mut self, other: Self) {
        self.handled += other.handled;
        self.dead_lettered += other.dead_lettered;
        self.ignored += other.ignored;
        self.refused += other.refused;
        self.revoked += other.revoked;
        self.given_back += other.given_back;
    }
}

/// All events that were settled.
#[derive(Debug, Default)]
pub(crate) struct Settlements {
    places: [PaddedCounts; PLACES],
}

/// With cache lines of its own, and the ones that are prefetched with them.
#[derive(Debug, Default)]
#[repr(align(128))]
struct PaddedCounts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    outcomes: Outcomes,
    /// Made by the first.
    latency: Option<Histogram<u64>>,
}

thread_local! {
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The place of this thread. A thread that ends has none any more.
fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let known = PLACE.try_with(|place| {
        place.get().unwrap_or_else(|| {
            let new = NEXT.fetch_add(1, Ordering::Relaxed) % PLACES;
            place.set(Some(new));
            new
        })
    });
    known.unwrap_or(0)
}

impl Settlements {
    /// One more, this many microseconds after it was taken.
    pub(crate) fn count(&self, how: Settled, micros: u64) {
        let mut counted = self.places[place()].0.lock();
        counted.outcomes.count(how);
        let latency = counted.latency.get_or_insert_with(histogram);
        latency.saturating_record(micros.clamp(1, LONGEST_US));
    }

    pub(crate) fn outcomes(&self) -> Outcomes {
        let mut all = Outcomes::default();
        self.places.iter().for_each(|place| all.add(place.0.lock().outcomes));
        all
    }

    /// The latency at these quantiles, in microseconds.
    pub(crate) fn latency(&self, quantiles: [f64; 3]) -> [u64; 3] {
        let all = self.together();
        quantiles.map(|quantile| all.value_at_quantile(quantile))
    }

    /// The latencies in buckets.
    pub(crate) fn latencies(&self) -> LatencyHistogram {
        let (all, mut buckets) = (self.together(), LatencyHistogram::default());
        for seen in all.iter_recorded() {
            let micros = all.median_equivalent(seen.value_iterated_to());
            buckets.add(Duration::from_micros(micros), seen.count_at_value());
        }
        buckets
    }

    fn together(&self) -> Histogram<u64> {
        let mut all = histogram();
        for place in &self.places {
            if let Some(latency) = &place.0.lock().latency {
                // All of them have the same bounds.
                let _ = all.add(latency);
            }
        }
        all
    }
}

/// Two significant digits are enough for a report; the table then takes some tens of kilobytes.
fn histogram() -> Histogram<u64> {
    let bounded = Histogram::new_with_bounds(1, LONGEST_US, 2);
    bounded.unwrap_or_else(|_| unreachable!("the bounds are constants that the histogram accepts"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_several_threads_settle_is_counted_together() {
        let all = Settlements::default();
        thread::scope(|scope| {
            for thread in 0..2 * PLACES as u64 {
                let all = &all;
                scope.spawn(move || {
                    all.count(Settled::Acknowledged(Outcome::Handled), 1_000 * (thread + 1));
                    all.count(Settled::Refused(Refusal::Dropped), 1);
                });
            }
        });
        let Outcomes { handled, refused, .. } = all.outcomes();
        assert_eq!((handled, refused), (32, 32));
        let of = |bound: Duration| all.latencies().buckets().find(|(upto, _)| *upto == bound);
        assert_eq!(of(Duration::from_micros(10)).unwrap().1, 32);
        assert_eq!(
            of(Duration::from_millis(5)).unwrap().1,
            4,
            "1 to 4 ms: what was 5 is kept as a little more"
        );
        let [least, median, most] = all.latency([0.0, 0.5, 1.0]);
        assert_eq!((least, median), (1, 1));
        assert!((31_900..=32_300).contains(&most), "{most}");
    }

    #[test]
    fn nothing_is_settled_in_no_time() {
        assert_eq!(Settlements::default().latency([0.5, 0.99, 1.0]), [0; 3]);
    }
}
