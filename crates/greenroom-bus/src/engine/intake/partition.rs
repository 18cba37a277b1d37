//! One assignment of a partition: its limits on events under way, and whether its waiting events
//! are given up. That happens when it is revoked (D15), or when a stop waits only for events in
//! hand (G05).
//!
//! ```text
//! the first event of a partition ──▶ assigned ──▶ revoked ──▶ forgotten, once all that it gave is settled
//!                                       ▲ │                       (the next event of the partition begins another one)
//!                                paused └─┘ by its own budget, or by an operator
//! ```
//!
//! An event names its assignment by a number that is never reused. So the waiting events of a
//! revoked assignment are not confused with later events of the same partition; before an event is
//! started, its number is checked.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    budget::{Budget, BudgetView, InputConfig},
    fences::Fences,
    view::PartitionView,
};
use crate::{
    settlement::{Refusal, Settled},
    source::{Partition, PartitionStanding},
    wait::wait_until,
};

/// Why nothing of an assignment is started any more, the last one overriding those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum GivenUp {
    /// A stop waits only for events in hand, and the input cannot deliver the others again.
    Refused = 1,
    /// A stop waits only for events in hand, and the input delivers the others again.
    GivenBack = 2,
    /// It was revoked: the rest is for its next owner.
    Revoked = 3,
}

/// Of an assignment that is not given up.
const STARTED: u8 = 0;

/// A partition of an input, for as long as it is assigned.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// Among all assignments of the engine.
    pub(crate) number: u32,
    pub(crate) partition: Partition,
    /// Its limits on events under way.
    pub(crate) budget: Budget,
    /// Batches with unsettled events.
    batches: AtomicUsize,
    /// Told when the last of them is.
    settled: Notify,
    began: Instant,
    /// When the last event of it was settled: nanoseconds since then, 0 before any was. Events that
    /// are settled at once may leave either.
    last_settled: AtomicU64,
    /// An operator wants nothing more of it for now.
    is_paused: AtomicBool,
    /// A [`GivenUp`], or [`STARTED`].
    given_up: AtomicU8,
    revocations: Arc<Revocations>,
}

impl Assigned {
    pub(crate) fn new(
        revocations: &Arc<Revocations>,
        partition: Partition,
        config: &InputConfig,
    ) -> Arc<Self> {
        Arc::new(Self {
            number: revocations.fences.assign(),
            partition,
            budget: Budget::new(config),
            batches: AtomicUsize::new(0),
            settled: Notify::new(),
            began: Instant::now(),
            last_settled: AtomicU64::new(0),
            is_paused: AtomicBool::new(false),
            given_up: AtomicU8::new(STARTED),
            revocations: revocations.clone(),
        })
    }

    /// From now on nothing of it is started, except for the events that its handlers have in hand.
    pub(crate) fn give_up(&self, why: GivenUp) {
        // Before the number is listed. Pairs with the load in `ends`: an event that is given up
        // because its number is listed ends as that. Otherwise it would count as refused.
        if self.given_up.fetch_max(why as u8, Ordering::SeqCst) < why as u8 {
            self.revocations.add(self.number, why);
        }
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) != STARTED
    }

    fn is_given_up_as(&self, why: GivenUp) -> bool {
        // Pairs with `fetch_max` in `give_up`, which comes before the number is listed.
        self.given_up.load(Ordering::SeqCst) == why as u8
    }

    /// How an event of it ends that is settled like this: unfinished events of a revoked assignment
    /// go to the next owner, and events that a stop does not wait for are given back. Events that
    /// were refused for another reason, or cut off in hand, stay refused.
    pub(crate) fn ends(&self, how: Settled) -> Settled {
        if how.is_acknowledged() {
            return how;
        }
        if self.is_given_up_as(GivenUp::Revoked) {
            return Settled::Refused(Refusal::Revoked);
        }
        match self.is_given_up_as(GivenUp::GivenBack) {
            true => self.revocations.give_back(how),
            false => how,
        }
    }

    /// An event of it ended like this. One that was done after its partition was revoked may be
    /// handled again by its new owner.
    pub(crate) fn count_stale(&self, how: Settled) {
        if how.is_acknowledged() && self.is_given_up_as(GivenUp::Revoked) {
            self.revocations.stale.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.is_given_up_as(GivenUp::Revoked)
    }

    pub(crate) fn set_paused(&self, paused: bool) {
        // Pairs with the load in `is_paused`: an intake that is woken after
        // this pulls nothing more.
        self.is_paused.store(paused, Ordering::SeqCst);
    }

    pub(crate) fn is_paused(&self) -> bool {
        // Pairs with the store in `set_paused`, after which the intake is woken.
        self.is_paused.load(Ordering::SeqCst)
    }

    /// Nothing of it is under way any more.
    fn is_done(&self) -> bool {
        // In this order. The intake opens a batch for the resting events before it shows that none
        // rests any more (`Budget::show_waiting`), so a thread that sees the second also sees the
        // first. In the reverse order it could miss events that move from one to the other.
        //
        // Pairs with the subtraction in `OpenBatch::drop`: the waiter has enabled its wake before
        // it looks here, so the last batch is seen as gone, or wakes it. Otherwise it would wait
        // for ever.
        self.budget.resting() == 0 && self.batches.load(Ordering::SeqCst) == 0
    }

    /// How long it had been assigned at this moment.
    pub(crate) fn age(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.began)
    }

    /// An event of it was settled this long after the assignment.
    pub(crate) fn settled(&self, age: Duration) {
        let nanos = age.as_secs().saturating_mul(1_000_000_000) + u64::from(age.subsec_nanos());
        self.last_settled.store(nanos.max(1), Ordering::Relaxed);
    }

    /// How long ago the last event of it was settled.
    fn last_settled(&self) -> Option<Duration> {
        let nanos = self.last_settled.load(Ordering::Relaxed);
        let age = self.age(Instant::now());
        (nanos > 0).then(|| age.saturating_sub(Duration::from_nanos(nanos)))
    }

    /// Waits until all that it gave is settled. Pause it first; otherwise this may wait for ever.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn done(&self) {
        wait_until(&self.settled, || self.is_done().then_some(())).await;
    }

    /// The shown state has changed.
    pub(crate) fn look_again(&self) {
        if self.is_done() {
            self.settled.notify_waiters();
        }
    }

    pub(crate) fn view(&self, standing: Option<PartitionStanding>) -> PartitionView {
        let BudgetView { in_flight_bytes, in_flight_limit, held_back, run_ahead, stands, .. } =
            self.budget.view();
        PartitionView {
            partition: self.partition,
            in_flight_bytes,
            in_flight_limit,
            held_back,
            run_ahead,
            is_paused: self.is_paused() || stands,
            last_settled: self.last_settled(),
            standing,
        }
    }
}

