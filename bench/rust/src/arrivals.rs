//! Arrivals that wait for nobody (open loop): when each message arrives is drawn before the run,
//! and how long it took counts from that moment. A system that stalls is charged for everybody whom
//! it kept waiting, also where the sender itself was stopped.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    keys::{Keys, Random},
    message::Payload,
};

/// Messages per second.
const RATE: f64 = 20_000.0;
/// One message in so many sleeps in its handler.
const ONE_SLEEPS_IN: u64 = 100;

/// A message, 48 bytes.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// Its place among the figures.
    pub seq: u64,
    pub key: u64,
    /// When it arrives, in nanoseconds from the start.
    due: u64,
    pub sleeps: bool,
    pad: [u64; 2],
}

const _: () = assert!(size_of::<Arrival>() == 48);

impl Payload for Arrival {
    fn key(&self) -> u64 {
        self.key
    }
}

/// What is sent, the same in every run of every system.
pub struct Schedule(Vec<Arrival>);

impl Schedule {
    /// Poisson arrivals.
    pub fn draw(messages: u64, keys: &Keys) -> Self {
        let (mut random, mut due) = (Random::new(3), 0.0);
        let draw = |seq| {
            due += -(1.0 - random.unit()).ln() / RATE;
            let sleeps = random.next().is_multiple_of(ONE_SLEEPS_IN);
            Arrival { seq, key: keys.of(seq), due: (due * 1e9) as u64, sleeps, pad: [seq; 2] }
        };
        Self((0..messages).map(draw).collect())
    }

    pub fn total(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn arrivals(&self) -> &[Arrival] {
        &self.0
    }
}

/// How long each message took.
pub struct Sheet {
    start: Instant,
    /// From its arrival to the end of its handler, in nanoseconds; 0 where it was not handled.
    took: Box<[AtomicU64]>,
}

impl Sheet {
    /// The clock runs from now on.
    pub fn new(messages: u64) -> Arc<Self> {
        let took = (0..messages).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { start: Instant::now(), took })
    }

    fn since(&self, arrival: &Arrival) -> u64 {
        (self.start.elapsed().as_nanos() as u64).saturating_sub(arrival.due)
    }

    pub fn wait_until_due(&self, arrival: &Arrival) {
        let due = Duration::from_nanos(arrival.due);
        while let Some(left) = due.checked_sub(self.start.elapsed()) {
            thread::sleep(left);
        }
    }

    pub fn handled(&self, arrival: &Arrival) {
        std::hint::black_box(arrival.pad[1]);
        self.took[arrival.seq as usize].store(self.since(arrival).max(1), Ordering::Relaxed);
    }

    /// The times of those that are wanted, in ascending order. To be called
    /// when all have been handled.
    pub fn times(&self, schedule: &Schedule, wanted: impl Fn(&Arrival) -> bool) -> Times {
        let wanted = schedule.arrivals().iter().filter(|arrival| wanted(arrival));
        let mut times: Vec<_> =
            wanted.map(|arrival| self.took[arrival.seq as usize].load(Ordering::Acquire)).collect();
        times.sort_unstable();
        Times(times)
    }
}

/// Asks for timers that are a microsecond late instead of fifty, where the system has such a thing.
pub fn wake_precisely() {
    let own = fs::read_link("/proc/thread-self");
    let Some(thread) = own.ok().and_then(|path| Some(path.file_name()?.to_owned())) else { return };
    // Without it, sleeping is less precise: no reason to fail.
    let _ = fs::write(Path::new("/proc").join(thread).join("timerslack_ns"), "1000");
}

/// Sorted times.
pub struct Times(Vec<u64>);

impl Times {
    /// The time, in microseconds, that this part of all does not exceed; not a
    /// number where there are none.
    pub fn percentile(&self, part: f64) -> f64 {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).map_or(f64::NAN, |nanos| *nanos as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys;

    #[test]
    fn arrivals_are_as_many_as_asked_for_at_the_rate_and_one_in_a_hundred_sleeps() {
        let schedule = Schedule::draw(100_001, &keys::uniform());
        assert_eq!(schedule.total(), 100_001);
        let last = schedule.arrivals().last().unwrap().due as f64 / 1e9;
        assert!((last - 5.0).abs() < 0.2, "100,001 at 20,000/s in {last} s");
        let sleeping = schedule.arrivals().iter().filter(|arrival| arrival.sleeps).count();
        assert!((800..1_200).contains(&sleeping), "{sleeping}");
    }

    #[test]
    fn a_percentile_is_a_time_that_occurred() {
        let times = Times((1..=1_000).map(|micros| micros * 1_000).collect());
        assert_eq!(
            [0.5, 0.99, 0.999, 1.0].map(|part| times.percentile(part)),
            [500.0, 990.0, 999.0, 1_000.0]
        );
        assert!(Times(Vec::new()).percentile(0.5).is_nan());
    }
}
