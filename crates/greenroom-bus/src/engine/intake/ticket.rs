//! The settlement of what an input gave: told to the ledger, to the budget of its input, and to its
//! source.

use std::sync::Arc;

use tokio::time::Instant;

use super::input::{Input, UnderWay};
use crate::{
    engine::account::{ledger::Ledger, order_audit::Line},
    settlement::{Settle, Settled},
    source::Receipts,
};

/// What the events of one batch share. One for each batch rather than one for all events: the count of its owners is
/// written for every event, by the input and by whoever settles, and these do not meet on the same batch.
pub(crate) struct Batch {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) taken_at: Instant,
    /// Who of its source hears of settlements, where anybody does.
    pub(crate) receipts: Option<Arc<dyn Receipts>>,
    /// Keeps its input from being done, where it has one.
    under_way: Option<UnderWay>,
}

impl Batch {
    pub(crate) fn of(
        ledger: &Arc<Ledger>,
        input: &Arc<Input>,
        taken_at: Instant,
        receipts: Option<Arc<dyn Receipts>>,
    ) -> Arc<Self> {
        let under_way = Some(UnderWay::of(input));
        Arc::new(Self { ledger: ledger.clone(), taken_at, receipts, under_way })
    }

    /// For more events of the same pull.
    pub(crate) fn another(&self) -> Arc<Self> {
        Arc::new(Self {
            ledger: self.ledger.clone(),
            taken_at: self.taken_at,
            receipts: self.receipts.clone(),
            under_way: self.under_way.as_ref().map(|other| UnderWay::of(other.input())),
        })
    }

    /// Of events that a caller gave to a router.
    pub(crate) fn of_caller(ledger: &Arc<Ledger>) -> Arc<Self> {
        let taken_at = Instant::now();
        Arc::new(Self { ledger: ledger.clone(), taken_at, receipts: None, under_way: None })
    }
}

/// The settlement of one event.
pub(crate) struct Ticket {
    pub(crate) batch: Arc<Batch>,
    /// What it takes of the budget.
    pub(crate) bytes: u32,
    /// The line that it stands in, where it has an order.
    pub(crate) line: Option<Line>,
}

impl Settle for Ticket {
    fn settled(&self, how: Settled) {
        self.batch.ledger.settled(how, self.batch.taken_at.elapsed(), self.line.as_ref());
        if let Some(input) = self.batch.under_way.as_ref().map(UnderWay::input) {
            input.budget.give_back(self.bytes);
        }
    }
}

/// The same, of a source that hears of it.
pub(crate) struct PlacedTicket {
    pub(crate) ticket: Ticket,
    pub(crate) position: u64,
}

impl Settle for PlacedTicket {
    fn settled(&self, how: Settled) {
        self.ticket.settled(how);
        if let Some(receipts) = &self.ticket.batch.receipts {
            receipts.settled(self.position, how);
        }
    }
}
