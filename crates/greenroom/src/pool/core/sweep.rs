//! Withdrawing messages from one shard.
//!
//! ```text
//!   lift ─────────▶ sift ─────────────▶ set down
//!   both locks      under no lock       both locks
//!   all messages    user code selects   those that stay, before later ones
//! ```
//!
//! Between the first step and the last, no message of the shard is started that was not taken
//! before: the inbox looks empty to workers, and lanes are neither taken nor closed while their
//! messages are lifted. So the messages that stay keep their order. Owners of lanes continue: a
//! lane that was running may afterwards be ready, wait for a retry, or be parked.

use std::{
    any::Any,
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_queue::{
    block_queue::BlockQueue,
    discard::{discard, panic_of},
    entry::retries,
    lanes::{Lane, LaneId, LaneState, LiftedLine},
    shard,
    sync::{Ordering, yield_now},
};

use super::{Core, Key, OutboxOf, Queued, take::Outboxed};
use crate::{
    Actor, CallError, PoolEvent, ReplyPort,
    pool::{
        failed::Failed,
        pool_payload::{Entries, PayloadOf},
    },
};

/// How long to wait for a message that moves between two places of a shard while its key is
/// compared. That is user code, so the wait is long, but not endless.
const PATIENCE: Duration = Duration::from_secs(1);

/// User code that selects the messages to withdraw, and those withdrawn so far.
pub(crate) struct Sieve<'a, A: Actor, K> {
    is_such: &'a mut dyn FnMut(&A::Message) -> bool,
    /// It has panicked: no further message is withdrawn.
    pub(crate) panic: Option<Box<dyn Any + Send>>,
    /// The caller settles them.
    pub(crate) withdrawn: Entries<A, K>,
}

impl<'a, A: Actor, K> Sieve<'a, A, K> {
    pub(crate) fn new(is_such: &'a mut dyn FnMut(&A::Message) -> bool) -> Self {
        Self { is_such, panic: None, withdrawn: Entries::<A, K>::new() }
    }

    pub(crate) fn withdraws(&mut self, message: &A::Message) -> bool {
        if self.panic.is_some() {
            return false;
        }
        let mut withdraws = false;
        self.panic = panic_of(&mut || withdraws = (self.is_such)(message));
        withdraws
    }

    /// Takes out the selected messages. The others keep their order.
    pub(super) fn sift(&mut self, entries: &mut Entries<A, K>, chosen: &mut Entries<A, K>) {
        for _ in 0..entries.len() {
            let Some(entry) = entries.pop_front() else { return };
            match self.withdraws(&entry.message) {
                true => chosen.push_back(entry),
                false => entries.push_back(entry),
            }
        }
    }

    /// Like `sift`, for a queue.
    pub(super) fn sift_queue(&mut self, queue: &mut QueueOf<A, K>, chosen: &mut Entries<A, K>) {
        for _ in 0..queue.len() {
            let Some(entry) = queue.pop_front() else { return };
            match self.withdraws(&entry.message) {
                true => chosen.push_back(entry),
                false => queue.push_back(entry),
            }
        }
    }
}

type QueueOf<A, K> = BlockQueue<Queued<A, K>>;

type LiftedOf<A, K> = shard::Lifted<PayloadOf<A>, K>;

type LineOf<A, K> = LiftedLine<PayloadOf<A>, K>;

pub(super) type LaneOf<A, K> = Lane<PayloadOf<A>, K>;

type PortOf<A> = ReplyPort<<A as Actor>::Reply, <A as Actor>::Error>;

/// Answers these callers, in any order.
pub(super) fn resolve_all<R, E>(ports: &mut Vec<ReplyPort<R, E>>, why: fn() -> CallError<E>) {
    while let Some(port) = ports.pop() {
        port.resolve(why());
    }
}

/// Takes out the ports of the callers in this line.
pub(super) fn take_ports<A: Actor, K>(lane: &mut LaneOf<A, K>, ports: &mut Vec<PortOf<A>>) {
    let mut place = 0;
    while let Some(entry) = lane.at_mut(place) {
        if let Some(extra) = &mut entry.extra
            && let Some(port) = extra.port.take()
        {
            ports.push(port);
        }
        place += 1;
    }
}

/// The messages of a shard that were withdrawn.
struct Withdrawn<'a, A: Actor, K> {
    /// With those of lanes first.
    entries: &'a Entries<A, K>,
    /// How many of them are from lanes.
    of_lanes: usize,
}

/// The work that a withdrawal leaves for when no lock is held.
struct AfterSweep<A: Actor, K> {
    /// The number of permits of withdrawn messages.
    permits: u64,
    closed: Vec<LaneOf<A, K>>,
    failed: Vec<Arc<Failed<A::Error>>>,
    /// Lanes whose first message is no longer waiting for a retry.
    alarms: Vec<LaneId>,
    /// The number of keys that are no longer parked.
    released: usize,
    /// Callers whose keys were parked in between.
    parked: Vec<PortOf<A>>,
}

impl<A: Actor, K> AfterSweep<A, K> {
    fn closes(&mut self, lane: Option<LaneOf<A, K>>) {
        if let Some(lane) = lane {
            self.closed.push(lane);
        }
    }
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

/// Withdraws messages from a shard.
pub(crate) fn sweep<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    sieve: &mut Sieve<'_, A, K>,
) {
    let lifted = core.queue.shards[index].lift(&mut outbox_at_rest(core, index));
    let Some((mut stay, mut lines)) = lifted else { return };
    let mut chosen = Entries::<A, K>::new();
    // In the order in which they wait: messages in lanes are the oldest of their keys.
    for line in &mut lines {
        sieve.sift(&mut line.messages, &mut chosen);
    }
    let of_lanes = chosen.len();
    sieve.sift(&mut stay.urgent, &mut chosen);
    sieve.sift_queue(&mut stay.queue, &mut chosen);
    set_down(core, index, stay, lines, &Withdrawn { entries: &chosen, of_lanes });
    sieve.withdrawn.append(&mut chosen);
}

