//! The limits of one partition of an input on events under way (D03, D15).
//!
//! ```text
//! source ──pull──▶ rest of the batch ──while it fits──▶ pools, and beside them ──▶ handlers ──▶ settled
//!                                     └───────────── bytes in flight ─────────────┘
//! ```
//!
//! There are two limits, and the partitions of an input share each of them evenly; most inputs are
//! one partition. **Run-ahead** (`run_ahead`) is how many events may wait for full pools. **Bytes**
//! counts all unsettled events that were handed on, wherever they are. An event is handed on if it
//! fits into the rest of the budget, or if nothing else of its partition is in flight. So an event
//! that is larger than the whole budget passes alone, and no event is too large to pass. Memory is
//! bounded by the budget, or by that one event, and by a batch of the source. A line that exceeds
//! the maximum size of an event passes alone as well, unless little of it is kept: a file of such
//! lines would otherwise fill the budget with bytes that no handler takes.
//!
//! Events behind parked keys are in flight as well, until an operator decides about them. They may
//! have half of the bytes. Beyond that, later events of these keys are refused, and only events
//! that park further keys can take the rest.
//!
//! The price: an addition for each turn of the intake, and one for each event that is settled.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{router::Matcher, source::Taken};

/// Which events an input takes, and its limits on events in flight.
#[derive(Clone)]
pub struct InputConfig {
    /// The events that it takes; all of them by default. The others are acknowledged, and count as
    /// ignored; an event that makes this panic is a dead letter.
    pub matcher: Matcher,
    /// Events that may wait for full pools before the input pauses: at least 1, and 10,000 by
    /// default. A larger value lets other pools continue for longer behind a full one, and costs
    /// the memory of that many events.
    pub run_ahead: usize,
    /// Bytes that may be taken and not settled before the input pauses; 64 MiB by default. An event
    /// counts with its [`Event::approximate_bytes`](crate::event::Event::approximate_bytes), a line
    /// that is not an event with its length. A larger event passes while nothing else of its input
    /// is in flight.
    pub in_flight_bytes: u64,
    /// How often its positions are stored, if it keeps any; by default, as often as its source asks
    /// ([`Committer::every`](crate::source::Committer::every)).
    pub commit_every: Option<Duration>,
    /// The most levels of arrays and objects in the data of an event; 128 by default. An event with
    /// more is a dead letter: recursive parsers fail at some depth, among them those of many worker
    /// programs.
    pub max_depth: u32,
}

impl Default for InputConfig {
    fn default() -> Self {
        Self {
            matcher: Matcher::any(),
            run_ahead: 10_000,
            in_flight_bytes: 64 << 20,
            commit_every: None,
            max_depth: 128,
        }
    }
}

impl From<Matcher> for InputConfig {
    fn from(matcher: Matcher) -> Self {
        Self { matcher, ..Self::default() }
    }
}

/// Data that is not an event passes alone from this size on.
const ALONE: usize = 1 << 20;

/// Below any number of bytes: no task waits.
const NOBODY: i64 = i64::MIN;

/// The bounds of one partition, and how far they are used. Its intake takes, on one task; the
/// thread that settles an event gives back.
#[derive(Debug)]
pub(crate) struct Budget {
    run_ahead: AtomicUsize,
    limit: AtomicI64,
    /// Bytes in flight. Below zero for a moment, where events are settled before
    /// their turn has been counted.
    in_flight: AtomicI64,
    peak: AtomicI64,
    /// The intake waits until no more than this is in flight. Written before it looks, read after
    /// something was given back: one of the two sees the other.
    wanted: AtomicI64,
    freed: Notify,
    /// Events that wait for full pools, at the last look.
    held_back: AtomicU64,
    /// Events that were taken and wait for room here, when last looked at.
    rest: AtomicU64,
    /// Of all that was ever handed on, for the size of an event on average.
    passed: AtomicU64,
    passed_bytes: AtomicU64,
}

/// The share of an input's budgets that parked keys hold, at the last look.
#[derive(Debug, Default)]
pub(crate) struct ParkedPart {
    events: AtomicU64,
    /// About how many bytes they have.
    bytes: AtomicU64,
    /// They take no more of the input's events.
    is_full: AtomicBool,
}

