//! Withdrawing messages from one shard.
//!
//! ```text
//!   lift ─────────▶ sift ─────────────▶ set down
//!   both locks      under no lock       both locks
//!   all that waits  user code chooses   what stays, before what has come since
//! ```
//!
//! Nothing of the shard is started between the first step and the last that has not been taken
//! before: the inbox looks empty to workers, and lanes are neither taken nor closed while their
//! messages are lifted. So the messages that stay keep their order. Owners of lanes go on: a lane
//! that was running may be ready afterwards, or wait for another attempt, or be parked.

use std::{
    any::Any,
    collections::VecDeque,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_queue::{
    block_queue::BlockQueue,
    discard::discard,
    lanes::{Lane, LaneId, LaneState, LiftedLine},
    shard,
    sync::{Ordering, yield_now},
};

use super::{Core, OutboxOf, Queued, take::Outboxed};
use crate::{
    Actor, CallError, PoolEvent, ReplyPort,
    pool::{failed::Failed, pool_payload::PayloadOf},
};

/// How long to wait for a message that is on its way between two places of a shard, while its key
/// is being compared. Longer than that takes, but not for ever, as that is user code.
const PATIENCE: Duration = Duration::from_secs(1);

/// Which messages are to be withdrawn: user code.
pub(crate) struct Predicate<'a, M> {
    is_such: &'a mut dyn FnMut(&M) -> bool,
    /// It has panicked: no further message is withdrawn.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'a, M> Predicate<'a, M> {
    pub(crate) fn new(is_such: &'a mut dyn FnMut(&M) -> bool) -> Self {
        Self { is_such, panic: None }
    }

    pub(crate) fn withdraws(&mut self, message: &M) -> bool {
        if self.has_panicked() {
            return false;
        }
        catch_unwind(AssertUnwindSafe(|| (self.is_such)(message))).unwrap_or_else(|panic| {
            self.panic = Some(panic);
            false
        })
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.panic.is_some()
    }

    pub(crate) fn into_panic(self) -> Option<Box<dyn Any + Send>> {
        self.panic
    }
}

/// The messages that were chosen from some, and those that stay.
pub(super) fn sift<A: Actor, K>(
    entries: VecDeque<Queued<A, K>>,
    predicate: &mut Predicate<'_, A::Message>,
    withdrawn: &mut Vec<Queued<A, K>>,
) -> VecDeque<Queued<A, K>> {
    let mut stay = VecDeque::new();
    for entry in entries {
        match predicate.withdraws(&entry.message) {
            true => withdrawn.push(entry),
            false => stay.push_back(entry),
        }
    }
    stay
}

/// As `sift`, of a queue.
pub(super) fn sift_queue<A: Actor, K>(
    mut queue: BlockQueue<Queued<A, K>>,
    predicate: &mut Predicate<'_, A::Message>,
    withdrawn: &mut Vec<Queued<A, K>>,
) -> BlockQueue<Queued<A, K>> {
    let mut stay = BlockQueue::new();
    for entry in std::iter::from_fn(|| queue.pop_front()) {
        match predicate.withdraws(&entry.message) {
            true => withdrawn.push(entry),
            false => stay.push_back(entry),
        }
    }
    stay
}

type LiftedOf<A, K> = shard::Lifted<PayloadOf<A>, K>;

type LineOf<A, K> = LiftedLine<PayloadOf<A>, K>;

pub(super) type LaneOf<A, K> = Lane<PayloadOf<A>, K>;

/// What waited in a lane.
struct SiftedLine<A: Actor, K> {
    id: LaneId,
    stay: VecDeque<Queued<A, K>>,
    withdrawn: Vec<Queued<A, K>>,
}

/// The messages that were chosen from a shard, and those that stay.
struct Sifted<A: Actor, K> {
    stay: LiftedOf<A, K>,
    /// From the queues.
    withdrawn: Vec<Queued<A, K>>,
    lines: Vec<SiftedLine<A, K>>,
}

impl<A: Actor, K> Sifted<A, K> {
    fn of(
        (lifted, lines): (LiftedOf<A, K>, Vec<LineOf<A, K>>),
        predicate: &mut Predicate<'_, A::Message>,
    ) -> Self {
        // In the order in which they wait: those of lanes are the oldest of their keys.
        let lines = lines.into_iter().map(|(id, line)| {
            let mut withdrawn = Vec::new();
            let stay = sift::<A, K>(line, predicate, &mut withdrawn);
            SiftedLine { id, stay, withdrawn }
        });
        let (lines, mut withdrawn) = (lines.collect(), Vec::new());
        let urgent = sift::<A, K>(lifted.urgent, predicate, &mut withdrawn);
        let queues =
            lifted.queues.map(|queue| sift_queue::<A, K>(queue, predicate, &mut withdrawn));
        Self { stay: shard::Lifted { queues, urgent }, withdrawn, lines }
    }
}

/// What follows from a withdrawal once no lock is held.
struct AfterSweep<A: Actor, K> {
    /// Permits of what was withdrawn.
    permits: u64,
    closed: Vec<LaneOf<A, K>>,
    failed: Vec<Arc<Failed<A::Error>>>,
    /// Lanes whose first message is not attempted again.
    alarms: Vec<LaneId>,
    /// Keys that are not parked any more.
    released: usize,
    /// Callers whose keys were parked in between.
    parked: Vec<ReplyPort<A::Reply, A::Error>>,
}

