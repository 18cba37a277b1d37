//! Arrivals that wait for nobody (open loop): when each message arrives is drawn before the run,
//! and how long it took counts from that moment. A system that stalls is charged for everybody whom
//! it kept waiting, also where the sender itself was stopped.
//!
//! Senders are threads beside the runtime, as a timer of the runtime is a millisecond late
//! by itself. A thread that sleeps is some 50 µs late; that is in the figures of both
//! sides, and shown beside them.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    Failure,
    keys::{Keys, Random},
    message::Counters,
    stage::{Stage, share},
};

/// Messages per second of all senders together.
pub const RATE: f64 = 20_000.0;
/// One message in so many sleeps in its handler.
const ONE_SLEEPS_IN: u64 = 100;
/// How long it does.
pub const SLEEP: Duration = Duration::from_millis(20);
/// A send that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(10);

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

/// What each sender sends, the same in every run and on either side.
pub struct Schedule {
    of_senders: Vec<Vec<Arrival>>,
}

impl Schedule {
    /// Poisson arrivals: the sum of those of the senders is one as well.
    pub fn draw(messages: u64, keys: &Keys, senders: u64) -> Self {
        let of_sender = |sender| {
            let (mut random, mut due) = (Random::new(3 + sender), 0.0);
            let draw = |seq| {
                due += -(1.0 - random.unit()).ln() / (RATE / senders as f64);
                let sleeps = random.next() % ONE_SLEEPS_IN == 0;
                Arrival { seq, key: keys.of(seq), due: (due * 1e9) as u64, sleeps, pad: [seq; 2] }
            };
            share(sender, senders, messages).map(draw).collect()
        };
        Self { of_senders: (0..senders).map(of_sender).collect() }
    }

    pub fn total(&self) -> u64 {
        self.arrivals().count() as u64
    }

    /// All of them, in the order of their numbers.
    pub fn arrivals(&self) -> impl Iterator<Item = &Arrival> {
        self.of_senders.iter().flatten()
    }

    /// Sends everything when it is due, one sender for each of these, and waits
    /// until all has been handled.
    pub fn play<S>(
        &self,
        stage: &Stage,
        sheet: &Sheet,
        counters: &Counters,
        senders: Vec<S>,
    ) -> Result<(), Failure>
    where
        S: AsyncFnMut(Arrival) -> Result<(), Failure> + Send,
    {
        let runtime = stage.handle()?;
        let send_all = |(arrivals, mut send): (&Vec<Arrival>, S)| {
            wake_precisely();
            for arrival in arrivals {
                sheet.wait_until_due(arrival);
                let sent = async { tokio::time::timeout(HANGS_AFTER, send(*arrival)).await };
                runtime.block_on(sent).map_err(|_| "senders hang")??;
            }
            Ok::<_, Failure>(())
        };
        let send_all = &send_all;
        thread::scope(|scope| {
            let sending = self.of_senders.iter().zip(senders);
            let threads: Vec<_> =
                sending.map(|sender| scope.spawn(move || send_all(sender))).collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.into_iter().try_for_each(|ended| ended.map_err(|_| "a sender panicked")?)
        })?;
        stage.until_handled(counters, self.total())
    }
}

/// Asks for timers that are a microsecond late instead of fifty, where the system has such a thing.
fn wake_precisely() {
    let own = fs::read_link("/proc/thread-self");
    let Some(thread) = own.ok().and_then(|path| Some(path.file_name()?.to_owned())) else { return };
    // Without it, sleeping is less precise: no reason to fail.
    let _ = fs::write(std::path::Path::new("/proc").join(thread).join("timerslack_ns"), "1000");
}

/// How long each message took.
pub struct Sheet {
    start: Instant,
    /// From its arrival to the end of its handler, in nanoseconds; 0 where it was not handled.
    took: Box<[AtomicU64]>,
    /// From its arrival to when its sender had got there.
    late: Box<[AtomicU64]>,
}

impl Sheet {
    /// The clock runs from now on.
    pub fn new(messages: u64) -> Arc<Self> {
        let blank = || (0..messages).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { start: Instant::now(), took: blank(), late: blank() })
    }

    fn since(&self, arrival: &Arrival) -> u64 {
        (self.start.elapsed().as_nanos() as u64).saturating_sub(arrival.due)
    }

    fn wait_until_due(&self, arrival: &Arrival) {
        let due = Duration::from_nanos(arrival.due);
        while let Some(left) = due.checked_sub(self.start.elapsed()) {
            thread::sleep(left);
        }
        self.late[arrival.seq as usize].store(self.since(arrival), Ordering::Relaxed);
    }

    pub fn handled(&self, arrival: &Arrival) {
        std::hint::black_box(arrival.pad[1]);
        self.took[arrival.seq as usize].store(self.since(arrival).max(1), Ordering::Relaxed);
    }

    /// The times of those that are wanted, in ascending order. To be called
    /// when all have been handled.
    pub fn times(&self, schedule: &Schedule, wanted: impl Fn(&Arrival) -> bool) -> Times {
        Times::of(&self.took, schedule, wanted)
    }

    pub fn lateness(&self, schedule: &Schedule) -> Times {
        Times::of(&self.late, schedule, |_| true)
    }
}

/// Sorted times.
pub struct Times(Vec<u64>);

impl Times {
    fn of(all: &[AtomicU64], schedule: &Schedule, wanted: impl Fn(&Arrival) -> bool) -> Self {
        let wanted = schedule.arrivals().filter(|arrival| wanted(arrival));
        let mut times: Vec<_> =
            wanted.map(|arrival| all[arrival.seq as usize].load(Ordering::Acquire)).collect();
        times.sort_unstable();
        Self(times)
    }

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
        for senders in [1, 2, 16] {
            let schedule = Schedule::draw(100_001, &keys::uniform(), senders);
            assert_eq!(schedule.total(), 100_001);
            assert!(schedule.arrivals().map(|arrival| arrival.seq).eq(0..100_001));
            let last = schedule.arrivals().map(|arrival| arrival.due).max().unwrap() as f64 / 1e9;
            assert!((last - 5.0).abs() < 0.3, "100,001 at 20,000/s in {last} s");
            let sleeping = schedule.arrivals().filter(|arrival| arrival.sleeps).count();
            assert!((800..1_200).contains(&sleeping), "{sleeping}");
        }
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
