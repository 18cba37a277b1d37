//! The settlement of an event from an input: reported to the ledger, to the budget of its input,
//! and to its source.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    input::{Input, UnderWay},
    partition::{Assigned, OpenBatch},
};
use crate::{
    engine::account::{ledger::Ledger, order_audit::LineId},
    settlement::{Settle, Settled},
    source::{Partition, Receipts},
};

/// Shared by the events of one batch. One for each batch rather than one for all events: the count
/// of its owners is written for every event, by the input and by the thread that settles it, and
/// these do not contend for the same batch.
pub(crate) struct Batch {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) taken_at: Instant,
    /// How long its partition had been assigned then.
    taken_after: Duration,
    /// The receiver of settlements in its source, if it has one.
    pub(crate) receipts: Option<Arc<dyn Receipts>>,
    /// The partition that they are of, where their input has several.
    pub(crate) partition: Option<Partition>,
    /// Keeps its input and its partition, if any, from being done.
    of: Option<(UnderWay, Option<OpenBatch>)>,
}

impl Batch {
    pub(crate) fn new(
        ledger: &Arc<Ledger>,
        input: &Arc<Input>,
        assigned: &Arc<Assigned>,
        taken_at: Instant,
        receipts: Option<Arc<dyn Receipts>>,
    ) -> Arc<Self> {
        let partition = input.partitions.come_and_go.then_some(assigned.partition);
        let of = Some((UnderWay::new(input), Some(OpenBatch::open(assigned))));
        let (ledger, taken_after) = (ledger.clone(), assigned.age(taken_at));
        Arc::new(Self { ledger, taken_at, taken_after, receipts, partition, of })
    }

    /// Of a dead letter that is handled again. It has no part of the budget: how many of them are
    /// under way is bounded by itself. Nor does it belong to a partition, which it does not know.
    pub(crate) fn of_replay(ledger: &Arc<Ledger>, input: &Arc<Input>) -> Arc<Self> {
        let (ledger, taken_at) = (ledger.clone(), Instant::now());
        let of = Some((UnderWay::new(input), None));
        let taken_after = Duration::ZERO;
        Arc::new(Self { ledger, taken_at, taken_after, receipts: None, partition: None, of })
    }

    /// Of events that a caller gave to a router.
    pub(crate) fn of_caller(ledger: &Arc<Ledger>) -> Arc<Self> {
        let (ledger, taken_at, taken_after) = (ledger.clone(), Instant::now(), Duration::ZERO);
        let (receipts, partition) = (None, None);
        Arc::new(Self { ledger, taken_at, taken_after, receipts, partition, of: None })
    }
}

impl Batch {
    /// How an event of it ends that is settled like this.
    fn ends(&self, how: Settled) -> Settled {
        match &self.of {
            Some((_, Some(open))) => open.assigned().ends(how),
            Some((under_way, None)) => under_way.ends(how),
            None => how,
        }
    }

    fn open(&self) -> Option<&OpenBatch> {
        self.of.as_ref().and_then(|(_, open)| open.as_ref())
    }
}

/// The settlement of one event.
pub(crate) struct Ticket {
    batch: Arc<Batch>,
    /// Its share of the budget.
    bytes: u32,
    /// Its line, if it has an order.
    line: Option<LineId>,
    /// It has left its line.
    has_left: AtomicBool,
}

impl Ticket {
    pub(crate) fn new(batch: Arc<Batch>, bytes: u32, line: Option<LineId>) -> Self {
        Self { batch, bytes, line, has_left: AtomicBool::new(false) }
    }

    /// How an event ends that is settled like this.
    pub(crate) fn ends(&self, how: Settled) -> Settled {
        self.batch.ends(how)
    }
}

impl Settle for Ticket {
    fn is_revoked(&self) -> bool {
        self.batch.open().is_some_and(|open| open.assigned().is_revoked())
    }

    fn left(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    fn settled(&self, how: Settled) {
        let (batch, how) = (&self.batch, self.batch.ends(how));
        let time = batch.taken_at.elapsed();
        if let Some(line) = self.line
            && !self.has_left.load(Ordering::Relaxed)
        {
            batch.ledger.stays_behind(line, time);
        }
        if let (Some(line), Some(partition)) = (self.line, batch.partition) {
            batch.ledger.by_partition.settled(line, partition);
        }
        batch.ledger.settled(how, time);
        if let Some(open) = batch.open() {
            open.assigned().settled(batch.taken_after + time);
            open.assigned().count_stale(how);
            open.assigned().budget.give_back(self.bytes);
        }
    }
}

/// The same, of a source that hears of it.
pub(crate) struct PlacedTicket {
    pub(crate) ticket: Ticket,
    pub(crate) position: u64,
}

impl Settle for PlacedTicket {
    fn is_revoked(&self) -> bool {
        self.ticket.is_revoked()
    }

    fn left(&self) {
        self.ticket.left();
    }

    fn settled(&self, how: Settled) {
        self.ticket.settled(how);
        let batch = &self.ticket.batch;
        if let Some(receipts) = &batch.receipts {
            receipts.settled(self.position, batch.ends(how));
        }
    }
}
