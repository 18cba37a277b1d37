//! How far the cores are apart. On a virtual machine the two threads of a run may share a cache or
//! not, and this changes every few seconds to minutes. A short ping-pong of one cache line before
//! and after each repetition says which it was.

use std::{
    hint,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::median;

/// A line that goes round in less is between near cores: about 100 ns there, about
/// 500 ns between far ones.
const NEAR_BELOW_NANOS: f64 = 250.0;
/// Round trips of one burst, and bursts of which the median counts: together a few milliseconds.
const TRIPS: u64 = 100;
const BURSTS: u64 = 105;
/// Where others want the cores as well, either thread waits for them, and fewer bursts have to do.
const AT_MOST: Duration = Duration::from_millis(100);
/// Ends the other thread.
const END: u64 = u64::MAX;

/// Nanoseconds of a cache line's way from one thread to another and back.
pub fn ping_pong() -> f64 {
    let line = AtomicU64::new(0);
    let bursts = thread::scope(|scope| {
        scope.spawn(|| answer(&line));
        let (mut bursts, start) = (Vec::new(), Instant::now());
        for burst in 0..BURSTS {
            if burst > 0 && start.elapsed() > AT_MOST {
                break;
            }
            bursts.push(nanos_of_burst(&line, burst * TRIPS..(burst + 1) * TRIPS));
        }
        line.store(END, Ordering::Release);
        bursts
    });
    median(&bursts)
}

/// The other thread: makes every odd number the even one above it.
fn answer(line: &AtomicU64) {
    for odd in (1..).step_by(2) {
        if wait_for(line, odd) == END {
            return;
        }
        line.store(odd + 1, Ordering::Release);
    }
}

fn nanos_of_burst(line: &AtomicU64, trips: Range<u64>) -> f64 {
    let start = Instant::now();
    for trip in trips {
        line.store(2 * trip + 1, Ordering::Release);
        wait_for(line, 2 * trip + 2);
    }
    start.elapsed().as_nanos() as f64 / TRIPS as f64
}

/// Until it is this number, or the end.
fn wait_for(line: &AtomicU64, number: u64) -> u64 {
    loop {
        match line.load(Ordering::Acquire) {
            seen if seen == number || seen == END => return seen,
            _ => hint::spin_loop(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    Near,
    Far,
    /// It changed meanwhile.
    Mixed,
}

impl Distance {
    /// What these round trips say together: near or far only where all of them were.
    pub fn of(nanos: &[f64]) -> Self {
        match nanos.iter().filter(|nanos| **nanos < NEAR_BELOW_NANOS).count() {
            0 => Self::Far,
            near if near == nanos.len() => Self::Near,
            _ => Self::Mixed,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Mixed => "mixed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_line_takes_some_time_and_the_other_thread_ends() {
        let nanos = ping_pong();
        assert!(nanos > 1.0 && nanos.is_finite(), "{nanos}");
    }

    #[test]
    fn cores_are_near_only_where_they_were_so_throughout() {
        let name = |nanos: &[f64]| Distance::of(nanos).name();
        assert_eq!(name(&[100.0, 110.0, 120.0, 90.0]), "near");
        assert_eq!(name(&[100.0, 110.0, 120.0, 500.0]), "mixed");
        assert_eq!(name(&[500.0, 510.0, 520.0, 490.0]), "far");
    }
}
