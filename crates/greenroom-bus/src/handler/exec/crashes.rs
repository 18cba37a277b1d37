//! Crashes of a program's processes, all workers together, and series of crashes.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::handler::CrashLoop;

/// Two are a coincidence.
const LOOP: u64 = 3;

/// A crash this long after the last one begins a new series: longer than a process waits for its
/// restart.
const QUIET: Duration = Duration::from_secs(120);

/// How many there were, and the series of the last one.
#[derive(Debug, Default)]
pub(super) struct Crashes(Mutex<CrashCounts>);

#[derive(Debug, Default)]
struct CrashCounts {
    total: u64,
    series: Option<CrashSeries>,
}

#[derive(Debug)]
struct CrashSeries {
    first: Instant,
    last: Instant,
    crashes: u64,
    why: String,
}

impl Crashes {
    pub(super) fn add(&self, why: &str, now: Instant) {
        let mut counted = self.0.lock();
        counted.total += 1;
        let before = counted.series.take().filter(|of| now.duration_since(of.last) < QUIET);
        let (first, crashes) = before.map_or((now, 0), |of| (of.first, of.crashes));
        let why = why.to_owned();
        counted.series = Some(CrashSeries { first, last: now, crashes: crashes + 1, why });
    }

    pub(super) fn total(&self) -> u64 {
        self.0.lock().total
    }

    /// The current series, if there is one.
    pub(super) fn crash_loop(&self, now: Instant) -> Option<CrashLoop> {
        let counted = self.0.lock();
        let series = counted.series.as_ref()?;
        let goes_on = series.crashes >= LOOP && now.duration_since(series.last) < QUIET;
        goes_on
            .then(|| CrashLoop::new(series.crashes, now.duration_since(series.first), &*series.why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o14_crashes_that_follow_one_another_are_a_loop_since_the_first() {
        let (crashes, start) = (Crashes::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        crashes.add("1", at(0));
        crashes.add("2", at(60));
        assert_eq!(crashes.crash_loop(at(61)), None, "two are a coincidence");
        crashes.add("3", at(120));
        let found = crashes.crash_loop(at(130)).unwrap();
        assert_eq!((found.crashes, found.lasted.as_secs(), &*found.last), (3, 130, "3"));
        assert_eq!(crashes.crash_loop(at(240)), None, "it has ended");
        crashes.add("4", at(300));
        assert_eq!((crashes.crash_loop(at(301)), crashes.total()), (None, 4), "another begins");
    }
}