impl ParkedPart {
    /// This many events of an input wait behind parked keys; of these, this many passed, with this
    /// many bytes in all. With half of the bytes there, they take no more, until it is a quarter:
    /// otherwise events that cannot be handled would keep out those that can.
    pub(crate) fn hold(&self, events: u64, (passed, passed_bytes): (u64, u64), limit: u64) {
        let average = passed_bytes as f64 / passed.max(1) as f64;
        let bytes = (events as f64 * average) as u64;
        self.events.store(events, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        let part = if self.is_full() { 4 } else { 2 };
        self.is_full.store(bytes >= (limit / part).max(1), Ordering::Relaxed);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Budget {
    pub(crate) fn new(config: &InputConfig) -> Self {
        Self {
            run_ahead: AtomicUsize::new(config.run_ahead.max(1)),
            limit: AtomicI64::new(limit_of(config)),
            in_flight: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            wanted: AtomicI64::new(NOBODY),
            freed: Notify::new(),
            held_back: AtomicU64::new(0),
            rest: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            passed_bytes: AtomicU64::new(0),
        }
    }

    /// From now on this is the budget of one of this many partitions, which share the limits of
    /// their input.
    pub(crate) fn share(&self, config: &InputConfig, partitions: usize) {
        let partitions = partitions.max(1);
        self.run_ahead.store((config.run_ahead / partitions).max(1), Ordering::Relaxed);
        self.limit.store(limit_of(config) / partitions as i64, Ordering::Relaxed);
    }

    /// Events that may wait for full pools before the intake stops taking more.
    pub(crate) fn run_ahead(&self) -> usize {
        self.run_ahead.load(Ordering::Relaxed)
    }

    fn limit(&self) -> i64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Events that were ever handed on, and their bytes.
    pub(crate) fn passed(&self) -> (u64, u64) {
        (self.passed.load(Ordering::Relaxed), self.passed_bytes.load(Ordering::Relaxed))
    }

    /// A turn of the intake.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn { budget: self, free: self.free(), taken: 0, events: (0, 0) }
    }

    /// The weight of an item: at least a byte, so that nothing is free, and at most four gigabytes.
    pub(crate) fn weight(&self, taken: &Taken) -> u32 {
        let bytes = match &taken.event {
            Ok(event) => event.approximate_bytes(),
            Err(malformed) if malformed.raw.len() < ALONE => malformed.raw.len(),
            Err(malformed) => malformed.raw.len().max(self.limit() as usize),
        };
        u32::try_from(bytes).unwrap_or(u32::MAX).max(1)
    }

    /// The room for an event that passes now. All of it, if nothing is in flight.
    fn free(&self) -> i64 {
        match self.in_flight.load(Ordering::Acquire) {
            in_flight if in_flight <= 0 => i64::MAX,
            in_flight => self.limit() - in_flight,
        }
    }

    /// An event was settled.
    pub(crate) fn give_back(&self, bytes: u32) {
        // Pairs with the load of `in_flight` in `room`: either the intake sees these bytes as free,
        // or this thread sees how few the intake waits for. Otherwise it could wait for ever, with
        // nothing in flight.
        let left = self.in_flight.fetch_sub(i64::from(bytes), Ordering::SeqCst) - i64::from(bytes);
        // Pairs with the store of `at_most` in `room`: the other half.
        if left <= self.wanted.load(Ordering::SeqCst) {
            self.freed.notify_one();
        }
    }

    /// Waits until this many bytes fit, or nothing else is in flight. Only the intake waits.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(crate) async fn room(&self, bytes: u32) {
        let at_most = (self.limit() - i64::from(bytes)).max(0);
        if self.in_flight.load(Ordering::Acquire) <= at_most {
            // Of a wait that was dropped.
            if self.wanted.load(Ordering::Relaxed) != NOBODY {
                // Pairs with the load in `give_back`: a late one leaves a wake behind, after which
                // the next wait looks again.
                self.wanted.store(NOBODY, Ordering::SeqCst);
            }
            return;
        }
        // Pairs with the load in `give_back`. Written before `in_flight` is read, so that either
        // this task sees the returned bytes, or the thread that returns them sees that this task
        // waits.
        self.wanted.store(at_most, Ordering::SeqCst);
        // Pairs with the subtraction in `give_back`: the other half.
        while self.in_flight.load(Ordering::SeqCst) > at_most {
            self.freed.notified().await;
        }
        // Pairs with the load in `give_back`: a late one leaves a wake behind, after which the next
        // wait looks again.
        self.wanted.store(NOBODY, Ordering::SeqCst);
    }

    /// This many events wait for full pools, and this many for room in this budget.
    pub(crate) fn show_waiting(&self, held_back: usize, rest: usize) {
        self.held_back.store(held_back as u64, Ordering::Relaxed);
        // Pairs with the load in `resting`: events that have stopped resting are in an open batch
        // by then.
        self.rest.store(rest as u64, Ordering::Release);
    }

    /// Events that were taken and wait for room here.
    pub(crate) fn resting(&self) -> u64 {
        self.rest.load(Ordering::Acquire)
    }

    /// True if it is not read further until something is settled.
    pub(crate) fn stands(&self) -> bool {
        // Pairs with the stores in `room`: the shown state is that of the intake's wait, or of a
        // moment before. No task waits for it.
        let wants_room = self.in_flight.load(Ordering::SeqCst) > self.wanted.load(Ordering::SeqCst);
        // Pairs with the stores in `room`: everything in flight is more than `NOBODY`.
        let wants_room = wants_room && self.wanted.load(Ordering::SeqCst) != NOBODY;
        wants_room || self.held_back.load(Ordering::Relaxed) >= self.run_ahead() as u64
    }

    /// True if this many more bytes do not fit, and something is in flight.
    pub(crate) fn is_full(&self) -> bool {
        self.free() <= 0
    }

    pub(crate) fn view(&self) -> BudgetView {
        let bytes = |counter: &AtomicI64| counter.load(Ordering::Relaxed).max(0) as u64;
        BudgetView {
            in_flight_bytes: bytes(&self.in_flight),
            most_in_flight_bytes: bytes(&self.peak),
            in_flight_limit: bytes(&self.limit),
            held_back: self.held_back.load(Ordering::Relaxed),
            run_ahead: self.run_ahead() as u64,
            stands: self.stands(),
        }
    }
}

fn limit_of(config: &InputConfig) -> i64 {
    i64::try_from(config.in_flight_bytes).unwrap_or(i64::MAX)
}

/// How far the bounds of one partition are used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BudgetView {
    pub(crate) in_flight_bytes: u64,
    pub(crate) most_in_flight_bytes: u64,
    pub(crate) in_flight_limit: u64,
    pub(crate) held_back: u64,
    pub(crate) run_ahead: u64,
    pub(crate) stands: bool,
}

