//! A consumer of a group, as a source.
//!
//! ```text
//!           XREADGROUP, XAUTOCLAIM             pulled, at most 256 at a time
//!  server ◀────────────────────────▶ driver ──▶ ready ──▶ RedisSource ──▶ engine
//!   streams     XACK, XCLAIM                      ▲                          │
//!                                                 └── how it was settled ◀───┘
//! ```
//!
//! **Delivery.** Each entry is acknowledged by itself (`XACK`), once the result of its event is
//! stored.
//!
//! **After a crash**, unsettled entries and those with unconfirmed acknowledgements are repeated. A
//! restart with the same consumer name reads them first, in stream order.
//!
//! **Several processes** of a group share a stream, and each gets some of its entries. So a key is
//! handled in order only if one process reads its stream. Entries that a consumer leaves pending
//! for [`claim_after`](RedisInput::claim_after) are claimed by another one. Each process renews the
//! claim on its entries (`XCLAIM`) before half of that time is over. A process that was frozen for
//! longer starts nothing until it has compared its entries with the pending list, and gives up a
//! stream if it has lost one.
//!
//! **A stop** gives back entries that were not started or were refused: their idle time is set so
//! that any consumer of the group may claim them at once.
//!
//! **Outages.** A lost connection is retried without end. Handlers continue, and their entries are
//! acknowledged over the next connection. A group that was deleted is recreated at its last
//! position, and the engine gives up waiting events of its stream. Which entries survive a restart
//! of the server depends on its persistence.

mod committer;
mod driver;
mod groups;
mod link;
mod looking;
mod shared;
mod state;

use std::sync::Arc;

use greenroom_bus::{
    record::Mapping,
    source::{
        Committer, Lease, Partition, Places, Pull, Pulling, Receipts, Source, SourceError,
        StatusCell, Taken,
    },
    wait::wait_until,
};
use tokio::sync::mpsc;

pub use self::looking::RedisLooking;
use self::{
    committer::Commits,
    driver::Driver,
    link::Link,
    shared::{Heard, PANICKED, Shared},
    state::Revocation,
};
use crate::{
    connection::{Attempts, Server},
    form::Form,
    options::RedisInput,
};

/// Events per pull.
const BATCH: usize = 256;

/// Reads streams as a consumer of a group.
pub struct RedisSource {
    described: String,
    shared: Arc<Shared>,
    commits: Arc<Commits>,
    /// The stream of the last pull.
    last: usize,
}

impl RedisSource {
    /// Connects, makes missing groups, and starts to read. Call it on the runtime of the engine.
    ///
    /// # Errors
    /// The options are invalid, no server answers within `connect_within`, it refuses the
    /// credentials, or a key is not a stream.
    ///
    /// # Cancel safety
    /// A dropped future may have made streams and groups.
    pub async fn open(input: RedisInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let described = input.described();
        let failed = |why: String| SourceError::new(&described, why);
        let server = Server::new(&input).map_err(failed)?;
        let mut attempts = Attempts::new(&server, input.connect_within);
        let (link, resumed) = loop {
            match Link::begin(&server, &input).await {
                Ok(begun) => break begun,
                Err(error) => attempts.failed(error).await.map_err(failed)?,
            }
        };
        let shared = Shared::new(&described, &server.shown, &input.streams);
        let (driver, commands) = mpsc::unbounded_channel();
        let form = Form::new(&input, records);
        let run = Driver { server, shared: shared.clone(), commands, input, form };
        tokio::spawn(run.run(link));
        let commits = Arc::new(Commits { shared: shared.clone(), driver, resumed });
        Ok(Self { described, shared, commits, last: 0 })
    }

    fn next(&mut self, into: &mut Vec<Taken>) -> Option<Result<Pull, SourceError>> {
        if self.shared.has_failed() {
            return Some(Err(SourceError::new(&self.described, PANICKED)));
        }
        let is_wanted = |stream: &shared::Stream| {
            stream.look(|state| state.standing.revocation == Revocation::Wanted)
        };
        if self.shared.streams.iter().any(is_wanted) {
            return Some(Ok(Pull::Revoke));
        }
        let count = self.shared.streams.len();
        let mut turn = (1..=count).map(|step| (self.last + step) % count);
        self.last = turn.find(|index| self.shared.take(*index, BATCH, into))?;
        Some(Ok(Pull::More))
    }
}

impl Drop for RedisSource {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Source for RedisSource {
    fn describe(&self) -> String {
        self.described.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let shared = self.shared.clone();
            wait_until(&shared.to_source, || self.next(into)).await
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn places(&self) -> Option<Arc<dyn Places>> {
        Some(self.shared.clone())
    }

    fn status(&self) -> Option<Arc<StatusCell>> {
        Some(self.shared.status.clone())
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        Some(self.shared.lease.clone())
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        Some(self.commits.clone())
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        let epoch = self.shared.streams[self.last].look(|state| state.epoch);
        Some(Arc::new(Heard { shared: self.shared.clone(), index: self.last, epoch }))
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        Partition(self.last as u32)
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.shared.set_paused(paused);
    }

    fn revoking(&mut self) -> Vec<Partition> {
        let all = (0..).map(Partition).zip(&self.shared.streams);
        let told = all.filter(|(_, stream)| {
            stream.look(|state| {
                let is_wanted = state.standing.revocation == Revocation::Wanted;
                if is_wanted {
                    state.standing.revocation = Revocation::Told;
                }
                is_wanted
            })
        });
        told.map(|(partition, _)| partition).collect()
    }

    fn revoked(&mut self, partition: Partition) {
        if let Some(stream) = self.shared.stream(partition) {
            stream.look(|state| state.begin_anew());
            self.shared.to_driver.notify_one();
        }
    }
}
