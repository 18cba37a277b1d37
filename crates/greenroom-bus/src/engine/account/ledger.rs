//! What became of the events taken: `taken = handled + dead_lettered + ignored + refused`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::order_audit::{Line, OrderAudit};
use crate::{
    dead_letter::Reason,
    settlement::{Ack, Outcome, Settle, Settled},
};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

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

    /// An event of this line was settled so long after it was taken.
    pub(crate) fn settled(&self, how: Settled, time: Duration, line: Option<&Line>) {
        if let Some(line) = line {
            self.audit.settled(line);
            self.slowest.offer(line, time);
        }
        let counter = match how {
            Settled::Acknowledged(Outcome::Handled) => &self.handled,
            Settled::Acknowledged(Outcome::DeadLettered) => &self.dead_lettered,
            Settled::Acknowledged(Outcome::Ignored) => &self.ignored,
            Settled::Refused(_) => &self.refused,
        };
        let micros = (time.as_micros() as u64).clamp(1, LONGEST_US);
        self.latency.lock().saturating_record(micros);
        counter.fetch_add(1, Ordering::AcqRel);
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
