//! One attempt at a message, and the hooks that come between messages.

use std::{
    future::Future,
    hash::Hash,
    pin::{Pin, pin},
    task::{self, Poll},
    time::Duration,
};

use crate::{
    Actor, Answer, Context, ExitReason, OnExit,
    life::Signal,
    pool::{
        core::Core,
        hold::{Hold, Post, Posture, Taken, fate::BatchEnd},
        in_place,
        seat::SIGNAL,
    },
};

/// An actor of the same messages, replies and errors: it can work in the other's place.
pub(super) trait StandsFor<A: Actor>:
    Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>
{
}

impl<A: Actor, B> StandsFor<A> for B where
    B: Actor<Message = A::Message, Reply = A::Reply, Error = A::Error>
{
}

/// Messages of a run between two checks whether other workers should be woken,
/// if handlers are quick.
const QUICK_ATTEMPTS: u32 = 32;

/// Handles the message in hand, and settles it. If handlers are quick, also the messages behind it
/// in the same run, up to a few and as long as nothing else is due. Returns how many. If handlers
/// have a time limit, a handler that exceeds it is dropped.
pub(super) async fn attempt<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    core: &Core<A, K>,
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> u32 {
    if core.settings.config.handling.batches.is_some() {
        Box::pin(attempt_batch(hold, actor, cx)).await;
        return 1;
    }
    if let Some(limit) = core.settings.config.failure.time_limit {
        // Boxed: pools without a limit do not pay for it in the size of their tasks.
        Box::pin(attempt_within(limit, hold, actor, cx)).await;
        return 1;
    }
    let alone = core.settings.is_limited() || in_place::is_driving();
    let quick = core.queue.wake.is_quick() && !alone;
    let run = if quick { hold.left_of_run(core, QUICK_ATTEMPTS - 1) } else { None };
    let (shard, most) = run.unwrap_or((&core.queue.shards[0], 0));
    // Counted down, and the run afterwards: one number for each message.
    let mut left = most;
    let last = loop {
        let result = {
            let Hold { post, delivery, .. } = &mut *hold;
            let handler = pin!(actor.receive(delivery, cx));
            polled(post, handler).await
        };
        let stays_busy = hold.settle_in_run(result);
        if left == 0 || cx.is_ending() {
            break None;
        }
        match hold.take_in_run(core, shard) {
            Some(Taken::InHand) => left -= 1,
            last => break last,
        }
        if !stays_busy {
            hold.seat.is_busy_since(core.telemetry.coarse.shown());
        }
    };
    hold.seat.is_free();
    hold.count_in_run(most - left, last);
    most - left + 1
}

/// Handles a message that was given at the hatch, and settles it.
#[inline]
pub(super) async fn serve<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) {
    if let Some(limit) = hold.post.core.settings.config.failure.time_limit {
        return Box::pin(attempt_within(limit, hold, actor, cx)).await;
    }
    let result = {
        let Hold { post, delivery, .. } = &mut *hold;
        let handler = pin!(actor.receive(delivery, cx));
        polled(post, handler).await
    };
    hold.settle(result);
}

/// Handles the message in hand together with others.
async fn attempt_batch<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) {
    if !in_place::is_driving() {
        hold.begins_later = true;
        hold.collect().await;
        hold.begins_later = false;
        if !hold.in_hand || !hold.batch_still_starts() {
            return;
        }
    }
    let Some(limit) = hold.post.core.settings.config.failure.time_limit else {
        let result = receive(hold, actor, cx).await;
        return hold.settle_batch(result);
    };
    let result = tokio::time::timeout(limit, receive(hold, actor, cx)).await;
    hold.return_to_work();
    match result {
        Ok(result) => hold.settle_batch(result),
        Err(_) if hold.end_batch(&BatchEnd::TimedOut) => {}
        Err(_) => hold.timed_out(limit),
    }
}

async fn attempt_within<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    limit: Duration,
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) {
    let result = tokio::time::timeout(limit, receive(hold, actor, cx)).await;
    hold.return_to_work();
    match result {
        Ok(result) => hold.settle(result),
        Err(_) => hold.timed_out(limit),
    }
}

async fn receive<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> Result<Answer<A::Reply>, A::Error> {
    let Hold { post, delivery, .. } = hold;
    let handler = pin!(actor.receive(delivery, cx));
    polled(post, handler).await
}

/// Polls a handler or a hook, and lets go of the worker's place when it suspends. It borrows the
/// handler in its place: a move before it is read back costs more than all the rest.
#[inline(always)]
fn polled<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static, F: Future>(
    post: &'a mut Post<A, K>,
    handler: Pin<&'a mut F>,
) -> Polled<'a, A, K, F> {
    Polled { post, handler }
}

/// By hand, so that it is part of the loop around it: a function of its own is called with
/// all of this in memory.
struct Polled<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static, F> {
    post: &'a mut Post<A, K>,
    handler: Pin<&'a mut F>,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static, F: Future> Future for Polled<'_, A, K, F> {
    type Output = F::Output;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<F::Output> {
        if self.post.posture == Posture::Suspended {
            self.post.go_on();
        }
        let polled = self.handler.as_mut().poll(task);
        if polled.is_pending() {
            self.post.suspend(task);
        }
        polled
    }
}

/// Handles the waiting signals. Returns the reason if the actor ends because of one.
#[cold]
pub(super) async fn hear<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> Option<ExitReason> {
    hold.give_up_place();
    while hold.seat.has(SIGNAL) {
        let signal = hold.own_mailbox()?.pop_signal()?;
        let post = &mut hold.post;
        match signal {
            Signal::Exit { from, reason } => {
                let then = {
                    let exited = pin!(actor.exited(from.as_ref(), &reason, cx));
                    polled(post, exited).await
                };
                if then == OnExit::Stop {
                    return Some(reason);
                }
            }
            Signal::Down { who, reason } => {
                let down = pin!(actor.down(&who, &reason, cx));
                polled(post, down).await;
            }
        }
    }
    None
}
