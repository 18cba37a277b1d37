//! The error of a sender.

use greenroom_queue::permits::Refused;

use crate::NotAccepted;

/// The error of a refused sender. `why_closed` says why the pool is closed.
pub(crate) fn not_accepted(
    refused: Refused,
    why_closed: impl FnOnce() -> NotAccepted,
) -> NotAccepted {
    match refused {
        Refused::NotNow | Refused::Full | Refused::Rejected => NotAccepted::Full,
        Refused::Closed => why_closed(),
        Refused::Dropped => NotAccepted::Dropped,
        Refused::ByPolicy => NotAccepted::Refused,
        Refused::KeyFull | Refused::KeyRejected => NotAccepted::KeyFull,
        Refused::Parked => NotAccepted::Parked,
        Refused::KeyRequired => NotAccepted::KeyRequired,
    }
}
