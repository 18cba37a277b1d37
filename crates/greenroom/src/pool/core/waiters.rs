//! Who waits for room, and who serves them.

use super::{Core, Key, OutboxOf};
use crate::Actor;
use crate::pool::frame::notify::{look_now_and_then, notify_if_drained};

impl<A: Actor, K: Key> Core<A, K> {
    /// Grants permits to senders that wait for them. Call it after messages have been started, and
    /// behind a fence if the caller then rests for long (see
    /// [`Permits`](greenroom_queue::permits::Permits)).
    pub(crate) fn serve_waiters(&self) {
        self.grant_waiters();
        if self.frame.telemetry.full.is_full() {
            look_now_and_then(self);
        }
    }

    /// As `serve_waiters`, for a worker that has just been suspended: in blocks. While less than a
    /// block is free, waiters are served by the watchdog, or, if there is no watchdog, by the last
    /// worker awake.
    pub(crate) fn serve_waiters_in_blocks(&self) {
        let is_starved = self.queue.permits.is_starved();
        let has_block = is_starved && self.queue.permits.take_block();
        let is_unwatched = !self.frame.telemetry.coarse.is_watched();
        if has_block || (is_starved && is_unwatched && self.queue.wake.awake() == 0) {
            self.queue.permits.grant(self);
        }
        self.serve_key_lines();
        // That costs a look at the clock, and the watchdog does it with each tick.
        if (has_block || (!is_starved && is_unwatched)) && self.frame.telemetry.full.is_full() {
            look_now_and_then(self);
        }
    }

    /// A message was taken from this shard, to be started: now and then, that makes a block of
    /// permits for waiters.
    #[inline]
    pub(crate) fn note_taken(&self, index: usize, outbox: &OutboxOf<A, K>) {
        self.queue.permits.note_taken(index as u64, outbox.taken);
    }

    /// True if a worker that goes on after a wait does not count as awake. On one thread it does:
    /// there the count says whether the clock is looked after.
    #[inline]
    pub(crate) fn goes_on_uncounted(&self) -> bool {
        self.queue.wake.waits() && self.frame.telemetry.coarse.is_watched()
    }

    /// As `serve_waiters`, for a worker that parks or serves while parked: it also looks whether
    /// the pool is drained.
    #[inline]
    pub(crate) fn serve_waiters_at_rest(&self) {
        self.grant_waiters();
        if self.frame.telemetry.full.is_full() {
            notify_if_drained(self);
        }
    }

    #[inline]
    fn grant_waiters(&self) {
        if self.queue.permits.is_starved() {
            self.queue.permits.grant(self);
        }
        self.serve_key_lines();
    }
}
