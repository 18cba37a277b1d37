//! The setup of the engine for one run, and the behaviour of its handler.

use std::{sync::Arc, time::Duration};

use greenroom_bus::source::generator::zipf::Chance;
use tokio::sync::Semaphore;

/// One run.
#[derive(Clone)]
pub(super) struct Plan {
    /// The seed of handlers: the same event has the same outcome.
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) queue: usize,
    pub(super) run_ahead: usize,
    /// The longest time of an attempt.
    pub(super) latency: Duration,
    /// The probability that the first attempt fails.
    pub(super) failures: f64,
    /// Events whose handler never ends, by id.
    pub(super) stuck: Vec<String>,
    /// Attempts end only with a permit from this.
    pub(super) gate: Option<Arc<Semaphore>>,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deed {
    pub(super) latency: Duration,
    pub(super) fails: bool,
    pub(super) is_stuck: bool,
}

impl Plan {
    /// Some workers that take some time and fail now and then.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: 6,
            queue: 40,
            run_ahead: 200,
            latency: Duration::from_millis(3),
            failures: 0.1,
            stuck: Vec::new(),
            gate: None,
        }
    }

    pub(super) fn deed(&self, id: &str, attempt: u32) -> Deed {
        let number = id
            .bytes()
            .fold(self.seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut chance = Chance::new(number);
        let latency = self.latency.mul_f64(chance.unit());
        let fails = attempt == 1 && chance.unit() < self.failures;
        Deed { latency, fails, is_stuck: self.stuck.iter().any(|stuck| stuck == id) }
    }
}
