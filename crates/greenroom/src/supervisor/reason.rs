//! The reason that a supervisor gives for its own end.

use crate::ExitReason;

/// What a supervisor tells its own supervisor when one of its children has used up its budget.
pub(crate) fn gave_up(child: &str) -> ExitReason {
    ExitReason::failed(format!("the restart budget of {child} is used up"))
}