/// Runs when its last event is settled: no further question about it can come.
impl Drop for Assigned {
    fn drop(&mut self) {
        if *self.given_up.get_mut() != STARTED {
            self.revocations.forget(self.number);
        }
    }
}

/// Keeps an assignment from being done, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenBatch(Arc<Assigned>);

impl OpenBatch {
    pub(crate) fn open(assigned: &Arc<Assigned>) -> Self {
        // Pairs with the load in `is_done`: a batch is open before its events are handed on.
        // Otherwise a partition could appear done while they are under way.
        assigned.batches.fetch_add(1, Ordering::SeqCst);
        Self(assigned.clone())
    }

    pub(crate) fn assigned(&self) -> &Arc<Assigned> {
        &self.0
    }
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        // Pairs with the load in `is_done`, as explained there.
        if self.0.batches.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.look_again();
        }
    }
}

/// The assignments of an engine that were given up, for as long as something of them is under way.
#[derive(Debug)]
pub(crate) struct Revocations {
    /// Of each assignment by its number.
    pub(crate) fences: Fences,
    /// How many there are. It is almost always 0, and then no further look is needed.
    count: AtomicUsize,
    numbers: Mutex<HashMap<u32, GivenUp>>,
    /// Notified of each, for tasks that hold events aside.
    told: watch::Sender<u64>,
    /// Events that were done after their partition was taken away.
    stale: AtomicU64,
    /// The run was told to stop now.
    is_cut_off: AtomicBool,
}

impl Default for Revocations {
    fn default() -> Self {
        Self {
            fences: Fences::default(),
            count: AtomicUsize::new(0),
            numbers: Mutex::default(),
            told: watch::Sender::new(0),
            stale: AtomicU64::new(0),
            is_cut_off: AtomicBool::new(false),
        }
    }
}

