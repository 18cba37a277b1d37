//! Ensures that settlements have reached the server.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    BoxFuture,
    source::{Committer, PartitionStanding, Resumed, SourceError, Standing},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::shared::{PANICKED, Shared};

/// The timeout for the answer of a connected server. A disconnected one gets it once it is back.
const WITHIN: Duration = Duration::from_secs(5);

/// An order to a driver.
pub(super) enum Command {
    /// Have the server confirm all that is settled by now.
    Commit(oneshot::Sender<()>),
    /// Nothing more is given: give back unstarted messages, and end.
    End,
}

/// One partition, and its driver.
pub(super) struct Driven {
    pub(super) shared: Arc<Shared>,
    pub(super) driver: mpsc::UnboundedSender<Command>,
    /// Messages that were delivered and not acknowledged when it was opened.
    pub(super) left: Option<u64>,
}

/// All partitions of a source. Dropped together with it, it ends their drivers.
pub(super) struct Commits {
    pub(super) described: String,
    pub(super) driven: Vec<Driven>,
}

impl Committer for Commits {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for Driven { driver, .. } in &self.driven {
                let (done, answer) = oneshot::channel();
                // A driver that has ended has nothing to commit; one that has panicked does not
                // answer.
                if driver.send(Command::Commit(done)).is_ok() {
                    answers.push(answer);
                }
            }
            let all = async {
                for answer in answers {
                    answer.await?;
                }
                Ok::<(), oneshot::error::RecvError>(())
            };
            match timeout(WITHIN, all).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(SourceError::new(&self.described, PANICKED)),
                Err(_) => {
                    tracing::warn!(
                        input = self.described,
                        "NATS does not confirm what is settled: it is told again, and what it has not heard of by then is delivered again after a crash"
                    );
                    Ok(())
                }
            }
        })
    }

    fn end(&self) {
        for Driven { driver, .. } in &self.driven {
            // A driver that has ended needs no order.
            let _ = driver.send(Command::End);
        }
    }

    fn standing(&self) -> Standing {
        let left = self.driven.iter().filter_map(|driven| driven.left);
        let resumed =
            left.map(|left| Resumed { partitions: 1, again_at_most: left, ..Resumed::default() });
        let of = |driven: &Driven| {
            driven.shared.look(|state| (state.stats.skipped, state.tracker.repeated_at_most()))
        };
        let sums = self.driven.iter().map(of).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        Standing {
            resumed: resumed.reduce(|a, b| a + b),
            skipped: sums.0,
            repeated_at_most: sums.1,
        }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        self.driven.iter().map(|driven| driven.shared.standing()).collect()
    }
}
