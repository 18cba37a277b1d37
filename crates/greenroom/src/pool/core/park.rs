//! Parking: messages that wait for another attempt, each at the head of its key's lane or, without
//! a key, alone.

use std::{sync::atomic::Ordering, time::Duration};

use greenroom_queue::lanes::{LaneId, LaneState};

use super::{Core, Key, Queued};
use crate::pool::frame::gate::dead_letter_if_ruined;
use crate::{Actor, pool::worker::in_flight::Source};

impl<A: Actor, K: Key> Core<A, K> {
    /// Puts a message that is to be attempted again at the head of its key's lane, owned by the
    /// clock until `after` has passed. A message without a key waits alone. Returns the new place
    /// of the worker.
    pub(crate) fn park(
        &self,
        worker: usize,
        source: Source,
        entry: Queued<A, K>,
        after: Duration,
    ) -> Source {
        self.queue.permits.take_back();
        self.frame.telemetry.counters.waiting.fetch_add(1, Ordering::Relaxed);
        match source {
            Source::Head { index, epoch, .. } => {
                self.park_head(worker, source, index, epoch, entry, after)
            }
            Source::Lane { index, id, .. } => {
                self.park_in_lane(index, id, entry, after);
                Source::None
            }
            // An urgent message may have come between two runs.
            Source::Shared { index, .. } | Source::BetweenRuns { index, .. } => {
                self.frame.clock.park_message(index, entry, after);
                source
            }
            Source::Mailbox => {
                self.park_mail(worker, entry, after);
                source
            }
            Source::None => {
                self.frame.clock.park_message(0, entry, after);
                Source::None
            }
        }
    }

    /// Parks the message of a holder of the token, which keeps it and goes on with other keys; or,
    /// if the watchdog has taken the token away, the message of the runner of a lane.
    fn park_head(
        &self,
        worker: usize,
        source: Source,
        index: usize,
        epoch: u64,
        entry: Queued<A, K>,
        after: Duration,
    ) -> Source {
        let mut outbox = self.queue.shards[index].outbox.lock();
        let Some(token) = outbox.held(epoch) else {
            drop(outbox);
            match self.demote(worker, source) {
                Source::Lane { index, id, .. } => self.park_in_lane(index, id, entry, after),
                _ => self.frame.clock.park_message(index, entry, after),
            }
            return Source::None;
        };
        match token.in_hand.take() {
            Some((hash, key)) => {
                let id = outbox.lanes.open(hash, key, LaneState::Retrying);
                let unplaced = outbox.lanes.push_front(id, entry);
                drop(outbox);
                debug_assert!(unplaced.is_ok(), "a lane just opened is there");
                self.frame.clock.park_lane(index, id, after);
            }
            None => {
                drop(outbox);
                self.frame.clock.park_message(index, entry, after);
            }
        }
        source
    }

    fn park_in_lane(&self, index: usize, id: LaneId, entry: Queued<A, K>, after: Duration) {
        let mut outbox = self.queue.shards[index].outbox.lock();
        let unplaced = outbox.lanes.push_front(id, entry);
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Retrying;
        }
        drop(outbox);
        debug_assert!(unplaced.is_ok(), "a lane that is run is there");
        self.frame.clock.park_lane(index, id, after);
    }

    /// A lane's wait is over.
    pub(crate) fn wake_lane(&self, index: usize, id: LaneId) {
        let mut outbox = self.queue.shards[index].outbox.lock();
        match outbox.lanes.get(id) {
            Some(lane) if lane.state == LaneState::Retrying => {}
            _ => return,
        }
        if outbox.make_ready(id) {
            self.queue.wake.set_urgent(index);
        }
        drop(outbox);
        self.announce(index);
        dead_letter_if_ruined(self);
    }

    /// A message from a worker's own mailbox has waited for its next attempt: it goes back there,
    /// or, if the worker has gone, to any other.
    pub(crate) fn wake_mail(&self, slot: usize, entry: Queued<A, K>) {
        let mailbox = self.mailbox_if_any(slot);
        let unplaced = match &mailbox {
            Some(mailbox) => mailbox.put_again(entry).err(),
            None => Some(entry),
        };
        match unplaced {
            Some(entry) => self.wake_message(0, entry),
            None => drop(self.queue.wake.call(slot, &self.frame.clock.watchdog)),
        }
    }

    /// A message without a key has waited for its next attempt.
    pub(crate) fn wake_message(&self, index: usize, entry: Queued<A, K>) {
        let shard = &self.queue.shards[index];
        let mut outbox = shard.outbox.lock();
        shard.put_again(&mut outbox, entry);
        shard.inbox.lock().scheduled = true;
        drop(outbox);
        self.announce(index);
        dead_letter_if_ruined(self);
    }
}
