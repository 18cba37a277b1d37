//! Who makes sure that the server has heard of what is settled.

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

/// The answer of a server that is there. One that is away hears of it once it is back.
const WITHIN: Duration = Duration::from_secs(5);

/// What a driver is told.
pub(super) enum Command {
    /// Have the server hear of all that is settled by now.
    Commit(oneshot::Sender<()>),
    /// Nothing more is given: give back what was not started, and end.
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
            // One that has ended has nothing to commit, and that one has panicked its source says.
            let is_told = self.driver.send(Command::Commit(done)).is_ok();
            if is_told && timeout(WITHIN, answer).await.is_err() {
                tracing::warn!(
                    "Redis does not confirm what is settled: it is told again, and what it has not heard of by then is delivered again after a crash"
                );
            }
            Ok(())
        })
    }

    fn end(&self) {
        // One that has ended needs not be told.
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
