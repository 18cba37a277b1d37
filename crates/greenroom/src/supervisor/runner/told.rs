//! What a supervisor tells others: logs, and those who wait for a child.

use super::Runner;
use crate::supervisor::{child::ChildId, error::ChangeError, plan::Notice};

impl Runner {
    pub(super) fn tell(&mut self, notice: Notice) {
        match notice {
            Notice::Booted => {
                if let Some(boot) = self.boot.take() {
                    let _ = boot.send(Ok(()));
                }
            }
            Notice::Up(child) => self.waiting.up(child, &Ok(())),
            Notice::NotAdded { child, reason } => {
                self.waiting.up(child, &Err(ChangeError::StartFailed { reason }));
            }
            Notice::Restarts { child, after, reason } => {
                let (supervisor, child) = (&*self.name, self.called(child));
                tracing::warn!(
                    supervisor,
                    child = &*child,
                    ?reason,
                    ?after,
                    "a child is restarted"
                );
            }
            Notice::TriesAgain { child, after, reason } => {
                let (supervisor, child) = (&*self.name, self.called(child));
                tracing::warn!(
                    supervisor,
                    child = &*child,
                    reason,
                    ?after,
                    "a start failed and is tried again"
                );
            }
            Notice::Exceeded { child, reason } => {
                let (supervisor, child) = (&*self.name, self.called(child));
                tracing::error!(
                    supervisor,
                    child = &*child,
                    ?reason,
                    "a child's restart budget is used up"
                );
            }
            Notice::Ended { child, reason } => {
                let (supervisor, child) = (&*self.name, self.called(child));
                tracing::info!(supervisor, child = &*child, ?reason, "a child has ended");
            }
        }
    }

    fn called(&self, child: ChildId) -> std::sync::Arc<str> {
        self.plan.lock().name_of(child)
    }
}
