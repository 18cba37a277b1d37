//! A worker that waits for work, and serves callers meanwhile.

use std::{hash::Hash, time::Instant};

use super::attempt::{StandsFor, serve};
use crate::{
    Actor, Context,
    pool::{
        core::Core,
        hold::{Hold, Posture},
        wake::{Errand, own_waker},
    },
    step_aside,
};

/// An idle worker handles so many messages that were handed to it in a row before other tasks of
/// the runtime get a turn.
const HANDED_PER_TURN: u32 = 64;

/// Waits until there is something to do in the queues. Callers that do this worker's work in that
/// time are served: the worker counts as idle, and may be taken off the list for other work. True
/// if a caller was served last. Messages that are handed to it are handled here as well, as long as
/// nothing else is to be done.
pub(super) async fn idle<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    core: &Core<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> bool {
    let (worker, mut handed) = (hold.post.worker, 0_u32);
    loop {
        let ((mut rest, mut has_woken), mut serves) = (hold.lie_down(own_waker().await), false);
        let timed_since = loop {
            let take = || {
                let called =
                    hold.post.core.settings.config.handling.calls_in_place && hold.take_at_hatch();
                serves &= called;
                called
            };
            let errand = core.queue.wake.woken_or_called(worker, &mut rest, take).await;
            if let Some(errand) = errand {
                hold.post.posture = Posture::Awake;
                if std::mem::take(&mut has_woken) {
                    // This worker was woken as soon as it lay down, perhaps in the same poll. The
                    // other lies in the LIFO slot of this thread, from which no other thread takes
                    // it: it is polled before this worker computes.
                    step_aside().await;
                }
                if errand != Errand::Handed {
                    hold.get_up(errand);
                    return serves;
                }
                // If the clock was late, the caller has set it, or this message carries no time.
                if !hold.take_handed() {
                    return false;
                }
            }
            // Now and then a message that was handed over is timed, as runs are, unless its
            // handler suspends.
            let since = (errand.is_some() && hold.times_this()).then(Instant::now);
            hold.post.has_suspended = false;
            serve(hold, actor, cx).await;
            if errand.is_some() {
                break since;
            }
            if hold.post.posture != Posture::LyingDown {
                // It has been suspended, and has got up for that.
                return true;
            }
            serves = true;
            core.has_served();
            if cx.is_ending() {
                core.queue.wake.call(worker, &core.clock.bell);
            }
        };
        if let Some(since) = timed_since
            && !hold.post.has_suspended
        {
            core.tell_pace(since.elapsed());
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
