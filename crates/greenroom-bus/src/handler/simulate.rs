//! `simulate`: a handler that takes its time and sometimes fails, then hands the
//! event on as `pass` does.
//!
//! It stands in for a real target while pools, retries and dead letters are tried out. Each worker
//! draws from a generator of its own, seeded from the factory's seed and the worker's index: with
//! one worker a run repeats itself exactly, and workers do not draw the same numbers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use greenroom_config::{Listing, count, durations, number, options, units::DurationRange};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use crate::event::Event;

use super::{
    Attempt, Failure, Handler, HandlerFactory, HandlerKind, HandlerResult, Handling, Makes,
    OpenHandler, Outputs, handler,
};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<SimulateConfig>("simulate", "Waits, sometimes fails, then does as `pass`.");

options! {
    /// A stand-in for a real handler.
    pub struct SimulateConfig = "simulate" {
        /// How long an event takes, uniformly distributed.
        latency: DurationRange = durations().default("0ms..5ms");
        /// The share of attempts that fail.
        failures: f64 = number(0.0..=1.0).default("0.01");
        /// Makes the failures the same in every run; random by default.
        seed: Option<u64> = count(0..=i64::MAX as u64).optional();
    }
}

impl HandlerKind for SimulateConfig {
    fn makes(&self) -> Makes {
        Makes::Same
    }

    fn open(&self) -> Result<OpenHandler, String> {
        SimulateFactory::new(self.clone()).map(OpenHandler::fixed)
    }
}

/// A seed that differs from run to run.
fn clock_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_nanos() as u64
}

/// Without latency, which costs no timer, and without failures.
impl Default for SimulateConfig {
    fn default() -> Self {
        let (from, to) = (Duration::ZERO, Duration::ZERO);
        Self { latency: DurationRange { from, to }, failures: 0.0, seed: Some(0) }
    }
}

/// Builds [`Simulate`] handlers.
#[derive(Debug, Clone)]
pub struct SimulateFactory {
    config: SimulateConfig,
    /// Where the random numbers start.
    seed: u64,
}

impl SimulateFactory {
    /// A factory of handlers that behave as `config` says.
    ///
    /// # Errors
    /// A sentence for the operator if `failures` is no probability or the
    /// latency range runs backwards.
    pub fn new(config: SimulateConfig) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&config.failures) {
            return Err(format!(
                "simulate: `failures` is {}; give a share between 0 and 1, such as 0.01",
                config.failures
            ));
        }
        let DurationRange { from, to } = config.latency;
        if from > to {
            return Err(format!(
                "simulate: `latency` runs from {from:?} down to {to:?}; put the smaller bound first"
            ));
        }
        let seed = config.seed.unwrap_or_else(clock_seed);
        Ok(Self { config, seed })
    }
}

impl HandlerFactory for SimulateFactory {
    fn build(&self, worker: usize) -> Result<Box<dyn Handler>, String> {
        let seed = self.seed.wrapping_add((worker as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        Ok(Box::new(Simulate { config: self.config.clone(), rng: StdRng::seed_from_u64(seed) }))
    }
}

/// Waits, fails now and then, and hands the event on otherwise.
#[derive(Debug)]
pub struct Simulate {
    config: SimulateConfig,
    /// Drawn from twice an attempt at most: for the latency, then for the outcome.
    rng: StdRng,
}

impl Simulate {
    fn latency(&mut self) -> Duration {
        let DurationRange { from: least, to: most } = self.config.latency;
        if least == most { least } else { self.rng.random_range(least..=most) }
    }

    fn outcome(&mut self) -> HandlerResult {
        if self.config.failures > 0.0 && self.rng.random_bool(self.config.failures) {
            return Err(Failure::retry("simulate: this attempt was drawn to fail"));
        }
        Ok(Outputs::Same)
    }
}

impl Handler for Simulate {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        let (latency, outcome) = (self.latency(), self.outcome());
        if latency.is_zero() {
            return Handling::Done(outcome);
        }
        Handling::Later(Box::pin(async move {
            tokio::time::sleep(latency).await;
            outcome
        }))
    }
}

#[cfg(test)]
mod tests {
    use greenroom_config::table::assert_options;

    use super::*;
    use crate::handler::samples;

    fn millis(from: u64, to: u64) -> DurationRange {
        let [from, to] = [from, to].map(Duration::from_millis);
        DurationRange { from, to }
    }

    fn handler(latency_ms: (u64, u64), failures: f64) -> Box<dyn Handler> {
        let (from, to) = latency_ms;
        let config = SimulateConfig { latency: millis(from, to), failures, seed: Some(7) };
        SimulateFactory::new(config).unwrap().build(0).unwrap()
    }

    #[test]
    fn u03_simulate_without_latency_needs_no_await() {
        let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
        let mut handler = handler((0, 0), 0.0);
        assert!(matches!(handler.handle(&event, &attempt), Handling::Done(Ok(Outputs::Same))));
    }

    #[tokio::test(start_paused = true)]
    async fn u03_simulate_draws_latency_from_its_range() {
        let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
        let mut handler = handler((10, 20), 0.0);
        let mut seen = Vec::new();
        for _ in 0..50 {
            let start = tokio::time::Instant::now();
            samples::settle(handler.handle(&event, &attempt)).await.unwrap();
            seen.push(start.elapsed().as_millis());
        }
        assert!(seen.iter().all(|ms| (10..=21).contains(ms)), "{seen:?}");
        assert!(seen.iter().max() > seen.iter().min(), "{seen:?}");
    }

    #[test]
    fn u03_simulate_fails_its_share_and_a_seed_repeats_itself() {
        let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
        let run = || -> Vec<bool> {
            let mut handler = handler((0, 0), 0.25);
            let failed = |h: &mut Box<dyn Handler>| match h.handle(&event, &attempt) {
                Handling::Done(result) => result.is_err(),
                Handling::Later(_) => panic!("awaits without latency"),
            };
            (0..2000).map(|_| failed(&mut handler)).collect()
        };
        let first = run();
        let failed = first.iter().filter(|f| **f).count();
        assert!((400..600).contains(&failed), "{failed} of 2000 failed");
        assert_eq!(first, run());
    }

    #[test]
    fn u03_simulate_refuses_settings_that_mean_nothing() {
        let config = SimulateConfig { failures: 1.5, ..SimulateConfig::default() };
        assert!(SimulateFactory::new(config).unwrap_err().contains("between 0 and 1"));
        let config = SimulateConfig { latency: millis(2, 1), ..SimulateConfig::default() };
        assert!(SimulateFactory::new(config).unwrap_err().contains("smaller bound first"));
    }

    #[test]
    fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
        assert_options::<SimulateConfig>(
            &[],
            &[
                ("latency", "5ms", &["5", "slow"]),
                ("failures", "1", &["1.1", "-0.1"]),
                ("seed", "7", &["x"]),
            ],
        );
    }
}
