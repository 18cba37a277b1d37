//! The checks, one per file.

mod gaps;
mod loss;
mod malformed;
mod order;
mod pause;
mod repeats;
mod restart;
mod revoke;
mod shutdown;
mod stuck;

use super::{check::Check, scene::Scene};

/// Checks whether a connector behaves correctly.
///
/// # Errors
/// Its actual behaviour.
type Run = fn(&mut Scene<'_>) -> Result<(), String>;

/// The code of a check.
pub(super) fn runner(check: Check) -> Run {
    match check {
        Check::OrderPerKey => order::run,
        Check::NoLoss => loss::run,
        Check::BoundedRepeats => repeats::run,
        Check::PauseAndResume => pause::run,
        Check::MalformedEvents => malformed::run,
        Check::ShutdownUnderLoad => shutdown::run,
        Check::Restart => restart::run,
        Check::Gaps => gaps::run,
        Check::RevokeDuringLoad => revoke::run,
    }
}
