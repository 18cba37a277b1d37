//! One attempt at a message, and the hooks that come between messages.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{self, Poll},
    time::Duration,
};

use greenroom_queue::lock::user_code_follows;

use super::in_flight::{InFlight, RunState, Taken, WorkerContext};
use crate::{
    Actor, Context, ExitReason, OnExit,
    life::Signal,
    pool::{
        batch::hand::{BatchEnd, Batching},
        core::Core,
        membership::slot_state::SIGNAL,
        pool_payload::Key,
    },
};

/// An actor with the same message, reply and error types: it can work in the other's place.
pub(super) trait StandsFor<A: Actor>:
    Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>
{
}

impl<A: Actor, B> StandsFor<A> for B where
    B: Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>
{
}

/// The messages of a run between two checks for other workers to wake, if handlers are quick.
const QUICK_ATTEMPTS: u32 = 32;

/// Like `QUICK_ATTEMPTS`, for handlers that have waited, between two checks of what is usual.
const WAITING_ATTEMPTS: u32 = 16;

/// Handles the message in hand. Not a function, as in `Polled`.
macro_rules! received {
    ($in_flight:ident, $actor:ident, $cx:ident) => {{
        let InFlight { worker, delivery, .. } = &mut *$in_flight;
        let handler = pin!($actor.receive(delivery, $cx));
        polled(worker, handler).await
    }};
}

/// Handles the message in hand, and settles it. If handlers are quick, it also handles a few more
/// messages of the same run while nothing else is due. Returns how many were handled; none if a
/// batch was withdrawn. If handlers have a time limit, a handler that exceeds it is dropped.
#[expect(clippy::manual_async_fn, reason = "an `async fn` keeps room for its arguments twice")]
pub(super) fn attempt<A: Actor, K: Key, B: StandsFor<A>>(
    core: &Core<A, K>,
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> impl Future<Output = u32> + Send {
    async move {
        let limit = core.frame.config.failure.time_limit;
        let batching = core.settings.functions.batching.as_deref();
        if limit.is_some() || batching.is_some() {
            // Boxed: pools without either do not pay for it in the size of their tasks.
            let attempted = Box::pin(attempt_rare(limit, batching, in_flight, actor, cx));
            return u32::from(attempted.await);
        }
        let alone = core.frame.is_limited();
        if core.queue.wake.waits() && !alone {
            return attempt_after_waits(core, in_flight, actor, cx).await;
        }
        let quick = core.queue.wake.is_quick() && !alone;
        let run = if quick { in_flight.left_of_run(core, QUICK_ATTEMPTS - 1) } else { None };
        let (shard, most) = run.unwrap_or((&core.queue.shards[0], 0));
        // Only `left` counts down per message; the run is counted afterwards.
        let mut left = most;
        let last = loop {
            let result = received!(in_flight, actor, cx);
            let stays_busy = in_flight.settle_in_run(result);
            if left == 0 || cx.is_ending() {
                break None;
            }
            match in_flight.take_in_run(core, shard) {
                Some(Taken::InHand) => left -= 1,
                last => break last,
            }
            if !stays_busy {
                in_flight.slot_state.set_busy_since(core.frame.telemetry.coarse.shown());
            }
        };
        in_flight.slot_state.set_free();
        in_flight.count_in_run(most - left, last);
        most - left + 1
    }
}

/// Like `attempt`, if handlers usually wait: continues with the next message as long as each
/// handler has waited. Other tasks had their turn in that time, so the only check is for anything
/// that may come before a message.
async fn attempt_after_waits<A: Actor, K: Key, B: StandsFor<A>>(
    core: &Core<A, K>,
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> u32 {
    let mut attempts = 1;
    loop {
        let result = received!(in_flight, actor, cx);
        in_flight.settle_in_run(result);
        let goes_on = attempts < WAITING_ATTEMPTS && !cx.is_ending();
        if !goes_on || !in_flight.take_again_after_wait(core) {
            break;
        }
        attempts += 1;
    }
    in_flight.slot_state.set_free();
    attempts
}

/// Handles a message that was handed over, and settles it.
#[inline]
pub(super) async fn serve<A: Actor, K: Key, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) {
    if let Some(limit) = in_flight.worker.core.frame.config.failure.time_limit {
        Box::pin(attempt_rare(Some(limit), None, in_flight, actor, cx)).await;
        return;
    }
    let result = received!(in_flight, actor, cx);
    in_flight.settle(result);
}

/// Handles the message in hand within a time limit, together with others, or both. Returns false if
/// nothing is left in hand once a batch is collected.
async fn attempt_rare<A: Actor, K: Key, B: StandsFor<A>>(
    limit: Option<Duration>,
    batching: Option<&dyn Batching<A::Message, A::Reply, A::Error>>,
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> bool {
    if let Some(batching) = batching {
        in_flight.begins_later = true;
        let is_left = batching.collect(in_flight).await;
        in_flight.begins_later = false;
        if !is_left {
            return false;
        }
    }
    let result = {
        let InFlight { worker, delivery, .. } = &mut *in_flight;
        let handler = pin!(actor.receive(delivery, cx));
        let received = polled(worker, handler);
        match limit {
            Some(limit) => {
                // Otherwise the runtime's part of it would be compiled for each actor type.
                let received: Pin<&mut (dyn Future<Output = _> + Send)> = pin!(received);
                tokio::time::timeout(limit, received).await.map_err(|_| limit)
            }
            None => Ok(received.await),
        }
    };
    if limit.is_some() {
        in_flight.worker.return_to_work();
    }
    match (result, batching) {
        (Ok(result), Some(batching)) => batching.settle(in_flight, result),
        (Ok(result), None) => in_flight.settle(result),
        (Err(_), Some(batching)) if batching.end(in_flight, &BatchEnd::TimedOut) => {}
        (Err(limit), _) => in_flight.timed_out(limit),
    }
    true
}

/// Polls a handler or a hook, and gives up the worker's place when it suspends. It borrows the
/// handler in its place: a move before it is read back costs more than all the rest.
#[cfg_attr(not(debug_assertions), inline(always))]
fn polled<'a, A: Actor, K: Key, F: Future>(
    worker: &'a mut WorkerContext<A, K>,
    handler: Pin<&'a mut F>,
) -> Polled<'a, A, K, F> {
    Polled { worker, handler }
}

