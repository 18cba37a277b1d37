//! The place that a worker takes messages from, and how it is given up: the drain token of a shard,
//! or the lane of a key.

use std::sync::atomic::Ordering;

use greenroom_queue::{
    discard::discard,
    lanes::LaneId,
    payload::Payload,
    queue::WorkQueue,
    wake::QUICK,
    watchdog::{TICK, Watched},
};

use super::{Core, Key, serve::take_back_what_is_left};
use crate::{Actor, pool::worker::in_flight::state::Source};

/// The new place of a holder whose token was taken away: the lane of its key, or none. A worker
/// runs one lane at a time, so its own is the one with the hash of the key that it had in hand.
pub(super) fn demote<T: Payload, K>(
    queue: &WorkQueue<T, K>,
    worker: usize,
    source: Source,
) -> Source {
    let Source::Head { index, hash, .. } = source else { return source };
    let outbox = queue.shards[index].outbox.lock();
    match hash.and_then(|hash| outbox.lanes.run_by(hash, worker)) {
        Some(id) => Source::Lane { index, id, run: 0 },
        None => Source::None,
    }
}

/// The handler of a message suspends: its key gets a lane, and the shard is passed on to others.
pub(crate) fn suspend<T: Payload, K>(
    queue: &WorkQueue<T, K>,
    worker: usize,
    source: Source,
) -> Source {
    let (index, epoch) = match source {
        Source::Head { index, epoch, .. } => (index, epoch),
        Source::Shared { index, alone, .. } | Source::BetweenRuns { index, alone } => {
            queue.leave_shared(index, alone);
            return Source::None;
        }
        Source::None | Source::Lane { .. } | Source::Mailbox => return source,
    };
    let shard = &queue.shards[index];
    let mut outbox = shard.outbox.lock();
    if outbox.held(epoch).is_none() {
        drop(outbox);
        return demote(queue, worker, source);
    }
    let lane = outbox.pass_on();
    let more = shard.refill(&mut outbox);
    drop(outbox);
    if more {
        queue.wake.mark(index);
    }
    lane.map_or(Source::None, |id| Source::Lane { index, id, run: 0 })
}

/// Gives up the place of a worker: after a panic, a kill, or a full budget. The caller then looks
/// for work, or leaves: either sees the marks made here.
pub(crate) fn release<T: Payload, K>(queue: &WorkQueue<T, K>, worker: usize, source: Source) {
    match source {
        Source::None | Source::Mailbox => {}
        Source::Shared { index, alone, .. } | Source::BetweenRuns { index, alone } => {
            queue.leave_shared(index, alone);
        }
        Source::Lane { index, id, .. } => release_lane(queue, index, id),
        Source::Head { index, epoch, .. } => {
            let shard = &queue.shards[index];
            let mut outbox = shard.outbox.lock();
            if outbox.held(epoch).is_none() {
                drop(outbox);
                return release(queue, worker, demote(queue, worker, source));
            }
            let token = outbox.token.take();
            let more = shard.refill(&mut outbox);
            drop(outbox);
            discard(token);
            if more {
                queue.wake.mark(index);
            }
        }
    }
}

pub(super) fn release_lane<T: Payload, K>(queue: &WorkQueue<T, K>, index: usize, id: LaneId) {
    let mut outbox = queue.shards[index].outbox.lock();
    let Some(lane) = outbox.lanes.get(id) else { return };
    if lane.is_empty() {
        let closed = outbox.lanes.close(id);
        drop(outbox);
        return discard(closed);
    }
    if outbox.make_ready(id) {
        queue.wake.set_urgent(index);
    }
    drop(outbox);
    queue.wake.mark(index);
}

/// If work is ready and fewer messages than this are taken between two ticks, handlers are not
/// quick (any more), and a shard is not left to one worker. This is a quarter of the messages that
/// one worker takes if handlers are quick: the watchdog may be late, and workers may have been
/// preempted. The next timed run corrects a wrong guess.
const FEW_IN_A_TICK: u64 = (TICK.as_nanos() / QUICK.as_nanos() / 4) as u64;

impl<A: Actor, K: Key> Watched for Core<A, K> {
    fn set_clock(&self) {
        self.frame.telemetry.coarse.set();
    }

    fn tick(&self, before: u64) -> u64 {
        #[cfg(test)]
        if self.frame.clock.unaided.load(Ordering::Relaxed) {
            return before;
        }
        self.queue.wake.end_visits();
        let (revoked, taken) = self.queue.revoke_stuck_tokens();
        let taken = taken.wrapping_add(take_back_what_is_left(self));
        let still = taken == before;
        if let Some(sharing) = &self.sharing {
            sharing.look(self, taken.wrapping_sub(before));
        }
        if taken.wrapping_sub(before) < FEW_IN_A_TICK && self.queue.wake.any_ready() {
            self.note_pace(TICK);
        }
        if revoked || (still && self.queue.wake.any_ready()) {
            self.queue.wake.one_more(&self.frame.clock.watchdog);
        }
        self.serve_waiters();
        if still {
            self.frame.clock.watchdog.nudge(&self.frame.env.runtime);
        }
        taken
    }

    fn is_busy(&self) -> bool {
        // Shards with messages left over at the end keep their bits in the ready map.
        let is_wanted = || self.queue.wake.any_ready() || self.queue.permits.is_starved();
        // An uncounted worker may be computing, perhaps on the thread that last waited for timers,
        // while other handlers wait for theirs.
        let has_uncounted = || {
            self.queue.wake.waits()
                && self.queue.wake.idle() < self.frame.membership.live.load(Ordering::Relaxed)
        };
        // Pairs with the store in `end`. If the end is missed, the pool is watched for one tick
        // more.
        let is_open = || !self.frame.lifecycle.ended.load(Ordering::SeqCst);
        self.queue.wake.awake() > 0 || ((is_wanted() || has_uncounted()) && is_open())
    }

    fn is_unhurried(&self) -> bool {
        self.queue.wake.waits() && self.queue.wake.awake() == 0
    }

    fn turn_away(&self) {
        self.frame.clock.watchdog.turn_away();
    }

    fn stay(&self) -> bool {
        self.frame.clock.watchdog.stay()
    }
}
