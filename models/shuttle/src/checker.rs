//! How a model is run.

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler, Scheduler},
};

pub use shuttle::{
    future::block_on,
    thread::{JoinHandle, spawn, yield_now},
};

/// How thoroughly a scenario is tried.
#[derive(Debug, Clone, Copy)]
pub enum Effort {
    /// A small one, which the other checker tries in every order with so many changes of thread.
    Changes(usize),
    /// A large one.
    Large,
}

/// Chance is the same in every run.
const SEED: u64 = 0x6772_6565_6e72_6f6f;

/// Tries a scenario in many orders: half of them evenly by chance, half with few changes of thread, wherever they hurt.
/// Panics, and says which, where an assertion fails or all threads wait.
pub fn check(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    let runs = match effort {
        Effort::Changes(_) => 2_000,
        Effort::Large => 6_000,
    };
    // Fewer will do for a check of every change.
    let runs = if std::env::var_os("GREENROOM_SHORT_MODELS").is_some() { runs / 10 } else { runs };
    let scenario = std::sync::Arc::new(scenario);
    run(RandomScheduler::new_from_seed(SEED, runs), scenario.clone());
    run(PctScheduler::new_from_seed(SEED, 3, runs), scenario);
}

fn run(
    scheduler: impl Scheduler + 'static,
    scenario: std::sync::Arc<impl Fn() + Send + Sync + 'static>,
) {
    let mut config = Config::new();
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(move || scenario());
}
