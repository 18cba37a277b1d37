//! A durable pull consumer of a stream, as a source.
//!
//! ```text
//!           requests, acks, progress              taken, at most 256 at a time
//!  server ◀──────────────────────────▶ driver ──▶ ready ──▶ NatsSource ──▶ engine
//!   stream, consumer                     │ ▲                                │
//!                                        │ └────── how it was settled ◀─────┘
//!                                        └─ hold: what is newer than something missing
//! ```
//!
//! **Delivery.** Each message is acknowledged individually, once the results of its event are
//! stored; a dead letter is terminated (`+TERM`). No message is acknowledged on receipt. All
//! unsettled messages (queued, parked, between two attempts) are reported as in progress before
//! half of `ack_wait` is over, by a task that never waits for the engine. Retries happen here, in
//! the line of their key. Only messages that were never started are given back (`-NAK`), when the
//! source ends or stays paused. Refused messages are neither: the server delivers them again after
//! `ack_wait`.
//!
//! **A crash repeats** unsettled messages, and settled ones whose acknowledgement has not reached
//! the server: a commit, once a second, waits for the answer to the last acknowledgement.
//!
//! **Order after a crash** (N06). While messages that were delivered to an earlier process have not
//! come back, which takes up to `ack_wait`, newer ones are [held back](NatsSourceStats::held_back),
//! and then all continue in the order of the stream. The same happens when deliveries are lost on
//! the way, which a gap in their numbers reveals. Messages that cannot be held any longer continue,
//! are counted ([`out_of_order`](NatsSourceStats::out_of_order)) and logged.
//!
//! **Several processes.** One process reads a consumer at a time: two would each have half of a
//! key's messages. It holds a lease, an entry of the key-value bucket `greenroom-leases`, and a
//! second one [waits](NatsSourceStats::waiting) until the first ends, or was silent for half of
//! `ack_wait`. A process that finds its lease taken gives up its messages in hand, and waits in
//! turn. An account that cannot have such a bucket reads [without](NatsSourceStats::without_lease),
//! and the log says so.
//!
//! **Partitions.** To spread a stream over several processes, have the server map subjects to
//! numbered ones, and read each number by a consumer of its own
//! ([`partitions`](NatsInput::partitions)):
//!
//! ```text
//! mappings: { "orders.*": "orders.{{partition(12,1)}}.{{wildcard(1)}}" }    in the server's configuration
//! stream ORDERS: subjects orders.*.*
//! filters: ["orders.{partition}.*"], partitions: [0, 1, 2]                  this process
//! ```
//!
//! **Outages.** A lost connection is reconnected without end; messages in hand continue, and are
//! acknowledged after that. A deleted consumer is recreated at its last position. A stream that was
//! removed and recreated is a new one: messages in hand of the old one are given up, and the new
//! one is read from its start. A message that the client cannot read ends the connection: it is
//! searched for after that, and given as one that is not an event. Messages that the server
//! delivers again because their acknowledgement was lost are skipped: the last 100,000 are
//! remembered.

mod committer;
mod consumer;
mod delivery;
mod driver;
mod form;
mod hold;
mod lease;
mod looking;
mod requests;
mod shared;
mod stats;
mod statuses;
mod stored;
mod tracker;

use std::sync::{Arc, atomic::Ordering};

use greenroom_bus::{
    record::Mapping,
    source::{
        Committer, Lease, Partition, Pull, Pulling, Receipts, Source, SourceError, StatusCell,
        Taken,
    },
    wait::wait_until,
};
use tokio::sync::{Notify, mpsc};

pub(crate) use self::form::{ORIGIN, Position};
use self::{
    committer::{Commits, Driven},
    driver::Driver,
    form::Form,
    shared::{Revocation, Shared},
    statuses::Statuses,
};
pub use self::{looking::NatsLooking, stats::NatsSourceStats};
use crate::{connection::Connection, options::NatsInput};

/// Events of one pull.
const BATCH: usize = 256;

/// Reads a durable pull consumer, or one for each partition.
pub struct NatsSource {
    commits: Arc<Commits>,
    connection: Arc<Connection>,
    /// Told when any partition has something for the engine.
    wake: Arc<Notify>,
    /// Which partition gave last.
    last: usize,
}

/// The counters of a source, available even while an engine has it.
#[derive(Clone)]
pub struct NatsSourceProbe {
    commits: Arc<Commits>,
    connection: Arc<Connection>,
}

impl NatsSourceProbe {
    /// Its counters so far.
    pub fn stats(&self) -> NatsSourceStats {
        let of = |driven: &Driven| driven.shared.look(|state| state.stats);
        let sum = |all: NatsSourceStats, one: NatsSourceStats| NatsSourceStats {
            doubled: all.doubled + one.doubled,
            skipped: all.skipped + one.skipped,
            fenced: all.fenced + one.fenced,
            out_of_order: all.out_of_order + one.out_of_order,
            held_back: all.held_back + one.held_back,
            waiting: all.waiting + one.waiting,
            without_lease: all.without_lease + one.without_lease,
            ..all
        };
        let all = self.commits.driven.iter().map(of).fold(NatsSourceStats::default(), sum);
        let (reconnects, slow) = (self.connection.reconnects(), self.connection.slow());
        NatsSourceStats { reconnects, slow, ..all }
    }
}

