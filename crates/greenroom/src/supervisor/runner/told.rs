//! Notices of a supervisor: to callers that wait for a child, and to the logs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use greenroom_queue::discard::discard;

use super::Runner;
use crate::supervisor::{child::ChildId, error::ChangeError, plan::PlanNotice};

impl Runner {
    /// A reason may hold an error of a user, which is shown and dropped here: its
    /// panic ends here too.
    pub(super) fn tell(&mut self, notice: PlanNotice) {
        self.answer(&notice);
        let log = catch_unwind(AssertUnwindSafe(|| self.log(&notice)));
        if let Err(panic) = log {
            tracing::error!(supervisor = &*self.name, "showing an exit reason panicked");
            discard(panic);
        }
        discard(notice);
    }

    fn answer(&mut self, notice: &PlanNotice) {
        match notice {
            PlanNotice::Booted => {
                self.boot.take().map(|boot| boot.send(Ok(())));
            }
            PlanNotice::Up(child) => self.waiting.up(*child, &Ok(())),
            PlanNotice::NotAdded { child, reason } => {
                let failed = ChangeError::StartFailed { reason: reason.clone() };
                self.waiting.up(*child, &Err(failed));
            }
            _ => {}
        }
    }

    fn log(&self, notice: &PlanNotice) {
        let supervisor = &*self.name;
        let called = |child: &ChildId| self.plan.lock().name_of(*child);
        match notice {
            PlanNotice::Restarts { child, after, reason } => {
                let child = &*called(child);
                tracing::warn!(supervisor, child, ?reason, ?after, "a child is restarted");
            }
            PlanNotice::TriesAgain { child, after, reason } => {
                let child = &*called(child);
                tracing::warn!(
                    supervisor,
                    child,
                    reason,
                    ?after,
                    "a start failed; it is tried again"
                );
            }
            PlanNotice::Exceeded { child, reason } => {
                let child = &*called(child);
                tracing::error!(supervisor, child, ?reason, "a child's restart budget is used up");
            }
            PlanNotice::Ended { child, reason } => {
                let child = &*called(child);
                tracing::info!(supervisor, child, ?reason, "a child has ended");
            }
            PlanNotice::Spent(reason) => {
                tracing::debug!(supervisor, ?reason, "a child's exit changes nothing");
            }
            PlanNotice::Booted | PlanNotice::Up(_) | PlanNotice::NotAdded { .. } => {}
        }
    }
}
