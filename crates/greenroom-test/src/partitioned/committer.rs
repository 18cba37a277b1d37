//! How a broker receives settlements, and stores the resulting positions.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    settlement::Settled,
    source::{Committer, Partition, PartitionStanding, Receipts, Resumed, SourceError, Standing},
    watermark::Epoch,
};

use super::{log::Log, state::Shared};

/// Receives the settlements of one assignment of a partition.
pub(super) struct Heard {
    shared: Shared,
    partition: Partition,
    epoch: Epoch,
}

impl Heard {
    pub(super) fn new(shared: &Shared, partition: Partition, epoch: Epoch) -> Arc<Self> {
        Arc::new(Self { shared: shared.clone(), partition, epoch })
    }
}

impl Receipts for Heard {
    fn settled(&self, position: u64, how: Settled) {
        let Self { shared, partition, epoch } = self;
        shared.change(|state| {
            if !state.log(*partition).settle(*epoch, position, how) {
                let what = format!(
                    "{position} of partition {partition} was settled more often than given"
                );
                state.misuse.push(what);
            }
        });
    }
}

/// Commits for one source, until another replaces it.
pub(super) struct Commits {
    shared: Shared,
    member: u64,
    resumed: Option<Resumed>,
}

impl Commits {
    pub(super) fn new(shared: &Shared, member: u64, resumed: Option<Resumed>) -> Arc<Self> {
        Arc::new(Self { shared: shared.clone(), member, resumed })
    }
}

/// The positions that earlier sources left.
pub(super) fn resumed<'a>(logs: impl Iterator<Item = &'a Log>) -> Option<Resumed> {
    let of = |log: &Log| {
        let committed = log.committed();
        let since = log.given_below().saturating_sub(committed.next());
        Resumed {
            partitions: 1,
            files: 0,
            done: committed.count_done(),
            again_at_most: committed.count_open() + since,
        }
    };
    logs.filter(|log| log.has_commits()).map(of).reduce(|a, b| a + b)
}

impl Committer for Commits {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            self.shared.change(|state| {
                // A settlement after another source has begun is fenced.
                if state.member == self.member {
                    state.logs.values_mut().for_each(Log::commit);
                }
            });
            Ok(())
        })
    }

    fn standing(&self) -> Standing {
        let state = self.shared.0.state.lock();
        let repeated_at_most = state.logs.values().map(Log::repeated_at_most).sum();
        Standing { resumed: self.resumed, repeated_at_most, ..Standing::default() }
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        let state = self.shared.0.state.lock();
        state.logs.values().filter_map(Log::standing).collect()
    }
}