/// The outbox of a shard, once no message of it is moving between two places. A message that moves
/// to the lane of a parked key would be missed, and stay there.
fn outbox_at_rest<A: Actor, K: Key>(core: &Core<A, K>, index: usize) -> Outboxed<'_, A, K> {
    let since = Instant::now();
    loop {
        let outbox = core.queue.shards[index].outbox.lock();
        if outbox.carried.is_none() || since.elapsed() > PATIENCE {
            return outbox;
        }
        drop(outbox);
        yield_now();
    }
}

fn set_down<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    stay: LiftedOf<A, K>,
    mut lines: Vec<LineOf<A, K>>,
    withdrawn: &Withdrawn<'_, A, K>,
) {
    let of_queues = withdrawn.entries.len() - withdrawn.of_lanes;
    let mut sequel = AfterSweep { permits: of_queues as u64, ..AfterSweep::default() };
    let mut outbox = core.queue.shards[index].outbox.lock();
    let is_urgent = core.queue.shards[index].set_down(&mut outbox, stay);
    let mut of_lanes = withdrawn.of_lanes;
    for entry in withdrawn.entries.iter() {
        // The key of a message in a lane may be with the lane.
        if of_lanes > 0 || entry.key.is_some() {
            outbox.left(entry);
        }
        of_lanes = of_lanes.saturating_sub(1);
    }
    while let Some(line) = lines.pop() {
        set_line_down(&mut outbox, line, &mut sequel);
    }
    if outbox.has_urgent_ready() || is_urgent {
        core.queue.wake.set_urgent(index);
    }
    core.queue.shards[index].note_outbox(&outbox);
    count_withdrawn(core, withdrawn.entries);
    drop(outbox);
    follow(core, index, sequel);
}

/// Puts back the messages of a lane that stay.
fn set_line_down<A: Actor, K>(
    outbox: &mut OutboxOf<A, K>,
    line: LineOf<A, K>,
    sequel: &mut AfterSweep<A, K>,
) {
    let LiftedLine { id, messages, lifted } = line;
    let withdrawn = lifted - messages.len();
    if let Err(mut stay) = outbox.lanes.set_down(id, messages) {
        // All queues were emptied in between, and the withdrawal settles these messages.
        sequel.permits += withdrawn as u64;
        while let Some(entry) = stay.pop_front() {
            outbox.queue.push_back(entry);
        }
        return;
    }
    let Some(lane) = outbox.lanes.get(id) else { return };
    if !lane.is_apart() {
        sequel.permits += withdrawn as u64;
    }
    match lane.state {
        LaneState::Running(_) => {}
        LaneState::Shared(_) if lane.is_empty() => sequel.closes(outbox.lanes.close(id)),
        LaneState::Shared(_) => {}
        LaneState::Parked if withdrawn > 0 && lane.is_empty() => {
            close_parked(outbox, id, sequel);
        }
        LaneState::Parked => take_ports::<A, K>(lane, &mut sequel.parked),
        LaneState::Retrying if lane.front().is_some_and(|first| first.is_retry()) => {}
        LaneState::Retrying | LaneState::Ready => {
            if lane.state == LaneState::Retrying {
                sequel.alarms.push(id);
            }
            if lane.is_empty() {
                sequel.closes(outbox.lanes.close(id));
            } else {
                // A worker that looked for a ready lane in between has dropped it from the list.
                outbox.make_ready(id);
            }
        }
    }
}

/// The line of a parked key is empty now: it is as if nothing had failed.
fn close_parked<A: Actor, K>(
    outbox: &mut OutboxOf<A, K>,
    id: LaneId,
    sequel: &mut AfterSweep<A, K>,
) {
    let others = outbox.lanes.has_other_parked(id);
    if let Some(backlog) = &mut outbox.backlog {
        backlog.unpark(id.hash, others);
    }
    if let Some(failed) = outbox.lanes.get(id).and_then(Lane::take_failed) {
        sequel.failed.push(failed);
    }
    sequel.closes(outbox.lanes.close(id));
    sequel.released += 1;
}

fn follow<A: Actor, K: Key>(core: &Core<A, K>, index: usize, mut sequel: AfterSweep<A, K>) {
    if sequel.permits > 0 {
        core.queue.permits.give(sequel.permits, core);
    }
    for id in &sequel.alarms {
        core.frame.clock.forget_lane(index, *id);
    }
    resolve_all(&mut sequel.parked, || CallError::Parked);
    discard((sequel.closed, sequel.failed));
    for _ in 0..sequel.released {
        core.frame.notify(PoolEvent::KeyReleased);
    }
    core.announce(index);
}

/// Counts messages that were withdrawn before they were started.
pub(super) fn count_withdrawn<A: Actor, K: Key>(core: &Core<A, K>, withdrawn: &Entries<A, K>) {
    core.frame.telemetry.counters.withdrawn.fetch_add(withdrawn.len() as u64, Ordering::Relaxed);
    core.frame.telemetry.counters.waiting.fetch_sub(retries(withdrawn), Ordering::Relaxed);
}
