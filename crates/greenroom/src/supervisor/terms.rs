//! The terms on which children go down: each on its own, unless the stop of the
//! supervisor has less time.
//!
//! A supervisor may be stopped again, more urgently, while it stops. The orders in progress are
//! then repeated, and once more at the deadline.

use std::time::Duration;

use tokio::time::Instant;

use crate::Stop;

/// Practically infinite: `Duration::MAX` cannot be added to an instant.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The terms of the supervisor. They only ever become stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Terms {
    /// Whether queued messages are no longer handled.
    now: bool,
    /// The time by which all must be down.
    deadline: Option<Instant>,
}

impl Terms {
    /// These terms combined with those of this stop.
    pub(crate) fn with(self, how: Stop) -> Self {
        match how {
            Stop::Now => Self { now: true, ..self },
            Stop::Graceful { within } => {
                let until = after(Instant::now(), within);
                Self { deadline: Some(self.deadline.map_or(until, |at| at.min(until))), ..self }
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// How to stop a child with its `own` way of stopping, if the stop began at `since`.
    pub(crate) fn stop(&self, own: Stop, since: Instant) -> Stop {
        let now = Instant::now();
        match own {
            _ if self.deadline.is_some_and(|at| at <= now) => Stop::within(Duration::ZERO),
            Stop::Graceful { within } if !self.now => {
                let own = after(since, within);
                let until = self.deadline.map_or(own, |at| at.min(own));
                Stop::within(until.saturating_duration_since(now))
            }
            _ => Stop::Now,
        }
    }

    /// How long it may take to release the message in hand, if it only goes down.
    pub(crate) fn patience(&self, own: Stop, since: Instant) -> Duration {
        match self.stop(own, since) {
            Stop::Graceful { within } => within,
            Stop::Now => {
                let left = |at: Instant| at.saturating_duration_since(Instant::now());
                self.deadline.map_or(FOREVER, left)
            }
        }
    }
}

/// This long after that, or as late as makes no difference.
fn after(since: Instant, wait: Duration) -> Instant {
    since + wait.min(FOREVER)
}

/// Sleeps until then; forever if there is no such moment.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
