//! The outcomes of the events taken: `taken = handled + dead_lettered + ignored + refused + revoked
//! + given_back`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    by_partition::ByPartition,
    order_audit::{LineId, OrderAudit, OrderLine},
    settlements::{Outcomes, Settlements},
};
use crate::{
    dead_letter::Reason,
    settlement::{Ack, Settle, Settled, Watch},
    source::Partition,
};

use greenroom::stats::LatencyHistogram;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The slowest keys that a report names.
const SLOWEST: usize = 10;

#[derive(Debug)]
pub(crate) struct Ledger {
    taken: AtomicU64,
    settlements: Settlements,
    /// Attempts that failed, and whose effect is not known.
    pub(crate) unanswered: AtomicU64,
    pub(crate) out_of_order: AtomicU64,
    /// Events that were acknowledged before their outputs were lost.
    pub(crate) lost_outputs: AtomicU64,
    pub(crate) queued: Queued,
    /// Dead letters that are stored.
    pub(crate) letters: StoredLetters,
    pub(crate) audit: OrderAudit,
    pub(crate) by_partition: ByPartition,
    slowest: Slowest,
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
            settlements: Settlements::default(),
            unanswered: zero(),
            out_of_order: zero(),
            lost_outputs: zero(),
            queued: Queued::default(),
            letters: StoredLetters {
                reasons: Mutex::default(),
                pools: (0..pools).map(|_| zero()).collect(),
            },
            audit: OrderAudit::default(),
            by_partition: ByPartition::default(),
            slowest: Slowest::default(),
        }
    }

    /// All counts, taken at about the same moment. `taken` is read last, so no event is counted as
    /// settled that is not counted as taken.
    pub(crate) fn counts(&self) -> LedgerCounts {
        let outcomes = self.settlements.outcomes();
        LedgerCounts { taken: self.taken.load(Ordering::Acquire), outcomes }
    }

    /// This many were taken from an input.
    pub(crate) fn takes(&self, events: u64) {
        self.taken.fetch_add(events, Ordering::AcqRel);
    }

    /// A part of an event's settlement that ends by itself: the line that its
    /// handler keeps is left then.
    pub(crate) fn part(
        self: &Arc<Self>,
        ack: Ack,
        line: Option<&OrderLine>,
        partition: Option<Partition>,
    ) -> Ack {
        let Some(line) = line else { return ack };
        self.takes_in_line(line, partition);
        let (ledger, line) = (self.clone(), line.id());
        let (has_left, event) = (AtomicBool::new(false), Mutex::new(Some(ack)));
        Ack::new(PartTicket { ledger, line, partition, has_left, event })
    }

    /// An event of this line was taken, of this partition where its input has several.
    pub(crate) fn takes_in_line(&self, line: &OrderLine, partition: Option<Partition>) {
        self.audit.taken(line);
        if let Some(partition) = partition {
            self.by_partition.taken(line.id(), partition);
        }
    }

    /// An event leaves in its turn, or out of it; its place is its number, in its partition.
    pub(crate) fn leaves(
        &self,
        line: Option<&OrderLine>,
        (number, partition): (u64, Option<u32>),
        taken_at: Instant,
        ack: &Ack,
    ) {
        let Some(line) = line else { return };
        ack.leave();
        let time = taken_at.elapsed();
        if self.slowest.may_enter(time) {
            self.slowest.offer(line.clone(), time);
        }
        if !self.audit.leaves(line.id(), number, partition) {
            self.out_of_order.fetch_add(1, Ordering::Relaxed);
            tracing::error!(?line, number, "an event left out of order; please report this");
        }
    }

    /// An event of this line was settled this long after it was taken, and has not left.
    pub(crate) fn stays_behind(&self, line: LineId, time: Duration) {
        if self.slowest.may_enter(time)
            && let Some(line) = self.audit.find(line)
        {
            self.slowest.offer(line, time);
        }
        self.audit.stays_behind(line);
    }

    /// An event was settled this long after it was taken.
    pub(crate) fn settled(&self, how: Settled, time: Duration) {
        self.settlements.count(how, time.as_micros() as u64);
    }

    /// The latency at these quantiles, in microseconds.
    pub(crate) fn latency(&self, quantiles: [f64; 3]) -> [u64; 3] {
        self.settlements.latency(quantiles)
    }

    /// How long events took from taken to settled, in buckets.
    pub(crate) fn latencies(&self) -> LatencyHistogram {
        self.settlements.latencies()
    }

    pub(crate) fn slowest(&self) -> Vec<(OrderLine, Duration)> {
        let mut slowest: Vec<_> = self.slowest.keys.lock().clone().into_iter().collect();
        slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        slowest
    }
}

/// How many events were taken, and how many of them ended in which way so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerCounts {
    pub(crate) taken: u64,
    pub(crate) outcomes: Outcomes,
}

impl LedgerCounts {
    pub(crate) fn settled(&self) -> u64 {
        self.outcomes.sum()
    }

    /// Taken and not settled. 0 where more was settled than taken, which the report then shows.
    pub(crate) fn unsettled(&self) -> u64 {
        self.taken.saturating_sub(self.settled())
    }
}

/// The keys whose events took longest: from taken to handled, or to settled if they were not
/// handled.
#[derive(Debug, Default)]
struct Slowest {
    /// The shortest time that enters the table, in microseconds; read without its lock.
    threshold: AtomicU64,
    keys: Mutex<HashMap<OrderLine, Duration, foldhash::fast::RandomState>>,
}

impl Slowest {
    /// Whether an event that took this long is among the slowest.
    fn may_enter(&self, time: Duration) -> bool {
        time.as_micros() as u64 > self.threshold.load(Ordering::Relaxed)
    }

    fn offer(&self, line: OrderLine, time: Duration) {
        let mut keys = self.keys.lock();
        let longest = keys.entry(line).or_default();
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

/// The settlement of one of an event's several handlers, if that one keeps a line.
struct PartTicket {
    ledger: Arc<Ledger>,
    line: LineId,
    partition: Option<Partition>,
    has_left: AtomicBool,
    /// The part of the event's own settlement, until this one has its outcome.
    event: Mutex<Option<Ack>>,
}

impl Settle for PartTicket {
    fn left(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    fn is_revoked(&self) -> bool {
        self.event.lock().as_ref().is_some_and(Ack::is_revoked)
    }

    fn part_of(&self) -> Option<Watch> {
        self.event.lock().as_ref().map(Ack::watch)
    }

    fn settled(&self, how: Settled) {
        if !self.has_left.load(Ordering::Relaxed) {
            self.ledger.audit.stays_behind(self.line);
        }
        if let Some(partition) = self.partition {
            self.ledger.by_partition.settled(self.line, partition);
        }
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
