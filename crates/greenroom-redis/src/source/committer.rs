//! Commits: waits until the server has confirmed the acknowledgements.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    BoxFuture,
    source::{Committer, Partition, PartitionStanding, Resumed, SourceError, Standing},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::shared::Shared;

/// How long a commit waits for the server. Later answers count as well.
const WITHIN: Duration = Duration::from_secs(5);

/// A command for the driver.
pub(super) enum Command {
    /// Acknowledge everything that is settled by now.
    Commit(oneshot::Sender<()>),
    /// Give back entries that were not started, and end.
    End,
}

pub(super) struct Commits {
    pub(super) shared: Arc<Shared>,
    pub(super) driver: mpsc::UnboundedSender<Command>,
    pub(super) resumed: Option<Resumed>,
}

impl Committer for Commits {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            let (done, answer) = oneshot::channel();
            // A driver that has ended has nothing to commit. After a panic, `pull` fails.
            let is_told = self.driver.send(Command::Commit(done)).is_ok();
            if is_told && timeout(WITHIN, answer).await.is_err() {
                tracing::warn!(
                    "Redis does not confirm acknowledgements: they are sent again; after a crash, unconfirmed entries are delivered again"
                );
            }
            Ok(())
        })
    }

    fn end(&self) {
        // The driver may have ended already.
        let _ = self.driver.send(Command::End);
    }

    fn standing(&self) -> Standing {
        let of =
            |state: &mut super::state::State| (state.standing.skipped, state.repeated_at_most());
        let sums = self.shared.streams.iter().map(|stream| stream.look(of));
        let (skipped, repeated_at_most) = sums.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        Standing { resumed: self.resumed, skipped, repeated_at_most }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let all = (0..).map(Partition).zip(&self.shared.streams);
        all.map(|(partition, stream)| stream.look(|state| state.show(partition))).collect()
    }
}
