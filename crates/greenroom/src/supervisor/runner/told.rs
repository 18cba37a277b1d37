//! Notices of a supervisor: to callers that wait for a child, and to the logs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_queue::discard::discard;

use super::Runner;
use crate::supervisor::{error::ChangeError, plan::PlanNotice, waiting::answer};

impl Runner {
    /// A reason may contain an error of a user, which is shown and dropped here: its panic ends
    /// here too.
    pub(super) fn tell(&mut self, notice: PlanNotice) {
        self.answer(&notice);
        let log = catch_unwind(AssertUnwindSafe(|| log(&self.keeper.name, &notice)));
        if let Err(panic) = log {
            tracing::error!(supervisor = &*self.keeper.name, "showing an exit reason panicked");
            discard(panic);
        }
        discard(notice);
    }

    fn answer(&self, notice: &PlanNotice) {
        let (child, outcome) = match notice {
            PlanNotice::Booted => {
                let boot = self.keeper.state.lock().boot.take();
                boot.map(|boot| boot.send(Ok(())));
                return;
            }
            PlanNotice::Up(child) => (*child, Ok(())),
            PlanNotice::NotAdded { child, reason } => {
                (*child, Err(ChangeError::StartFailed { reason: reason.clone() }))
            }
            _ => return,
        };
        let callers = self.keeper.state.lock().waiting.up(child);
        answer(callers, &outcome);
    }
}

fn log(supervisor: &str, notice: &PlanNotice) {
    use tracing::{debug, error, info, warn};
    match notice {
        PlanNotice::Restarts { child, after, reason } => {
            warn!(supervisor, child = &**child, ?reason, ?after, "a child is restarted");
        }
        PlanNotice::TriesAgain { child, after, reason } => {
            warn!(supervisor, child = &**child, reason, ?after, "a start failed; it is retried");
        }
        PlanNotice::Exceeded { child, reason } => {
            error!(supervisor, child = &**child, ?reason, "a child's restart budget is used up");
        }
        PlanNotice::Ended { child, reason } => {
            info!(supervisor, child = &**child, ?reason, "a child has ended");
        }
        PlanNotice::Spent(reason) => debug!(supervisor, ?reason, "a child's exit changes nothing"),
        PlanNotice::Booted | PlanNotice::Up(_) | PlanNotice::NotAdded { .. } => {}
    }
}
