//! How a model is run.

pub use loom::{
    future::block_on,
    thread::{JoinHandle, spawn, yield_now},
};

/// How thoroughly a scenario is tried.
#[derive(Debug, Clone, Copy)]
pub enum Effort {
    /// Every order with at most three changes of thread that no thread asked for.
    Small,
    /// With at most two.
    Medium,
    /// For the other checker alone.
    Large,
}

/// Tries a scenario in all orders. Panics, and says which, where an assertion fails or all threads wait.
pub fn check(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = match effort {
        Effort::Small => Some(3),
        Effort::Medium => Some(2),
        Effort::Large => return,
    };
    model.max_branches = 100_000;
    model.check(scenario);
}
