//! What became of the events taken: `taken = handled + dead_lettered + ignored + refused + revoked`.

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
    settlement::{Ack, Outcome, Refusal, Settle, Settled},
};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// The slowest keys that a report names.
const SLOWEST: usize = 10;

/// Latencies above this are counted as this: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

#[derive(Debug)]
pub(crate) struct Ledger {
    taken: AtomicU64,
    outcomes: Outcomes,
    /// Attempts that failed, and whose effect is not known.
    pub(crate) unanswered: AtomicU64,
    pub(crate) out_of_order: AtomicU64,
    /// Events that were acknowledged before their outputs were lost.
    pub(crate) lost_outputs: AtomicU64,
    pub(crate) queued: Queued,
    /// Dead letters that are stored.
    pub(crate) letters: StoredLetters,
    pub(crate) audit: OrderAudit,
    latency: Mutex<Histogram<u64>>,
    slowest: Slowest,
}

/// Events by how they were settled.
#[derive(Debug, Default)]
struct Outcomes {
    handled: AtomicU64,
    dead_lettered: AtomicU64,
    ignored: AtomicU64,
    refused: AtomicU64,
    revoked: AtomicU64,
}

/// Events queued in pools or waiting for another attempt, when last looked at.
#[derive(Debug, Default)]
pub(crate) struct Queued {
    now: AtomicU64,
    most: AtomicU64,
}

impl Queued {
    pub(crate) fn seen(&self, events: u64) {
        self.now.store(events, Ordering::Relaxed);
        self.most.fetch_max(events, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The most that were seen at once.
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// Dead letters that are stored, by reason and by pool.
#[derive(Debug)]
pub(crate) struct StoredLetters {
    reasons: Mutex<BTreeMap<&'static str, u64>>,
    pools: Box<[AtomicU64]>,
}

impl StoredLetters {
    pub(crate) fn count(&self, reason: Reason, pool: Option<usize>) {
        *self.reasons.lock().entry(reason.as_str()).or_default() += 1;
        if let Some(pool) = pool {
            self.pools[pool].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        self.reasons.lock().clone()
    }

    /// Those of the pool at this place.
    pub(crate) fn of_pool(&self, pool: usize) -> u64 {
        self.pools[pool].load(Ordering::Relaxed)
    }
}

impl Ledger {
    pub(crate) fn new(pools: usize) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            taken: zero(),
            outcomes: Outcomes::default(),
            unanswered: zero(),
            out_of_order: zero(),
            lost_outputs: zero(),
            queued: Queued::default(),
            letters: StoredLetters {
                reasons: Mutex::default(),
                pools: (0..pools).map(|_| zero()).collect(),
            },
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
            handled: load(&self.outcomes.handled),
            dead_lettered: load(&self.outcomes.dead_lettered),
            ignored: load(&self.outcomes.ignored),
            refused: load(&self.outcomes.refused),
            revoked: load(&self.outcomes.revoked),
            taken: load(&self.taken),
        }
    }

    /// So many were taken from an input.
    pub(crate) fn takes(&self, events: u64) {
        self.taken.fetch_add(events, Ordering::AcqRel);
    }

    /// A part of an event's settlement that ends by itself: the line that its handler keeps is left then.
    pub(crate) fn part(self: &Arc<Self>, ack: Ack, line: Option<&Line>) -> Ack {
        let Some(line) = line else { return ack };
        self.audit.taken(line);
        let (ledger, line) = (self.clone(), line.clone());
        Ack::new(PartTicket { ledger, line, event: Mutex::new(Some(ack)) })
    }

    /// An event leaves in its turn, or out of it.
    pub(crate) fn leaves(&self, line: Option<&Line>, number: u64) {
        if number > 0 && line.is_some_and(|line| !self.audit.left(line, number)) {
            self.out_of_order.fetch_add(1, Ordering::Relaxed);
            tracing::error!(?line, number, "an event left out of order; please report this");
        }
    }

    /// An event of this line was settled so long after it was taken.
    pub(crate) fn settled(&self, how: Settled, time: Duration, line: Option<&Line>) {
        if let Some(line) = line {
            self.audit.settled(line);
            self.slowest.offer(line, time);
        }
        let counter = match how {
            Settled::Acknowledged(Outcome::Handled) => &self.outcomes.handled,
            Settled::Acknowledged(Outcome::DeadLettered) => &self.outcomes.dead_lettered,
            Settled::Acknowledged(Outcome::Ignored) => &self.outcomes.ignored,
            Settled::Refused(Refusal::Revoked) => &self.outcomes.revoked,
            Settled::Refused(_) => &self.outcomes.refused,
        };
        let micros = (time.as_micros() as u64).clamp(1, LONGEST_US);
        self.latency.lock().saturating_record(micros);
        counter.fetch_add(1, Ordering::AcqRel);
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
    pub(crate) revoked: u64,
}

impl Counts {
    pub(crate) fn settled(&self) -> u64 {
        self.handled + self.dead_lettered + self.ignored + self.refused + self.revoked
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
struct PartTicket {
    ledger: Arc<Ledger>,
    line: Line,
    /// The part of the event's own settlement, until this one has its outcome.
    event: Mutex<Option<Ack>>,
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