impl NatsSource {
    /// Connects, finds or makes the consumers, and begins to read. Messages are CloudEvents, or
    /// what `records` makes events of. Call it on the runtime that the engine runs on.
    ///
    /// # Errors
    /// The options cannot be used, no server answers in the time that they give, it refuses
    /// the credentials, the stream does not exist, or a consumer of that name is of another kind.
    ///
    /// # Cancel safety
    /// A dropped future may have made consumers.
    pub async fn open(input: NatsInput, records: Option<Mapping>) -> Result<Self, SourceError> {
        let described = input.described();
        let failed = |why: String| SourceError::new(&described, why);
        input.check().map_err(failed)?;
        let connection = Connection::open(&input.server()).await.map_err(failed)?;
        let form = Form::new(&input, records);
        let (input, wake) = (Arc::new(input), Arc::new(Notify::new()));
        let consumer = format!("consumer {} of stream {}", input.consumer, input.stream);
        let statuses = Statuses::new(&described, &connection.shown, consumer);
        let (mut driven, mut drivers) = (Vec::new(), Vec::new());
        for number in input.numbers() {
            let partition = number.map_or(Partition::ONLY, Partition);
            let shared = Shared::new(partition, wake.clone(), statuses.clone());
            let (driver, commands) = mpsc::unbounded_channel();
            let reading = (input.clone(), form.clone(), number);
            let opened = Driver::open(connection.clone(), shared.clone(), commands, reading);
            let (opened, left) = opened.await.map_err(|error| failed(error.into_text()))?;
            statuses.show(&connection, partition, opened.who_reads());
            driven.push(Driven { shared, driver, left });
            drivers.push(opened);
        }
        for driver in drivers {
            tokio::spawn(driver.run());
        }
        let commits = Arc::new(Commits { described, driven });
        Ok(Self { commits, connection, wake, last: 0 })
    }

    /// Looks into it, also once an engine has it.
    pub fn probe(&self) -> NatsSourceProbe {
        NatsSourceProbe { commits: self.commits.clone(), connection: self.connection.clone() }
    }

    fn driven(&self) -> &[Driven] {
        &self.commits.driven
    }

    fn next(&mut self, into: &mut Vec<Taken>) -> Option<Result<Pull, SourceError>> {
        let of = |index: usize| &self.commits.driven[index].shared;
        let count = self.commits.driven.len();
        if let Some(why) =
            (0..count).find_map(|index| of(index).look(|state| state.failure.clone()))
        {
            return Some(Err(SourceError::new(&self.commits.described, why)));
        }
        let is_wanted = |index| of(index).look(|state| state.revocation == Revocation::Wanted);
        if (0..count).any(is_wanted) {
            return Some(Ok(Pull::Revoke));
        }
        let mut turn = (1..=count).map(|step| (self.last + step) % count);
        let gave = turn.find(|index| of(*index).take(BATCH, into))?;
        self.last = gave;
        Some(Ok(Pull::More))
    }
}

impl Drop for NatsSource {
    fn drop(&mut self) {
        for Driven { shared, .. } in self.driven() {
            shared.is_closing.store(true, Ordering::Release);
        }
    }
}

impl Source for NatsSource {
    fn describe(&self) -> String {
        self.commits.described.clone()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let wake = self.wake.clone();
            wait_until(&wake, || self.next(into)).await
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn status(&self) -> Option<Arc<StatusCell>> {
        self.driven().first().map(|driven| driven.shared.statuses.cell.clone())
    }

    fn lease(&self) -> Option<Arc<Lease>> {
        self.driven().first().map(|driven| driven.shared.statuses.lease.clone())
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        Some(self.commits.clone())
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        Some(self.driven()[self.last].shared.heard())
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.driven()[self.last].shared.partition
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        for Driven { shared, .. } in self.driven() {
            shared.set_paused(paused.contains(&shared.partition));
        }
    }

    fn revoking(&mut self) -> Vec<Partition> {
        let told = |driven: &Driven| {
            driven.shared.look(|state| {
                let is_wanted = state.revocation == Revocation::Wanted;
                if is_wanted {
                    state.revocation = Revocation::Told;
                }
                is_wanted.then_some(driven.shared.partition)
            })
        };
        self.driven().iter().filter_map(told).collect()
    }

    fn revoked(&mut self, partition: Partition) {
        let found = self.driven().iter().find(|driven| driven.shared.partition == partition);
        if let Some(Driven { shared, .. }) = found {
            shared.revoked();
        }
    }
}
