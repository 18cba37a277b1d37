//! The reason that a supervisor gives for its own end.

use crate::ExitReason;

/// The report of a supervisor to its own supervisor when a child has used up its budget.
pub(crate) fn gave_up(child: &str) -> ExitReason {
    ExitReason::failed(format!("the restart budget of {child} is used up"))
}