/// The share of the budget that one turn of the intake takes. Counted when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    budget: &'a Budget,
    free: i64,
    taken: i64,
    /// Those of them that are events, and their bytes.
    events: (u64, u64),
}

impl Turn<'_> {
    /// The bytes that the item counts for, if it may be handed on.
    pub(crate) fn admit(&mut self, taken: &Taken) -> Option<u32> {
        let bytes = self.budget.weight(taken);
        let fits = self.try_take(bytes);
        if fits && taken.event.is_ok() {
            self.count_event(bytes);
        }
        fits.then_some(bytes)
    }

    fn count_event(&mut self, bytes: u32) {
        self.events.0 += 1;
        self.events.1 += u64::from(bytes);
    }

    /// True if these bytes fit. Bytes that were returned in between are read only if they matter.
    fn try_take(&mut self, bytes: u32) -> bool {
        let bytes = i64::from(bytes);
        if bytes > self.free {
            self.count();
            self.free = self.budget.free();
            if bytes > self.free {
                return false;
            }
        }
        // An item that passes alone leaves no room for others.
        self.free = self.free.min(self.budget.limit()) - bytes;
        self.taken += bytes;
        true
    }

    fn count(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        let (events, bytes) = std::mem::take(&mut self.events);
        self.budget.passed.fetch_add(events, Ordering::Relaxed);
        self.budget.passed_bytes.fetch_add(bytes, Ordering::Relaxed);
        let before = self.budget.in_flight.fetch_add(taken, Ordering::AcqRel);
        self.budget.peak.fetch_max(before + taken, Ordering::Relaxed);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn budget(bytes: u64) -> Arc<Budget> {
        Arc::new(Budget::new(&InputConfig { in_flight_bytes: bytes, ..InputConfig::default() }))
    }

    fn in_flight(budget: &Budget) -> u64 {
        budget.view().in_flight_bytes
    }

    #[test]
    fn d03_what_fits_passes_and_what_does_not_waits_for_room() {
        let budget = budget(100);
        let mut turn = budget.turn();
        assert!(turn.try_take(60) && turn.try_take(40));
        assert!(!turn.try_take(1));
        budget.give_back(40);
        assert!(turn.try_take(40), "what was given back is found within the turn");
        drop(turn);
        assert_eq!(in_flight(&budget), 100);
        assert!(!budget.turn().try_take(1));
    }

    #[test]
    fn z11_what_is_larger_than_the_budget_passes_alone() {
        let budget = budget(100);
        assert!(budget.turn().try_take(1));
        assert!(!budget.turn().try_take(1_000), "something else is in flight");
        budget.give_back(1);
        let mut turn = budget.turn();
        assert!(turn.try_take(1_000));
        assert!(!turn.try_take(1), "nothing passes beside it");
        drop(turn);
        assert_eq!(in_flight(&budget), 1_000);
        assert!(!budget.turn().try_take(1));
        budget.give_back(1_000);
        assert!(budget.turn().try_take(1));
        assert_eq!(budget.view().most_in_flight_bytes, 1_000);
    }

    #[test]
    fn d03_what_is_kept_of_an_over_long_line_passes_alone_and_is_no_event_on_average() {
        let budget = budget(64 << 20);
        let line = |bytes| Taken {
            position: 1,
            event: Err(crate::source::Malformed::too_large(vec![0; bytes], "long")),
        };
        let mut turn = budget.turn();
        assert_eq!(turn.admit(&line(ALONE)), Some(64 << 20));
        assert_eq!(turn.admit(&line(1)), None, "nothing passes beside it");
        drop(turn);
        budget.give_back(64 << 20);
        let mut turn = budget.turn();
        assert_eq!(turn.admit(&line(1_000)), Some(1_000));
        assert_eq!(turn.admit(&line(ALONE)), None, "nor does it beside others");
        drop(turn);
        assert_eq!(budget.passed_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn z11_who_waits_is_told_when_there_is_room_and_not_before() {
        let budget = budget(100);
        assert!(budget.turn().try_take(90) && budget.turn().try_take(10));
        let waiter = budget.clone();
        let waits = tokio::spawn(async move { waiter.room(20).await });
        tokio::task::yield_now().await;
        budget.give_back(10);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "10 of 20");
        budget.give_back(90);
        waits.await.unwrap();
        budget.room(1_000).await;
    }

    #[tokio::test(start_paused = true)]
    async fn z11_who_waits_for_more_than_the_budget_is_told_when_nothing_is_left() {
        let budget = budget(100);
        assert!(budget.turn().try_take(1) && budget.turn().try_take(1));
        let waiter = budget.clone();
        let waits = tokio::spawn(async move { waiter.room(101).await });
        tokio::task::yield_now().await;
        budget.give_back(1);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        budget.give_back(1);
        waits.await.unwrap();
    }

    #[test]
    fn d03_what_is_settled_within_its_own_turn_is_not_counted_twice() {
        let budget = budget(100);
        let mut turn = budget.turn();
        assert!(turn.try_take(70));
        budget.give_back(70);
        assert!(turn.try_take(70));
        drop(turn);
        assert_eq!(in_flight(&budget), 70);
    }

    #[test]
    fn d03_parked_keys_take_half_and_may_take_more_again_below_a_quarter() {
        let (budget, part) = (budget(1_000), ParkedPart::default());
        let mut turn = budget.turn();
        for _ in 0..60 {
            assert!(turn.try_take(10));
            turn.count_event(10);
        }
        drop(turn);
        for (parked, refuses) in [(49, false), (50, true), (25, true), (24, false), (49, false)] {
            part.hold(parked, budget.passed(), 1_000);
            assert_eq!(part.is_full(), refuses, "{parked}");
            assert_eq!((part.events(), part.bytes()), (parked, parked * 10));
        }
    }

    #[test]
    fn d15_partitions_share_what_their_input_may_have() {
        let config = InputConfig { in_flight_bytes: 100, run_ahead: 10, ..InputConfig::default() };
        let budget = Budget::new(&config);
        budget.share(&config, 4);
        assert!(budget.turn().try_take(25) && !budget.turn().try_take(1));
        assert_eq!((budget.run_ahead(), budget.is_full()), (2, true));
        budget.share(&config, 1);
        assert!(budget.turn().try_take(75) && budget.is_full());
        budget.share(&config, 1_000);
        assert_eq!(budget.run_ahead(), 1, "one event can always wait");
    }
}