impl Revocations {
    /// True if events of this assignment are not to be started any more.
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.any() && self.numbers.lock().contains_key(&number)
    }

    /// Why not.
    pub(crate) fn why(&self, number: u32) -> Option<GivenUp> {
        if self.any() { self.numbers.lock().get(&number).copied() } else { None }
    }

    /// True if the partition of this assignment was taken away.
    pub(crate) fn is_revoked(&self, number: u32) -> bool {
        self.why(number) == Some(GivenUp::Revoked)
    }

    /// The run is stopped immediately: events in hand are refused.
    pub(crate) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::Release);
    }

    /// How an event ends that a stop has given back.
    pub(crate) fn give_back(&self, how: Settled) -> Settled {
        let is_cut_off = self.is_cut_off.load(Ordering::Acquire);
        match how {
            Settled::Refused(Refusal::Dropped) if !is_cut_off => {
                Settled::Refused(Refusal::GivenBack)
            }
            other => other,
        }
    }

    /// Events that were done after their partition was taken away.
    pub(crate) fn stale(&self) -> u64 {
        self.stale.load(Ordering::Relaxed)
    }

    /// True while something of an assignment that was given up may be under way.
    pub(crate) fn any(&self) -> bool {
        // Pairs with the stores in `add` and `forget`: a task that was told of a revocation sees
        // it. Otherwise events of a partition that was taken away could be started.
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Waits until events of this assignment are not to be started any more.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn until(&self, number: u32) {
        let mut told = self.told();
        while !self.has(number) {
            // The other end is in this very struct.
            let _ = told.changed().await;
        }
    }

    /// Changes with each revocation.
    pub(crate) fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// Nothing of this assignment is started from here on.
    pub(crate) fn add(&self, number: u32, why: GivenUp) {
        {
            let mut numbers = self.numbers.lock();
            let known = numbers.entry(number).or_insert(why);
            *known = why.max(*known);
            // Pairs with the load in `any`. Stored before the notification.
            self.count.store(numbers.len(), Ordering::SeqCst);
        }
        self.told.send_modify(|times| *times += 1);
    }

    fn forget(&self, number: u32) {
        let mut numbers = self.numbers.lock();
        numbers.remove(&number);
        // Pairs with the load in `any`: a late one finds nothing under the lock.
        self.count.store(numbers.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settlement::Outcome;

    const DROPPED: Settled = Settled::Refused(Refusal::Dropped);
    const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);

    fn assigned(revocations: &Arc<Revocations>) -> Arc<Assigned> {
        Assigned::new(revocations, Partition(7), &InputConfig::default())
    }

    #[test]
    fn d15_a_revoked_assignment_is_told_from_the_next_of_its_partition_until_it_is_done() {
        let revocations = Arc::<Revocations>::default();
        let first = assigned(&revocations);
        let (number, open) = (first.number, OpenBatch::open(&first));
        assert!(!revocations.has(number));
        first.give_up(GivenUp::Revoked);
        first.give_up(GivenUp::Revoked);
        let second = assigned(&revocations);
        assert!(revocations.has(number) && !revocations.has(second.number));
        drop(first);
        assert!(revocations.has(number), "a batch of it is open");
        drop(open);
        assert!(!revocations.has(number), "nobody can ask any more");
        assert_eq!(*revocations.told().borrow(), 1, "told once");
    }

    #[test]
    fn d15_what_was_not_done_when_its_partition_was_revoked_is_for_the_next_owner() {
        let revocations = Arc::<Revocations>::default();
        let assigned = assigned(&revocations);
        assert_eq!((assigned.ends(DROPPED), assigned.ends(HANDLED)), (DROPPED, HANDLED));
        assigned.give_up(GivenUp::Revoked);
        assert_eq!(assigned.ends(DROPPED), Settled::Refused(Refusal::Revoked));
        assert_eq!(assigned.ends(HANDLED), HANDLED, "it is done, and its source may still say so");
    }

    #[test]
    fn g08_what_a_stop_does_not_wait_for_is_given_back_and_what_it_cuts_off_is_refused() {
        let revocations = Arc::<Revocations>::default();
        let (once, again) = (assigned(&revocations), assigned(&revocations));
        once.give_up(GivenUp::Refused);
        again.give_up(GivenUp::GivenBack);
        let back = Settled::Refused(Refusal::GivenBack);
        assert_eq!((once.ends(DROPPED), again.ends(DROPPED)), (DROPPED, back));
        let lost = Settled::Refused(Refusal::NotStored);
        assert_eq!((again.ends(HANDLED), again.ends(lost)), (HANDLED, lost));
        assert!(revocations.has(again.number) && !revocations.is_revoked(again.number));
        again.count_stale(HANDLED);
        assert_eq!(revocations.stale(), 0, "nobody else has it yet");
        revocations.cut_off();
        assert_eq!(again.ends(DROPPED), DROPPED);
        again.give_up(GivenUp::Revoked);
        again.give_up(GivenUp::GivenBack);
        assert_eq!(again.ends(DROPPED), Settled::Refused(Refusal::Revoked));
        assert!(revocations.is_revoked(again.number));
    }

    #[test]
    fn o03_what_is_done_after_its_partition_was_revoked_is_a_stale_result() {
        let revocations = Arc::<Revocations>::default();
        let assigned = assigned(&revocations);
        assigned.count_stale(HANDLED);
        assigned.give_up(GivenUp::Revoked);
        assigned.count_stale(DROPPED);
        assert_eq!(revocations.stale(), 0, "done in time, and not done");
        assigned.count_stale(HANDLED);
        assert_eq!(revocations.stale(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn d15_a_partition_is_drained_once_its_last_batch_is_settled_and_nothing_waits() {
        let assigned = assigned(&Arc::default());
        assigned.done().await;
        let (first, second) = (OpenBatch::open(&assigned), OpenBatch::open(&assigned));
        assigned.budget.show_waiting(0, 3);
        let waits = assigned.clone();
        let waits = tokio::spawn(async move { waits.done().await });
        drop((first, second));
        tokio::task::yield_now().await;
        assert!(!waits.is_finished(), "three wait for room");
        assigned.budget.show_waiting(0, 0);
        assigned.look_again();
        waits.await.unwrap();
    }
}
