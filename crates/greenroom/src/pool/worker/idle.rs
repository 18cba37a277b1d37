//! A worker that waits for work, and in the meantime handles messages that callers hand to it.

use std::time::Instant;

use greenroom_queue::wake::{WakeReason, own_waker};

use super::attempt::{StandsFor, serve};
use super::in_flight::{InFlight, RunState};
use crate::{
    Actor, Context,
    pool::{core::Core, pool_payload::Key},
    step_aside,
};

/// An idle worker handles this many handed-over messages in a row before other tasks of the runtime
/// get a turn.
const HANDED_PER_TURN: u32 = 64;

/// One in this many handed-over messages counts as a run that may be timed: for a caller that waits
/// for each, two clock reads for one in eight would be noticeable.
const HANDED_PER_LOOK: u32 = 4;

/// Waits until there is work in the queues. Messages that are handed to the worker in that time are
/// handled here, as long as there is nothing else to do.
pub(super) async fn idle<A: Actor, K: Key, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    core: &Core<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) {
    let (worker, mut handed) = (in_flight.worker.slot, 0_u32);
    loop {
        let (park_token, has_woken) = in_flight.park(own_waker().await);
        let wake_reason = core.queue.wake.woken(worker, park_token).await;
        in_flight.worker.run_state = RunState::Awake;
        // First: a worker that is killed as it steps aside leaves the shard, and its handed-over
        // message goes to others.
        if wake_reason != WakeReason::Handed {
            in_flight.resume(wake_reason);
        }
        if has_woken {
            // This worker was woken as soon as it parked, perhaps in the same poll. The other
            // worker is in the LIFO slot of this thread, from which no other thread takes it: it is
            // polled before this worker computes.
            step_aside().await;
        }
        // If the clock was late, the caller has set it, or this message carries no time.
        if wake_reason != WakeReason::Handed || !in_flight.take_handed() {
            return;
        }
        // Now and then a handed-over message is timed, as runs are, unless its handler suspends.
        let times_this = handed.is_multiple_of(HANDED_PER_LOOK) && in_flight.rounds.times_this();
        let since = times_this.then(Instant::now);
        in_flight.worker.has_suspended = false;
        serve(in_flight, actor, cx).await;
        if let Some(since) = since
            && !in_flight.worker.has_suspended
        {
            core.note_pace(since.elapsed());
        }
        handed += 1;
        if handed.is_multiple_of(HANDED_PER_TURN) {
            step_aside().await;
        }
        if core.queue.wake.any_ready() || cx.is_ending() {
            return;
        }
    }
}
