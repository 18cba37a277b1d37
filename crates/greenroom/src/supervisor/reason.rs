//! The one place that knows which exit reasons there are.

use crate::ExitReason;

/// True when the work was done, or the actor was told to end.
pub(crate) fn is_normal(reason: &ExitReason) -> bool {
    matches!(reason, ExitReason::Shutdown)
}

/// What a supervisor tells its own supervisor when one of its children has used up its budget.
pub(crate) fn gave_up(child: &str) -> ExitReason {
    ExitReason::Panicked { message: format!("the restart budget of {child} is used up") }
}