/// Written by hand, so that it is part of the loop around it: a separate function would be called
/// with all of this in memory.
struct Polled<'a, A: Actor, K: Key, F> {
    worker: &'a mut WorkerContext<A, K>,
    handler: Pin<&'a mut F>,
}

impl<A: Actor, K: Key, F: Future> Future for Polled<'_, A, K, F> {
    type Output = F::Output;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<F::Output> {
        if self.worker.run_state == RunState::Suspended {
            self.worker.go_on();
        }
        user_code_follows();
        let polled = self.handler.as_mut().poll(task);
        if polled.is_pending() {
            self.worker.suspend(task);
        }
        polled
    }
}

/// Handles the waiting signals. Returns the reason if the actor ends because of one.
#[cold]
pub(super) async fn hear<A: Actor, K: Key, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> Option<ExitReason> {
    in_flight.worker.give_up_place();
    while in_flight.slot_state.has(SIGNAL) {
        let signal = in_flight.own_mailbox()?.pop_signal()?;
        let worker = &mut in_flight.worker;
        match signal {
            Signal::Exit { from, reason } => {
                let then = {
                    let exited = pin!(actor.exited(from.as_ref(), &reason, cx));
                    polled(worker, exited).await
                };
                if then == OnExit::Stop {
                    return Some(reason);
                }
            }
            Signal::Down { who, reason } => {
                let down = pin!(actor.down(&who, &reason, cx));
                polled(worker, down).await;
            }
        }
    }
    None
}
