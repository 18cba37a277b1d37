//! Senders that wait for room, and the workers that serve them.

use super::{Core, Key, backlog::serve_key_lines};
use crate::Actor;
use crate::pool::frame::notify::{look_now_and_then, notify_if_drained};

impl<A: Actor, K: Key> Core<A, K> {
    /// Grants permits to senders that wait for them. Call it after messages have been started. If
    /// the caller then rests for long, call it behind a fence (see
    /// [`Permits`](greenroom_queue::permits::Permits)).
    pub(crate) fn serve_waiters(&self) {
        grant_waiters(self);
        if self.frame.telemetry.full.is_full() {
            look_now_and_then(self);
        }
    }

    /// True if a worker that resumes after a wait does not count as awake. On one thread it does:
    /// there, the count says whether the clock is being set.
    #[inline]
    pub(crate) fn goes_on_uncounted(&self) -> bool {
        self.queue.wake.waits() && self.frame.telemetry.coarse.is_watched()
    }
}

/// Like `serve_waiters`, for a worker that has just suspended: in blocks. While less than a block
/// is free, waiters are served by the watchdog or, without a watchdog, by the last awake worker.
pub(crate) fn serve_waiters_in_blocks<A: Actor, K: Key>(core: &Core<A, K>) {
    let is_starved = core.queue.permits.is_starved();
    let has_block = is_starved && core.queue.permits.take_block();
    let is_unwatched = !core.frame.telemetry.coarse.is_watched();
    if has_block || (is_starved && is_unwatched && core.queue.wake.awake() == 0) {
        core.queue.permits.grant(core);
    }
    serve_key_lines(core);
    // That costs a clock read, and the watchdog does it with each tick.
    if (has_block || (!is_starved && is_unwatched)) && core.frame.telemetry.full.is_full() {
        look_now_and_then(core);
    }
}

/// Like `serve_waiters`, for a worker that parks or serves while parked: it also checks whether the
/// pool is drained.
#[inline]
pub(crate) fn serve_waiters_at_rest<A: Actor, K: Key>(core: &Core<A, K>) {
    grant_waiters(core);
    if core.frame.telemetry.full.is_full() {
        notify_if_drained(core);
    }
}

#[inline]
fn grant_waiters<A: Actor, K: Key>(core: &Core<A, K>) {
    if core.queue.permits.is_starved() {
        core.queue.permits.grant(core);
    }
    serve_key_lines(core);
}
