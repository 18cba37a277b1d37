//! Keys that wait for an operator, because a message of theirs has failed for good (K08).
//!
//! ```text
//!   Running ── final failure ──▶ Parked ── release: the message is a dead letter ─▶ Ready
//!                                   │ ──── replay: it is attempted anew ──────────▶ Ready
//!                                   └───── remove: the operator has the line ─────▶ (none)
//! ```
//!
//! Queued messages of a parked key go to its lane, as behind any owner; no caller waits for a
//! reply there.
//!
//! If parked keys stand apart, a message gives its permit up when it comes into the lane of a
//! parked key, and takes one again, in debt if none is free, when the key goes on. No worker
//! handles it in between, so it must not stop messages that are handled.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::{
    backlog::wake_in,
    discard::discard,
    entry::retries,
    lanes::{LaneId, LaneState},
    shard::Shard,
    sync::{Notify, yield_now},
};

use super::{
    Core, ExtraOf, Key, OutboxOf, Queued,
    sweep::{resolve_all, take_ports},
    take::{Outboxed, find_lane},
};
use crate::pool::frame::gate::dead_letter_if_ruined;
use crate::{
    Actor, CallError, DeadLetter, PoolEvent,
    pool::{
        failed::{Failed, FailedAt},
        pool_payload::Entries,
        worker::in_flight::Source,
    },
};

/// With the extras of its message.
type LetterOf<A> = (DeadLetter<<A as Actor>::Message, <A as Actor>::Error>, Box<ExtraOf<A>>);

