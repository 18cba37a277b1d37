//! The source of a connector, with the ledger between it and the engine.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    settlement::Settled,
    source::{
        Committer, Partition, PartitionStanding, Pull, Pulling, Receipts, Source, SourceError,
        Standing, Taken,
    },
};

use super::{connector::Stored, ledger::Ledger};

pub(super) struct Watched {
    source: Box<dyn Source>,
    ledger: Arc<Ledger>,
    stored: Option<Stored>,
    /// Why it keeps no positions, if it declares so.
    lacks_positions: Option<&'static str>,
}

impl Watched {
    pub(super) fn new(
        source: Box<dyn Source>,
        ledger: &Arc<Ledger>,
        stored: Option<Stored>,
        lacks_positions: Option<&'static str>,
    ) -> Self {
        Self { source, ledger: ledger.clone(), stored, lacks_positions }
    }

    /// The events that were given, and whether they match the declarations.
    fn gave(&self, pull: &Result<Pull, SourceError>, given: &mut [Taken]) {
        let partition = self.source.partition();
        given.iter_mut().for_each(|taken| self.ledger.gives(partition, taken));
        let is_empty = given.is_empty();
        match pull {
            Ok(Pull::More) if is_empty => {
                self.ledger
                    .fails("a pull gave nothing, and did not say that it was the last".to_owned());
            }
            Ok(Pull::Revoke) if !is_empty => {
                self.ledger
                    .fails("a pull that takes partitions away gave events as well".to_owned());
            }
            Ok(_) => {}
            Err(error) => self.ledger.fails(format!("the source broke: {error}")),
        }
    }
}

impl Source for Watched {
    fn describe(&self) -> String {
        self.source.describe()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let before = into.len();
            let pull = self.source.pull(into).await;
            self.gave(&pull, &mut into[before..]);
            pull
        })
    }

    fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    fn replayable(&self) -> bool {
        self.source.replayable()
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        let committer = self.source.committer();
        match (self.lacks_positions, &committer) {
            (Some(why), Some(_)) => {
                self.ledger
                    .fails(format!("its source keeps positions, and the connector says: {why}"));
            }
            (None, None) => {
                self.ledger
                    .fails("its source keeps no positions; its connector has to say so".to_owned());
            }
            _ => {}
        }
        let committer = committer?;
        let (ledger, stored) = (self.ledger.clone(), self.stored.clone());
        Some(Arc::new(WatchedCommits { committer, ledger, stored }))
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        let partition = self.source.partition();
        Some(Arc::new(WatchedReceipts {
            receipts: self.source.receipts(),
            of: (partition, self.ledger.assignment(partition)),
            ledger: self.ledger.clone(),
        }))
    }

    fn is_partitioned(&self) -> bool {
        self.source.is_partitioned()
    }

    fn partition(&self) -> Partition {
        self.source.partition()
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.ledger.pauses(paused);
        self.source.set_paused(paused);
    }

    fn revoking(&mut self) -> Vec<Partition> {
        self.source.revoking()
    }

    fn revoked(&mut self, partition: Partition) {
        self.ledger.revokes(partition);
        self.source.revoked(partition);
    }
}

/// The ledger learns of a settlement before the source does: it must already know every settlement
/// that the source reports.
struct WatchedReceipts {
    receipts: Option<Arc<dyn Receipts>>,
    of: (Partition, u32),
    ledger: Arc<Ledger>,
}

impl Receipts for WatchedReceipts {
    fn settled(&self, position: u64, how: Settled) {
        self.ledger.settles(self.of, position, how);
        if let Some(receipts) = &self.receipts {
            receipts.settled(position, how);
        }
    }
}

struct WatchedCommits {
    committer: Arc<dyn Committer>,
    ledger: Arc<Ledger>,
    stored: Option<Stored>,
}

impl Committer for WatchedCommits {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            let began_with = self.ledger.begins_commit();
            self.committer.commit().await?;
            let stored = self.stored.as_ref().map(|stored| stored());
            self.ledger.commits(began_with, &stored.unwrap_or_default());
            Ok(())
        })
    }

    fn due<'a>(&'a self) -> BoxFuture<'a, ()> {
        self.committer.due()
    }

    fn end(&self) {
        self.committer.end();
    }

    fn standing(&self) -> Standing {
        self.committer.standing()
    }

    fn partitions(&self) -> Vec<PartitionStanding> {
        self.committer.partitions()
    }
}
