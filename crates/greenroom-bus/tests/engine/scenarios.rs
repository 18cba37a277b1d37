//! The scenarios that every release passes (Z), on virtual time and from seeds;
//! huge events are in `bounds`.
//!
//! What disturbs is compared with the same load, from the same seed, without it.

mod hot_key;
mod malformed;
mod outage;
mod poison;
mod slow_key;

use std::{
    ops::Range,
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom_bus::{
    event::Event,
    source::{
        Source,
        generator::{GeneratorOptions, GeneratorSource},
    },
};
use tokio::time::Instant;

/// As many as `GREENROOM_PROGRAMS` says, or one. A failure names the one that it was found with.
fn seeds() -> Range<u64> {
    let count: u64 = std::env::var("GREENROOM_PROGRAMS").map_or(1, |count| count.parse().unwrap());
    1..1 + count
}

fn generator(options: &GeneratorOptions) -> Box<dyn Source> {
    Box::new(GeneratorSource::new(options.clone()).unwrap())
}

/// When the events of a generator were due, and when they were handled.
#[derive(Clone)]
struct Meter {
    began: Instant,
    /// Events per second.
    rate: f64,
    handled: Arc<Mutex<Vec<Handled>>>,
}

/// An event that was handled.
struct Handled {
    key: String,
    /// After it was due.
    took: Duration,
    at: Instant,
}

impl Meter {
    /// For a generator that begins now.
    fn new(options: &GeneratorOptions) -> Self {
        let rate = options.rate.map_or(f64::INFINITY, |rate| rate.per_second);
        Self { began: Instant::now(), rate, handled: Arc::default() }
    }

    fn handled(&self, event: &Event) {
        let (_, number) = event.id().split_once('-').unwrap();
        let before: u64 = number.parse::<u64>().unwrap() - 1;
        let due = self.began + Duration::from_secs_f64(before as f64 / self.rate);
        let (key, at) = (event.subject().unwrap().to_string(), Instant::now());
        let took = at.saturating_duration_since(due);
        self.handled.lock().unwrap().push(Handled { key, took, at });
    }

    /// Of the events of these keys.
    fn p99(&self, keys: impl Fn(&str) -> bool) -> Duration {
        let handled = self.handled.lock().unwrap();
        let mut took: Vec<_> =
            handled.iter().filter(|event| keys(&event.key)).map(|event| event.took).collect();
        took.sort();
        took[took.len() * 99 / 100]
    }

    /// How many were handled between these times after the beginning.
    fn between(&self, from: Duration, to: Duration) -> usize {
        let handled = self.handled.lock().unwrap();
        let after = |event: &&Handled| (from..to).contains(&(event.at - self.began));
        handled.iter().filter(after).count()
    }
}
