//! A simulated service, and clients in front of it that obey a limit.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use super::{Adaptive, AdaptiveLimit, Outcome};

const MILLI: Duration = Duration::from_millis(1);

/// A sequence of numbers between 0 and 1 (SplitMix64; Steele and others, OOPSLA 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A service that works on a number of messages at once and queues the rest, and the
/// clients in front of it.
pub(super) struct Simulation {
    pub(super) limit: AdaptiveLimit,
    chance: Chance,
    now: Duration,
    /// The number of messages that the service works on at once.
    pub(super) capacity: usize,
    /// How long it works on one, on average.
    pub(super) service: Duration,
    /// The spread of the service time: 0 for none, 1 for anything from zero to twice the average.
    pub(super) spread: f64,
    /// How many it lets wait; it refuses the others, in a millisecond.
    pub(super) queue: usize,
    /// Refuses everything.
    pub(super) is_out: bool,
    /// How many messages could be in flight if there were no limit.
    pub(super) demand: usize,
    /// How many it works on or lets wait.
    inside: usize,
    /// When each place in the service is free again.
    places: BinaryHeap<Reverse<Duration>>,
    /// When each message ends, when it was started, and whether it was refused.
    in_flight: BinaryHeap<Reverse<(Duration, Duration, bool)>>,
}

/// The figures of a stretch of time.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    pub(super) done: usize,
    pub(super) refused: usize,
    seconds: f64,
    latency: f64,
    /// The limit at each end of a message, summed up.
    limits: f64,
    pub(super) highest: usize,
}

impl Stretch {
    pub(super) fn per_second(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    pub(super) fn mean_latency(&self) -> Duration {
        Duration::from_secs_f64(self.latency / self.done.max(1) as f64)
    }

    pub(super) fn mean_limit(&self) -> f64 {
        self.limits / (self.done + self.refused).max(1) as f64
    }
}

impl Simulation {
    /// 50 at once, 20 ms each: 2,500 a second.
    pub(super) fn new(settings: Adaptive, seed: u64) -> Self {
        Self {
            limit: AdaptiveLimit::new(settings).unwrap_or_else(|error| panic!("{error}")),
            chance: Chance(seed),
            now: Duration::ZERO,
            capacity: 50,
            service: 20 * MILLI,
            spread: 0.5,
            queue: usize::MAX,
            is_out: false,
            demand: usize::MAX,
            inside: 0,
            places: BinaryHeap::new(),
            in_flight: BinaryHeap::new(),
        }
    }

    fn start_all(&mut self) {
        while self.in_flight.len() < self.demand && self.limit.try_start() {
            let refused = self.is_out || self.inside >= self.capacity.saturating_add(self.queue);
            self.inside += usize::from(!refused);
            let end = if refused { self.now + MILLI } else { self.serve() };
            self.in_flight.push(Reverse((end, self.now, refused)));
        }
    }

    /// First come, first served.
    fn serve(&mut self) -> Duration {
        while self.places.len() > self.capacity {
            self.places.pop();
        }
        let free = match self.places.len() < self.capacity {
            true => self.now,
            false => self.places.pop().map_or(self.now, |Reverse(free)| free),
        };
        let factor = 1.0 + self.spread * (2.0 * self.chance.next() - 1.0);
        let end = free.max(self.now) + self.service.mul_f64(factor);
        self.places.push(Reverse(end));
        end
    }

    pub(super) fn run(&mut self, time: Duration) -> Stretch {
        let until = self.now + time;
        let mut stretch = Stretch { seconds: time.as_secs_f64(), ..Stretch::default() };
        self.start_all();
        while let Some(Reverse((end, started, refused))) = self.in_flight.pop() {
            if end > until {
                self.in_flight.push(Reverse((end, started, refused)));
                break;
            }
            self.now = end;
            self.end(started, refused, &mut stretch);
            self.start_all();
        }
        self.now = until;
        stretch
    }

    fn end(&mut self, started: Duration, refused: bool, stretch: &mut Stretch) {
        self.inside -= usize::from(!refused);
        let latency = self.now - started;
        let outcome = if refused { Outcome::Rejected } else { Outcome::Done };
        self.limit.finish(self.now, latency, outcome);
        stretch.limits += self.limit.limit() as f64;
        stretch.highest = stretch.highest.max(self.limit.limit());
        match refused {
            true => stretch.refused += 1,
            false => {
                stretch.done += 1;
                stretch.latency += latency.as_secs_f64();
            }
        }
    }
}
