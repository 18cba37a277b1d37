//! Where events leave an engine.

use super::{dead_letters::DeadLetters, outputs::EngineOutputs};

/// The outputs and the dead letters.
pub(crate) struct Exits {
    pub(crate) outputs: EngineOutputs,
    /// Whether an event goes to all outputs that take it, rather than to the first.
    pub(crate) all_outputs: bool,
    pub(crate) dead_letters: DeadLetters,
}
