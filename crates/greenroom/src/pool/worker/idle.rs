//! A worker that waits for work, and serves callers meanwhile.

use std::{hash::Hash, time::Instant};

use greenroom_queue::wake::{WakeReason, own_waker};

use super::attempt::{StandsFor, serve};
use super::{
    in_flight::{InFlight, RunState},
    in_place::is_run_by_caller,
};
use crate::{Actor, Context, pool::core::Core, step_aside};

/// An idle worker handles so many messages that were handed to it in a row before other tasks of
/// the runtime get a turn.
const HANDED_PER_TURN: u32 = 64;

/// Waits until there is something to do in the queues. Callers that do this worker's work in that
/// time are served: the worker counts as idle, and may be taken off the list for other work. True
/// if a caller was served last. Messages that are handed to it are handled here as well, as long as
/// nothing else is to be done.
pub(super) async fn idle<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    core: &Core<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> bool {
    let (worker, mut handed) = (in_flight.worker.slot, 0_u32);
    loop {
        let ((mut park_token, mut has_woken), mut serves) =
            (in_flight.park(own_waker().await), false);
        let timed_since = loop {
            let take = || {
                let called = in_flight.worker.core.settings.config.handling.calls_in_place
                    && in_flight.take_from_slot();
                serves &= called;
                called
            };
            let wake_reason = core
                .queue
                .wake
                .woken_or_called(worker, &mut park_token, is_run_by_caller, take)
                .await;
            if let Some(wake_reason) = wake_reason {
                in_flight.worker.run_state = RunState::Awake;
                // First: a worker that is killed as it steps aside leaves the shard, and what it
                // was handed goes to others.
                if wake_reason != WakeReason::Handed {
                    in_flight.resume(wake_reason);
                }
                if std::mem::take(&mut has_woken) {
                    // This worker was woken as soon as it parked, perhaps in the same poll. The
                    // other lies in the LIFO slot of this thread, from which no other thread takes
                    // it: it is polled before this worker computes.
                    step_aside().await;
                }
                if wake_reason != WakeReason::Handed {
                    return serves;
                }
                // If the clock was late, the caller has set it, or this message carries no time.
                if !in_flight.take_handed() {
                    return false;
                }
            }
            // Now and then a message that was handed over is timed, as runs are, unless its
            // handler suspends.
            let since = (wake_reason.is_some() && in_flight.times_this()).then(Instant::now);
            in_flight.worker.has_suspended = false;
            serve(in_flight, actor, cx).await;
            if wake_reason.is_some() {
                break since;
            }
            if in_flight.worker.run_state != RunState::Parked {
                // It has been suspended, and was unparked for that.
                return true;
            }
            serves = true;
            core.has_served();
            if cx.is_ending() {
                core.queue.wake.call(worker, &core.clock.watchdog);
            }
        };
        if let Some(since) = timed_since
            && !in_flight.worker.has_suspended
        {
            core.note_pace(since.elapsed());
        }
        handed += 1;
        if handed.is_multiple_of(HANDED_PER_TURN) {
            step_aside().await;
        }
        if core.queue.wake.any_ready() || cx.is_ending() {
            return false;
        }
    }
}
