//! Where events leave an engine.

use super::{dead_letters::DeadLetters, outputs::Outputs};

/// The outputs, and the dead letters beside them.
pub(crate) struct Exits {
    pub(crate) outputs: Outputs,
    /// Whether an event goes to all outputs that take it, rather than to the first.
    pub(crate) all_outputs: bool,
    pub(crate) dead_letters: DeadLetters,
}