impl<A: Actor, K> Default for AfterSweep<A, K> {
    fn default() -> Self {
        Self {
            permits: 0,
            closed: Vec::new(),
            failed: Vec::new(),
            alarms: Vec::new(),
            released: 0,
            parked: Vec::new(),
        }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Withdraws messages from a shard. The caller settles them.
    pub(crate) fn sweep(
        &self,
        index: usize,
        predicate: &mut Predicate<'_, A::Message>,
        withdrawn: &mut Vec<Queued<A, K>>,
    ) {
        let lifted = self.queue.shards[index].lift(&mut self.outbox_at_rest(index));
        if let Some(lifted) = lifted {
            let sifted = Sifted::of(lifted, predicate);
            self.set_down(index, sifted, withdrawn);
        }
    }

    /// The outbox of a shard, once no message of it is on its way between two places. One that goes
    /// to the lane of a parked key would be missed, and stay there.
    fn outbox_at_rest(&self, index: usize) -> Outboxed<'_, A, K> {
        let since = Instant::now();
        loop {
            let outbox = self.queue.shards[index].outbox.lock();
            if outbox.carried.is_none() || since.elapsed() > PATIENCE {
                return outbox;
            }
            drop(outbox);
            yield_now();
        }
    }

    fn set_down(&self, index: usize, sifted: Sifted<A, K>, withdrawn: &mut Vec<Queued<A, K>>) {
        let Sifted { stay, withdrawn: of_queues, lines } = sifted;
        let mut sequel = AfterSweep::default();
        let before = withdrawn.len();
        let mut outbox = self.queue.shards[index].outbox.lock();
        let mut is_urgent = self.queue.shards[index].set_down(&mut outbox, stay);
        of_queues.iter().filter(|entry| entry.key.is_some()).for_each(|entry| outbox.left(entry));
        sequel.permits += of_queues.len() as u64;
        withdrawn.extend(of_queues);
        for line in lines {
            line.withdrawn.iter().for_each(|entry| outbox.left(entry));
            self.set_line_down(&mut outbox, line.id, line.stay, line.withdrawn.len(), &mut sequel);
            withdrawn.extend(line.withdrawn);
        }
        is_urgent |= outbox.has_urgent_ready();
        if is_urgent {
            self.queue.wake.set_urgent(index);
        }
        self.queue.shards[index].note_outbox(&outbox);
        self.count_withdrawn(&withdrawn[before..]);
        drop(outbox);
        self.follow(index, sequel);
    }

    /// Puts back what stays of a lane; so many of it are withdrawn.
    fn set_line_down(
        &self,
        outbox: &mut OutboxOf<A, K>,
        id: LaneId,
        stay: VecDeque<Queued<A, K>>,
        withdrawn: usize,
        sequel: &mut AfterSweep<A, K>,
    ) {
        if let Err(stay) = outbox.lanes.set_down(id, stay) {
            // All queues were emptied in between, and the withdrawal settles these messages.
            sequel.permits += withdrawn as u64;
            return stay.into_iter().for_each(|entry| outbox.queue.push_back(entry));
        }
        let Some(lane) = outbox.lanes.get(id) else { return };
        if !lane.is_apart() {
            sequel.permits += withdrawn as u64;
        }
        match lane.state {
            LaneState::Running(_) => {}
            LaneState::Parked if withdrawn > 0 && lane.is_empty() => {
                self.close_parked(outbox, id, sequel);
            }
            LaneState::Parked => {
                let extras = lane.iter_mut().filter_map(|entry| entry.extra.as_mut());
                sequel.parked.extend(extras.filter_map(|extra| extra.port.take()));
            }
            LaneState::Retrying if lane.front().is_some_and(|first| first.is_retry()) => {}
            LaneState::Retrying | LaneState::Ready => {
                if lane.state == LaneState::Retrying {
                    sequel.alarms.push(id);
                }
                if lane.is_empty() {
                    sequel.closed.extend(outbox.lanes.close(id));
                } else {
                    // A worker that looked for a ready one in between has forgotten it.
                    outbox.make_ready(id);
                }
            }
        }
    }

    /// Nothing is left in the line of a parked key: it is as if nothing had failed.
    fn close_parked(&self, outbox: &mut OutboxOf<A, K>, id: LaneId, sequel: &mut AfterSweep<A, K>) {
        let others = outbox.lanes.has_other_parked(id);
        if let Some(backlog) = &mut outbox.backlog {
            backlog.unpark(id.hash, others);
        }
        sequel.failed.extend(outbox.lanes.get(id).and_then(Lane::take_failed));
        sequel.closed.extend(outbox.lanes.close(id));
        sequel.released += 1;
    }

    fn follow(&self, index: usize, sequel: AfterSweep<A, K>) {
        if sequel.permits > 0 {
            self.queue.permits.give(sequel.permits, self);
        }
        sequel.alarms.into_iter().for_each(|id| self.clock.forget_lane(index, id));
        sequel.parked.into_iter().for_each(|port| port.resolve(CallError::Parked));
        discard((sequel.closed, sequel.failed));
        (0..sequel.released).for_each(|_| self.notify(PoolEvent::KeyReleased));
        self.announce(index);
    }

    /// Counts messages that were withdrawn before they were started.
    pub(super) fn count_withdrawn(&self, withdrawn: &[Queued<A, K>]) {
        let retries = withdrawn.iter().filter(|entry| entry.is_retry()).count();
        self.telemetry.counters.withdrawn.fetch_add(withdrawn.len() as u64, Ordering::Relaxed);
        self.telemetry.counters.waiting.fetch_sub(retries, Ordering::Relaxed);
    }
}
