//! How a model is run.

pub use loom::{
    future::block_on,
    thread::{JoinHandle, spawn, yield_now},
};

/// How thoroughly a scenario is tried.
#[derive(Debug, Clone, Copy)]
pub enum Effort {
    /// Every order with at most this many changes of thread that no thread asked for.
    Changes(usize),
    /// For the other checker alone.
    Large,
}

/// So many orders of a scenario take a second at most.
const SHORT: usize = 3_000;

/// Whether fewer orders will do, for a check of every change.
fn is_short() -> bool {
    std::env::var_os("GREENROOM_SHORT_MODELS").is_some()
}

/// Tries a scenario in all orders. Panics, and says which, where an assertion fails or all threads wait.
pub fn check(effort: Effort, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = match effort {
        Effort::Changes(most) if is_short() => Some(most.min(1)),
        Effort::Changes(most) => Some(most),
        Effort::Large => return,
    };
    model.max_permutations = is_short().then_some(SHORT);
    model.max_branches = 100_000;
    model.check(scenario);
}
