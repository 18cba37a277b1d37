//! Who sends how much, when, and what came of it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Tenants that send a few messages a second, beside those that flood.
pub const OTHERS: u32 = 99;
/// Messages of each of them in a second.
pub const EACH: u32 = 10;
/// Until then the flood is read.
pub const START: Duration = Duration::from_secs(5);
const DURING: Duration = Duration::from_secs(15);
const MILLI: Duration = Duration::from_millis(1);

/// One message.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Those that flood have the first numbers.
    pub tenant: u32,
    pub key: u64,
    /// From 0: of the messages of this tenant, or of all that do not flood.
    pub number: u64,
    pub takes: Duration,
}

/// The load of a run.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many tenants flood.
    pub floods: u32,
    /// Messages of each of these.
    pub messages: u64,
    /// Keys of each of these.
    pub keys: u64,
    /// Whether the others are there.
    pub others: bool,
    /// How long handlers take: the first tenant's, and by how much more each next one's.
    pub takes: (Duration, Duration),
    pub during: Duration,
}

impl Load {
    /// The others, and one tenant with this many messages.
    pub fn flood_of(messages: u64) -> Self {
        Self {
            floods: 1,
            messages,
            keys: 100_000,
            others: true,
            takes: (5 * MILLI, Duration::ZERO),
            during: DURING,
        }
    }

    /// Eight tenants that share so many messages, which take 2 to 16 ms, and no others.
    pub fn eight_floods(messages: u64) -> Self {
        Self {
            floods: 8,
            messages: messages / 8,
            takes: (2 * MILLI, 2 * MILLI),
            others: false,
            ..Self::flood_of(messages)
        }
    }

    pub fn tenants(&self) -> u32 {
        self.floods + OTHERS
    }

    fn takes(&self, tenant: u32) -> Duration {
        self.takes.0 + self.takes.1 * tenant
    }

    /// The messages that are there from the start, those of all floods in turn.
    pub fn flood(self) -> impl Iterator<Item = Job> + Send {
        (0..self.messages).flat_map(move |number| {
            (0..self.floods).map(move |tenant| self.flooding(tenant, number))
        })
    }

    /// A message of a tenant that floods.
    pub fn flooding(&self, tenant: u32, number: u64) -> Job {
        let key = u64::from(tenant) << 32 | (number % self.keys);
        Job { tenant, key, number, takes: self.takes(tenant) }
    }

    /// The messages of the others, each with the time at which it is due.
    pub fn arrivals(self) -> impl Iterator<Item = (Duration, Job)> + Send {
        let rate = if self.others { OTHERS * EACH } else { 0 };
        let all = (f64::from(rate) * self.during.as_secs_f64()) as u32;
        (0..all).map(move |number| {
            // Evenly, and in an order that is another one each time.
            let place = number.wrapping_mul(61) % OTHERS;
            let tenant = self.floods + place;
            let due = Duration::from_secs_f64(f64::from(number) / f64::from(rate));
            let key = u64::from(tenant) << 32 | u64::from(number / OTHERS % 5);
            (due, Job { tenant, key, number: number.into(), takes: self.takes.0 })
        })
    }

    /// Hands each of them on when it is due, on a thread of its own: a timer of the runtime is a
    /// millisecond late by itself.
    pub fn pace(self, start: Instant, mut send: impl FnMut(Job) + Send + 'static) {
        thread::spawn(move || {
            for (due, job) in self.arrivals() {
                thread::sleep((start + due).saturating_duration_since(Instant::now()));
                send(job);
            }
        });
    }
}

/// What was done, and for how long.
pub struct Sheet {
    pub start: Instant,
    during: Duration,
    floods: u32,
    /// Messages of each tenant that were handled.
    handled: Box<[AtomicU64]>,
    /// When each message of the others was done, in nanoseconds from the start; 0: it is not.
    done: Box<[AtomicU64]>,
    /// Nanoseconds in hand of each tenant while it counts.
    in_hand: Box<[AtomicU64]>,
}

impl Sheet {
    pub fn new(load: &Load) -> Self {
        let zeros = |many: usize| (0..many).map(|_| AtomicU64::new(0)).collect();
        Self {
            start: Instant::now(),
            during: load.during,
            floods: load.floods,
            handled: zeros(load.tenants() as usize),
            done: zeros(load.arrivals().count()),
            in_hand: zeros(load.tenants() as usize),
        }
    }

    /// Handles a message.
    pub async fn handle(&self, job: Job) {
        let began = self.start.elapsed();
        tokio::time::sleep(job.takes).await;
        let ended = self.start.elapsed();
        let counts = ended.min(self.during).saturating_sub(began.max(START));
        let in_hand = &self.in_hand[job.tenant as usize];
        in_hand.fetch_add(counts.as_nanos() as u64, Ordering::Relaxed);
        self.handled[job.tenant as usize].fetch_add(1, Ordering::Relaxed);
        if job.tenant >= self.floods {
            self.done[job.number as usize].store(ended.as_nanos() as u64, Ordering::Release);
        }
    }

    pub fn handled(&self, tenant: u32) -> u64 {
        self.handled[tenant as usize].load(Ordering::Relaxed)
    }

    pub fn is_over(&self) -> bool {
        self.start.elapsed() >= self.during
    }

    pub fn figures(&self, load: &Load) -> Figures {
        let mut took = Vec::new();
        let mut missing = 0;
        for ((due, _), done) in load.arrivals().zip(&self.done) {
            if due < START {
                continue;
            }
            match done.load(Ordering::Acquire) {
                // It is late by this much at least.
                0 => {
                    missing += 1;
                    took.push((self.during - due).as_secs_f64() * 1e3);
                }
                done => took.push((done as f64 - due.as_nanos() as f64) / 1e6),
            }
        }
        took.sort_unstable_by(f64::total_cmp);
        let at =
            |part: f64| took.get((took.len() as f64 * part) as usize).copied().unwrap_or_default();
        let counted = (self.during - START).as_secs_f64() * 1e9;
        let workers = |tenant: usize| self.in_hand[tenant].load(Ordering::Relaxed) as f64 / counted;
        let floods: Vec<f64> = (0..load.floods as usize).map(workers).collect();
        let sum: f64 = floods.iter().sum();
        let squares: f64 = floods.iter().map(|one| one * one).sum();
        let jain = if squares > 0.0 { sum * sum / (floods.len() as f64 * squares) } else { 1.0 };
        Figures { p50: at(0.5), p99: at(0.99), missing: f64::from(missing), workers: sum, jain }
    }
}

/// What a run came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// From due to done, of the others' messages, in milliseconds.
    pub p50: f64,
    pub p99: f64,
    /// Messages of the others that were not done at the end.
    pub missing: f64,
    /// How many workers the floods had on average.
    pub workers: f64,
    /// Jain's index of their time in hand.
    pub jain: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load {
        floods: 2,
        messages: 1_000,
        keys: 10,
        others: true,
        takes: (Duration::from_millis(5), Duration::from_millis(1)),
        during: Duration::from_secs(3),
    };

    #[test]
    fn floods_take_turns_and_the_others_come_at_their_rate() {
        assert_eq!(LOAD.flood().filter(|job| job.tenant == 1).count(), 1_000);
        let arrivals: Vec<_> = LOAD.arrivals().collect();
        assert_eq!(arrivals.len(), 2_970);
        for tenant in 2..101 {
            assert_eq!(arrivals.iter().filter(|(_, job)| job.tenant == tenant).count(), 30);
        }
        assert!(arrivals.is_sorted_by_key(|(due, _)| *due));
    }
}
