//! Taking messages: from ready lanes, and from the queue of a shard.
//!
//! In a keyed pool everything between "the token is mine" and "the key in hand is published"
//! happens under one hold of the outbox's lock, so the watchdog never finds a token whose holder
//! has moved on. The one exception is the comparison of keys, which is user code: it runs without
//! the lock, and the token says so while it runs.
//!
//! Whether the pool has ended is looked at under the same lock: a worker that ends the pool over a
//! message gives that message's key up after that, and a worker that then finds the key free must
//! not go on with it.

mod behind;
mod head;
mod lane;
mod near;
mod normal;
mod shared;
mod urgent;

pub(super) use behind::find_lane;
pub(crate) use near::{NextNear, TakenNear};

use std::sync::atomic::Ordering;

use greenroom_queue::lock::Locked;

use super::{Core, Key, OutboxOf, Queued};
use crate::{Actor, Class, pool::worker::in_flight::Source};

/// Messages that one worker takes from a shard before it lets the runtime run other tasks.
const BUDGET: u32 = 64;

/// As `BUDGET`, if handlers are quick: enough that workers keep up with several senders on their
/// thread, and that a shard with a hot key does not fall behind the others, which have as many
/// turns and few messages.
const QUICK_BUDGET: u32 = 512;

/// Messages of one key in a row while others are ready (K04).
pub(crate) const QUOTA: u32 = 16;

pub(crate) type TakenMessage<A, K> = Option<(Source, Queued<A, K>)>;

pub(super) type Outboxed<'a, A, K> = Locked<'a, OutboxOf<A, K>>;

impl<A: Actor, K: Key> Core<A, K> {
    /// Looks for work in every ready shard, beginning behind the one that was served last.
    pub(crate) fn take(&self, worker: usize, cursor: &mut u32) -> TakenMessage<A, K> {
        while let Some(index) = self.queue.wake.claim(*cursor) {
            *cursor = (index as u32 + 1) % 64;
            if let Some(work) = self.take_from(index, worker) {
                return Some(work);
            }
        }
        None
    }

    /// The next message from the source of the last one, or `None` when its place has been given
    /// up. `stays` if a worker whose lane is empty may go on with its shard.
    pub(crate) fn next(&self, worker: usize, source: Source, stays: bool) -> TakenMessage<A, K> {
        match source {
            Source::None | Source::Mailbox => None,
            Source::Shared { .. } | Source::BetweenRuns { .. } => {
                self.release(worker, source);
                None
            }
            Source::Head { index, epoch, run, .. } if run < self.budget() => {
                let mut outbox = self.queue.shards[index].outbox.lock();
                let held = outbox.held(epoch).is_some();
                if held && !self.has_ended() {
                    return self.advance(index, outbox, epoch, run + 1, Class::Urgent);
                }
                drop(outbox);
                if held {
                    self.release(worker, source);
                    return None;
                }
                self.next(worker, self.demote(worker, source), stays)
            }
            Source::Head { .. } => {
                self.release(worker, source);
                None
            }
            Source::Lane { index, id, run } => {
                self.next_in_lane(index, id, run, stays.then_some(worker))
            }
        }
    }

    /// True when nothing more is to be started.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_ended(&self) -> bool {
        self.frame.lifecycle.ended.load(Ordering::Acquire)
    }

    /// Messages of a run.
    pub(crate) fn budget(&self) -> u32 {
        if self.queue.wake.is_quick() { QUICK_BUDGET } else { BUDGET }
    }

    /// Urgent messages first. Otherwise ready lanes and the queue take turns. The queue of a keyed
    /// shard belongs to the holder of the token.
    fn take_from(&self, index: usize, worker: usize) -> TakenMessage<A, K> {
        let Some(shard) = self.queue.shards.get(index) else {
            return self.sharing.as_ref()?.take_strays(self);
        };
        let mut outbox = shard.outbox.lock();
        if self.has_ended() {
            return None;
        }
        let may_drain = outbox.token.is_none();
        let urged = self.queue.wake.has_urgent_at(index);
        if urged && let Some(id) = outbox.next_urgent_ready() {
            return self.take_lane(index, outbox, id, worker);
        }
        let urged = urged && may_drain && shard.inbox.lock().has_urgent();
        let queue_first = outbox.ready.queue_first && may_drain && shard.refill(&mut outbox);
        if !urged
            && !queue_first
            && let Some(id) = outbox.next_ready()
        {
            outbox.ready.queue_first = true;
            return self.take_lane(index, outbox, id, worker);
        }
        if !urged {
            outbox.ready.queue_first = false;
        }
        if !may_drain {
            return None;
        }
        if outbox.has_ready() {
            self.queue.wake.mark(index);
        }
        let epoch = outbox.grant(worker);
        self.advance(index, outbox, epoch, 0, Class::Urgent)
    }
}
