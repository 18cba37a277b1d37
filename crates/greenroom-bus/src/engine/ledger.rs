//! What became of the events taken: `taken = handled + dead_lettered + ignored + refused`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    inputs::{Input, UnderWay},
    letters::Letters,
    order_audit::{Line, OrderAudit},
};
use crate::{
    dead_letter::Reason,
    settlement::{Ack, Outcome, Settle, Settled},
    source::Receipts,
};

/// The slowest keys that a report names.
const SLOWEST: usize = 10;

/// Latencies above this are counted as this: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) taken: AtomicU64,
    pub(crate) handled: AtomicU64,
    pub(crate) dead_lettered: AtomicU64,
    pub(crate) ignored: AtomicU64,
    pub(crate) refused: AtomicU64,
    /// Attempts that failed, and whose effect is not known.
    pub(crate) unanswered: AtomicU64,
    pub(crate) out_of_order: AtomicU64,
    /// Events that were acknowledged before their outputs were lost.
    pub(crate) lost_outputs: AtomicU64,
    /// Events queued in pools or waiting for another attempt, when last looked at.
    pub(crate) queued: AtomicU64,
    pub(crate) peak_queued: AtomicU64,
    /// Stored dead letters by reason.
    pub(crate) reasons: Mutex<BTreeMap<&'static str, u64>>,
    /// Dead letters on their way to their store.
    pub(crate) letters: Letters,
    /// Stored dead letters of each pool.
    pool_letters: Box<[AtomicU64]>,
    pub(crate) audit: OrderAudit,
    latency: Mutex<Histogram<u64>>,
    slowest: Slowest,
}

impl Ledger {
    pub(crate) fn new(pools: usize) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            taken: zero(),
            handled: zero(),
            dead_lettered: zero(),
            ignored: zero(),
            refused: zero(),
            unanswered: zero(),
            out_of_order: zero(),
            lost_outputs: zero(),
            queued: zero(),
            peak_queued: zero(),
            reasons: Mutex::default(),
            letters: Letters::default(),
            pool_letters: (0..pools).map(|_| zero()).collect(),
            audit: OrderAudit::default(),
            latency: Mutex::new(histogram()),
            slowest: Slowest::default(),
        }
    }

    /// Every count of the same moment, or of shortly after one another: what was taken is read last, so that nothing is
    /// settled in it that was not taken.
    pub(crate) fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        Counts {
            handled: load(&self.handled),
            dead_lettered: load(&self.dead_lettered),
            ignored: load(&self.ignored),
            refused: load(&self.refused),
            taken: load(&self.taken),
        }
    }

    /// A dead letter has been stored.
    pub(crate) fn count_letter(&self, reason: Reason, pool: Option<usize>) {
        *self.reasons.lock().entry(reason.as_str()).or_default() += 1;
        if let Some(pool) = pool {
            self.pool_letters[pool].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Stored dead letters of the pool at this place.
    pub(crate) fn letters_of_pool(&self, pool: usize) -> u64 {
        self.pool_letters[pool].load(Ordering::Relaxed)
    }

    /// The latency at these quantiles, in microseconds.
    pub(crate) fn latency(&self, quantiles: [f64; 3]) -> [u64; 3] {
        let latency = self.latency.lock();
        quantiles.map(|quantile| latency.value_at_quantile(quantile))
    }

    pub(crate) fn slowest(&self) -> Vec<(Line, Duration)> {
        let mut slowest: Vec<_> = self.slowest.keys.lock().clone().into_iter().collect();
        slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        slowest
    }
}

/// What was taken, and what became of it so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) taken: u64,
    pub(crate) handled: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) ignored: u64,
    pub(crate) refused: u64,
}

impl Counts {
    pub(crate) fn settled(&self) -> u64 {
        self.handled + self.dead_lettered + self.ignored + self.refused
    }

    /// Taken and not settled. 0 where more was settled than taken, which the report then shows.
    pub(crate) fn unsettled(&self) -> u64 {
        self.taken.saturating_sub(self.settled())
    }
}

/// Two significant digits are enough for a report; the table then takes some tens of kilobytes.
fn histogram() -> Histogram<u64> {
    let bounded = Histogram::new_with_bounds(1, LONGEST_US, 2);
    bounded.unwrap_or_else(|_| unreachable!("the bounds are constants that the histogram accepts"))
}

/// The keys whose events took longest from taken to settled.
#[derive(Debug, Default)]
struct Slowest {
    /// The shortest time that enters the table, in microseconds; read without its lock.
    threshold: AtomicU64,
    keys: Mutex<HashMap<Line, Duration, foldhash::fast::RandomState>>,
}

impl Slowest {
    fn offer(&self, line: &Line, time: Duration) {
        if (time.as_micros() as u64) <= self.threshold.load(Ordering::Relaxed) {
            return;
        }
        let mut keys = self.keys.lock();
        let longest = keys.entry(line.clone()).or_default();
        *longest = time.max(*longest);
        if keys.len() > SLOWEST {
            let least = keys.iter().min_by_key(|(_, time)| **time).map(|(line, _)| line.clone());
            least.and_then(|line| keys.remove(&line));
        }
        if keys.len() == SLOWEST {
            let least = keys.values().min().copied().unwrap_or_default();
            self.threshold.store(least.as_micros() as u64, Ordering::Relaxed);
        }
    }
}

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
        let ledger = &self.batch.ledger;
        let time = self.batch.taken_at.elapsed();
        if let Some(line) = &self.line {
            ledger.audit.settled(line);
            ledger.slowest.offer(line, time);
        }
        let counter = match how {
            Settled::Acknowledged(Outcome::Handled) => &ledger.handled,
            Settled::Acknowledged(Outcome::DeadLettered) => &ledger.dead_lettered,
            Settled::Acknowledged(Outcome::Ignored) => &ledger.ignored,
            Settled::Refused(_) => &ledger.refused,
        };
        let micros = (time.as_micros() as u64).clamp(1, LONGEST_US);
        ledger.latency.lock().saturating_record(micros);
        counter.fetch_add(1, Ordering::AcqRel);
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

/// The settlement of one of several handlers that an event goes to, where that one keeps a line.
pub(crate) struct PartTicket {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) line: Line,
    /// The part of the event's own settlement, until this one has its outcome.
    pub(crate) event: Mutex<Option<Ack>>,
}

impl Settle for PartTicket {
    fn settled(&self, how: Settled) {
        self.ledger.audit.settled(&self.line);
        let Some(event) = self.event.lock().take() else { return };
        match how {
            Settled::Acknowledged(outcome) => {
                event.set_outcome(outcome);
                event.confirm();
            }
            Settled::Refused(why) => event.refuse(why),
        }
    }
}

/// Of the outputs of an event that was acknowledged before they are stored.
pub(crate) struct OutputsTicket(pub(crate) Arc<Ledger>);

impl Settle for OutputsTicket {
    fn settled(&self, how: Settled) {
        if !how.is_acknowledged() {
            self.0.lost_outputs.fetch_add(1, Ordering::AcqRel);
        }
    }
}
