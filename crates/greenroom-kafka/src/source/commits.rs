//! Commits, as the engine asks for them.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    BoxFuture,
    source::{Committer, PartitionStanding, SourceError, Standing},
    watermark::DoneAhead,
};
use tokio::{sync::oneshot, time::timeout};

use super::{poller::Lifeline, shared::Shared};

/// The timeout for an answer of the broker. A later answer counts all the same.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same while no broker can be reached: the end of a run waits for its last commit.
const UNREACHABLE: Duration = Duration::from_secs(2);

pub(super) struct Commits {
    pub(super) shared: Arc<Shared>,
    /// The consumer stays until this is gone: the last commit of a run may come after its source
    /// was dropped.
    pub(super) _lifeline: Arc<Lifeline>,
}

impl Committer for Commits {
    /// Asks the polling thread, which commits one snapshot after the other, and waits until the
    /// broker has answered. Offsets that the broker does not accept for now stay for the next
    /// commit.
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        let (ask, answered) = oneshot::channel();
        {
            let mut state = self.shared.state.lock();
            // A closed consumer commits nothing, and does not answer.
            if !state.is_closed {
                state.asks.push(ask);
            }
        }
        self.shared.wake();
        Box::pin(async move {
            let patience = match self.shared.status.get().is_connected() {
                true => PATIENCE,
                false => UNREACHABLE,
            };
            // Whatever the answer: offsets that were not stored are committed again, or delivered
            // again.
            let _ = timeout(patience, answered).await;
            Ok(())
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.shared.due.notified())
    }

    fn end(&self) {
        self.shared.state.lock().has_ended = true;
        self.shared.wake();
    }

    fn standing(&self) -> Standing {
        let state = self.shared.state.lock();
        let mut standing = Standing::default();
        for tracker in state.trackers.values() {
            let watermark = tracker.watermark.lock();
            standing.skipped += watermark.counts().skipped;
            standing.repeated_at_most += watermark.repeated_at_most();
        }
        standing
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let state = self.shared.state.lock();
        let of = state.parts.iter().map(|(number, part)| {
            let watermark = part.tracker.watermark.lock();
            let given_below = part.ready.front().map_or(watermark.next(), |taken| taken.position);
            PartitionStanding {
                partition: *number,
                epoch: part.epoch,
                next: watermark.next(),
                oldest_open: watermark.lowest(),
                lag: part.end.map(|end| end.saturating_sub(given_below)),
                ahead: DoneAhead { set_bytes: part.set_bytes, ..watermark.done_ahead() },
            }
        });
        of.collect()
    }
}
