//! The checks, a file each.

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

/// Looks whether a connector does what it should.
///
/// # Errors
/// What it did instead.
type Run = fn(&mut Scene<'_>) -> Result<(), String>;

/// What a check does.
pub(super) fn of(check: Check) -> Run {
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