impl<A: Actor, K: Key> Core<A, K> {
    /// Parks the key that a worker owns, with its failed messages, if they are still there, at its
    /// head. Returns the new place of the worker. Callers in its line are told.
    pub(crate) fn park_key(
        &self,
        worker: usize,
        source: Source,
        entries: Entries<A, K>,
        failed: Arc<Failed<A::Error>>,
    ) -> Source {
        let Some((index, id, mut outbox, place)) = self.own_lane(worker, source) else {
            debug_assert!(false, "who parks a key owns it");
            self.give_back(entries);
            return source;
        };
        self.push_line(&mut outbox, id, entries);
        let mut ports = Vec::new();
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Parked;
            lane.set_failed(failed);
            take_ports::<A, K>(lane, &mut ports);
        }
        let freed = self.count_parked(index, &mut outbox, id);
        let room = self.set_apart(&mut outbox, id);
        drop(outbox);
        if room > 0 {
            self.queue.permits.give(room, self);
        }
        resolve_all(&mut ports, || CallError::Parked);
        wake_in(&freed);
        self.notify_key_parked();
        self.frame.lifecycle.notify_progress();
        place
    }

    /// The messages of a lane that was parked hold no permits any more. Returns how many the caller
    /// gives back, under no lock.
    fn set_apart(&self, outbox: &mut OutboxOf<A, K>, id: LaneId) -> u64 {
        let Some(lane) = outbox.lanes.get(id).filter(|_| self.key_bounds().apart) else { return 0 };
        lane.set_apart(true);
        lane.len() as u64
    }

    /// The messages of a parked lane hold permits again.
    fn take_in_again(&self, outbox: &mut OutboxOf<A, K>, id: LaneId) {
        if let Some(lane) = outbox.lanes.get(id).filter(|lane| lane.is_apart()) {
            lane.set_apart(false);
            for _ in 0..lane.len() {
                self.queue.permits.take_back();
            }
        }
    }

    /// A message came into this lane. The worker that took it there serves waiters before it rests.
    pub(super) fn came_behind(&self, outbox: &mut OutboxOf<A, K>, id: LaneId) {
        if outbox.lanes.get(id).is_some_and(|lane| lane.is_apart()) {
            self.queue.permits.return_unused(1);
        }
    }

    /// Puts messages that have failed before all others of a lane, in order.
    pub(super) fn push_line(
        &self,
        outbox: &mut OutboxOf<A, K>,
        id: LaneId,
        entries: Entries<A, K>,
    ) {
        for _ in 0..entries.len() {
            self.queue.permits.take_back();
        }
        self.frame.telemetry.counters.waiting.fetch_add(entries.len(), Ordering::Relaxed);
        let unplaced = outbox.lanes.put_first(id, entries);
        debug_assert!(unplaced.is_ok(), "a lane that is run is there");
    }

    /// The lane of the key that a worker owns, opened if there is none yet, and the new place
    /// of the worker.
    pub(super) fn own_lane(
        &self,
        worker: usize,
        source: Source,
    ) -> Option<(usize, LaneId, Outboxed<'_, A, K>, Source)> {
        match source {
            Source::Lane { index, id, .. } => {
                Some((index, id, self.queue.shards[index].outbox.lock(), Source::None))
            }
            Source::Head { index, epoch, .. } => {
                let mut outbox = self.queue.shards[index].outbox.lock();
                if let Some(token) = outbox.held(epoch) {
                    let (hash, key) = token.in_hand.take()?;
                    let id = outbox.lanes.open(hash, key, LaneState::Parked);
                    return Some((index, id, outbox, source));
                }
                drop(outbox);
                match self.demote(worker, source) {
                    lane @ Source::Lane { .. } => self.own_lane(worker, lane),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Messages of a shard with a parked key are counted, so that its line has a bound.
    fn count_parked(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
        id: LaneId,
    ) -> Vec<Arc<Notify>> {
        let counted_before = outbox.backlog.is_some();
        let mut inbox = self.queue.shards[index].inbox.lock();
        let backlog = Shard::count(&mut inbox, outbox, self.key_bounds());
        if counted_before {
            backlog.park(id.hash);
        }
        let unused = inbox.take_credit();
        drop(inbox);
        self.queue.permits.return_unused(unused);
        outbox.take_freed()
    }

    /// The parked lane of this key, under the lock of its shard; where a moment is given, only if
    /// it was parked by the failure of that moment. The comparison of keys is user code: it runs
    /// before that.
    fn parked_lane(
        &self,
        key: &K,
        failed_at: Option<FailedAt>,
    ) -> Option<(usize, LaneId, Outboxed<'_, A, K>)> {
        let hash = self.routing.hash(key);
        let index = hash as usize & (self.queue.shards.len() - 1);
        let candidates = self.queue.shards[index].outbox.lock().lanes.candidates(hash);
        let id = find_lane(candidates, Some(key))?;
        loop {
            let mut outbox = self.queue.shards[index].outbox.lock();
            let lane = outbox.lanes.get(id).filter(|lane| lane.state == LaneState::Parked)?;
            let is_lifted = lane.is_lifted();
            if !is_lifted {
                let parked_at = lane.failed().map(|failed| failed.at);
                let is_meant = failed_at.is_none_or(|at| parked_at == Some(at));
                return is_meant.then_some((index, id, outbox));
            }
            drop(outbox);
            // Its line is back in a moment, unless the caller itself looks at it.
            if self.is_withdrawing_here() {
                return None;
            }
            yield_now();
        }
    }

    pub(crate) fn is_parked(&self, key: &K) -> bool {
        self.parked_lane(key, None).is_some()
    }

    /// The lane is not parked any more: it has no owner, or it is closed if it is empty.
    fn unpark(&self, index: usize, id: LaneId, mut outbox: Outboxed<'_, A, K>) {
        let others = outbox.lanes.has_other_parked(id);
        if let Some(backlog) = &mut outbox.backlog {
            backlog.unpark(id.hash, others);
        }
        let Some(lane) = outbox.lanes.get(id) else { return };
        let failed = lane.take_failed();
        let closed = lane.is_empty().then(|| outbox.lanes.close(id));
        if closed.is_none() && outbox.make_ready(id) {
            self.queue.wake.set_urgent(index);
        }
        let goes_on = closed.is_none();
        drop(outbox);
        discard((failed, closed));
        self.frame.notify(PoolEvent::KeyReleased);
        if goes_on {
            self.announce(index);
            dead_letter_if_ruined(self);
        }
        // Of what was parked, nothing is left to a stop that waits for the rest.
        self.frame.lifecycle.notify_progress();
    }

    /// Lets a parked key go on without the messages that have failed for good, which become dead
    /// letters. False if it is not parked.
    pub(crate) fn release_key(&self, key: &K, failed_at: Option<FailedAt>) -> bool {
        let Some((index, id, mut outbox)) = self.parked_lane(key, failed_at) else { return false };
        self.take_in_again(&mut outbox, id);
        let mut failed = outbox.lanes.take_failed(id);
        self.frame.telemetry.counters.waiting.fetch_sub(failed.len(), Ordering::Relaxed);
        let freed = failed.len() as u64;
        self.unpark(index, id, outbox);
        if freed > 0 {
            self.queue.permits.give(freed, self);
        }
        while let Some(entry) = failed.pop_front() {
            if let Some((letter, extra)) = self.letter_of(entry) {
                self.report_dead_letter(letter);
                discard(extra);
            }
        }
        self.serve_waiters();
        true
    }

    /// The dead letter that a message becomes which has failed for good before.
    fn letter_of(&self, entry: Queued<A, K>) -> Option<LetterOf<A>> {
        let age = self.age_of(&entry);
        let extra = entry.extra?;
        let failed = extra.failed.clone()?;
        self.frame.telemetry.counters.dead_letters.count_shared(failed.reason);
        let (error, panic) = (failed.take_error(), failed.panic.clone());
        let (reason, attempts) = (failed.reason, extra.attempts);
        let message = Some(entry.message);
        Some((DeadLetter { message, reason, error, panic, attempts, age }, extra))
    }

    /// Lets a parked key go on with the message that has failed, as if it had not. False if the key
    /// is not parked.
    pub(crate) fn replay_key(&self, key: &K, failed_at: Option<FailedAt>) -> bool {
        let Some((index, id, mut outbox)) = self.parked_lane(key, failed_at) else { return false };
        self.take_in_again(&mut outbox, id);
        if let Some(lane) = outbox.lanes.get(id) {
            let mut place = 0;
            while let Some(entry) = lane.at_mut(place) {
                if entry.has_failed_for_good()
                    && let Some(extra) = &mut entry.extra
                {
                    (extra.failures, extra.kills, extra.next.for_good) = (0, 0, false);
                }
                place += 1;
            }
        }
        self.unpark(index, id, outbox);
        true
    }

    /// Takes the line of a parked key out, the message that has failed first. `None` if the key
    /// is not parked.
    pub(crate) fn remove_key(
        &self,
        key: &K,
        failed_at: Option<FailedAt>,
    ) -> Option<Vec<A::Message>> {
        let (index, id, mut outbox) = self.parked_lane(key, failed_at)?;
        self.take_in_again(&mut outbox, id);
        let mut line = outbox.lanes.empty(id);
        for entry in line.iter() {
            outbox.left(entry);
        }
        self.frame.telemetry.counters.waiting.fetch_sub(retries(&line), Ordering::Relaxed);
        self.frame.telemetry.counters.returned.fetch_add(line.len() as u64, Ordering::Relaxed);
        self.unpark(index, id, outbox);
        self.queue.permits.give(line.len() as u64, self);
        let mut messages = Vec::with_capacity(line.len());
        while let Some(entry) = line.pop_front() {
            messages.push(entry.message);
            discard((entry.extra, entry.key));
        }
        self.serve_waiters();
        Some(messages)
    }

    /// Messages in the lines of parked keys: they are not handled before an operator has decided.
    pub(crate) fn parked_messages(&self) -> u64 {
        let mut parked = 0;
        for shard in &self.queue.shards {
            for lane in shard.outbox.lock().lanes.iter() {
                if lane.state == LaneState::Parked {
                    parked += lane.len() as u64;
                }
            }
        }
        parked
    }
}
