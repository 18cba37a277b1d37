//! The life of a worker: start, work, exit, restart, end.

use std::{
    any::Any,
    future::Future,
    hash::Hash,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::discard::discard;

use super::{
    core::Core,
    frame::{
        Beginning,
        exit::{Sequel, sequel},
        members::{has_died, has_started, notify_started},
    },
    membership::slot_state::KILLED,
    stats::counters::count,
};
use crate::{
    Actor, Context, ExitReason, PoolEvent, any_address::Erased, panic_location,
    pool::panic_message::panic_message, step_aside,
};
use in_flight::InFlight;

pub(crate) mod adopted;
mod apart;
mod attempt;
mod catch_unwind;
mod driver;
mod exit_guard;
mod factory;
mod idle;
pub(crate) mod in_flight;
mod pass;
pub(crate) mod refusals;
mod start;
#[cfg(test)]
mod tests;

pub(crate) use catch_unwind::CatchUnwind;
pub(crate) use factory::Factory;

use self::{
    apart::Apart,
    attempt::{StandsFor, attempt, hear},
    driver::{Driver, Step},
    exit_guard::{ExitGuard, Gone},
    idle::idle,
    pass::{Turn, end_pass, pass},
    start::{Starting, first_start, pause, start_again},
};

/// How a worker came to its end.
enum End {
    /// The pool has ended, or the worker is to leave.
    Over,
    /// By itself, or because of a signal.
    Exit(ExitReason),
    /// It was killed. It has nothing in hand, and runs no hook any more.
    Killed,
}

/// Runs the worker of one slot until the pool has ended, it is told to leave, or the slot is
/// disabled. If the task is dropped, even before it was polled, its slot is cleaned up.
pub(crate) fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Arc<Core<A, K>>,
    slot: usize,
    beginning: Beginning,
) -> impl Future<Output = ()> + Send {
    let exit_guard = ExitGuard::new(&core.erased(), slot, false);
    begin(core, exit_guard, beginning)
}

/// The life of a worker's task. A future of its own for the loop would cost its way in and out
/// with each turn.
#[expect(clippy::manual_async_fn, reason = "an `async fn` keeps room for its arguments twice")]
fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Arc<Core<A, K>>,
    mut exit_guard: ExitGuard,
    beginning: Beginning,
) -> impl Future<Output = ()> + Send {
    async move {
        let slot = exit_guard.slot;
        let mut cx = context(&core, slot);
        let mut actor = match Box::pin(first_actor(&core, slot, &mut cx, beginning)).await {
            Ok(actor) => actor,
            Err(gone) => return exit_guard.note(gone),
        };
        let mut in_flight = InFlight::new(core.clone(), slot);
        let own = Some((core.identity(), slot));
        let gone = loop {
            has_started(&*core, slot);
            in_flight.wake_up();
            let worked = {
                // In no box, so that it lies beside what is in flight: a thousand workers that take
                // turns find nothing of theirs in the caches.
                let working = pin!(work(&mut in_flight, &mut actor, &mut cx));
                CatchUnwind(working, own).await
            };
            if matches!(worked, Ok(End::Killed)) {
                // As when its task is aborted: the exit guard begins the next one.
                return;
            }
            let next = next_actor(&mut exit_guard, &mut in_flight, &mut cx, actor, worked);
            actor = match Box::pin(next).await {
                Ok(actor) => actor,
                Err(gone) => break gone,
            };
        };
        exit_guard.note(gone);
    }
}

/// What follows the work of an actor: another one in its place, or the end of the task. Boxed by
/// its caller, like everything rare: a worker's task is as large as the largest thing that it does.
async fn next_actor<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    exit_guard: &mut ExitGuard,
    in_flight: &mut InFlight<A, K>,
    cx: &mut Context<A>,
    mut actor: A,
    worked: Result<End, Box<dyn Any + Send>>,
) -> Result<A, Gone> {
    let (core, slot) = (in_flight.worker.core.clone(), exit_guard.slot);
    let own = Some((core.identity(), slot));
    let exit = match worked {
        Ok(End::Exit(reason)) => {
            in_flight.give_up_place();
            in_flight.rest();
            reason
        }
        // One that was killed does not come here.
        Ok(End::Over | End::Killed) => {
            in_flight.give_up_place();
            in_flight.rest();
            let reason = core.frame.lifecycle.reason_to_leave();
            end(actor, &reason, own).await;
            return Err(Gone::Over(reason));
        }
        Err(panic) => settle_panicked(in_flight, cx, panic),
    };
    has_died(&*core, slot);
    let wait = match sequel(&core.erased(), slot, &exit) {
        Sequel::Restart(wait) => wait,
        Sequel::Over => {
            end(actor, &exit, own).await;
            return Err(Gone::Over(exit));
        }
        Sequel::GivenUp => {
            // First: if the hook is dropped, the slot may be another worker's by then.
            exit_guard.note(Gone::GivenUp);
            end(actor, &exit, own).await;
            return Err(Gone::GivenUp);
        }
    };
    discard(CatchUnwind(Box::pin(actor.restarting(&exit)), own).await);
    discard(actor);
    restart(&core, slot, cx, wait, exit)
        .await
        .ok_or_else(|| Gone::Over(core.frame.lifecycle.reason_to_leave()))
}

/// The actor that a worker's task begins with. Boxed by its caller, as `next_actor` is.
async fn first_actor<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    cx: &mut Context<A>,
    beginning: Beginning,
) -> Result<A, Gone> {
    let actor = match beginning {
        Beginning::First(outcomes) => {
            let mut starting = Starting { core, slot, cx, actor: None };
            first_start(&**core, slot, &mut starting, outcomes).await;
            starting.actor
        }
        Beginning::AfterKill => {
            has_died(&**core, slot);
            match sequel(&core.erased(), slot, &ExitReason::Killed) {
                Sequel::Restart(wait) => {
                    let again = restart(core, slot, cx, wait, ExitReason::Killed).await;
                    // It may have been killed before it had started.
                    again.inspect(|_| notify_started(&**core, slot))
                }
                Sequel::Over => return Err(Gone::Over(ExitReason::Killed)),
                Sequel::GivenUp => return Err(Gone::GivenUp),
            }
        }
    };
    actor.ok_or_else(|| Gone::Over(core.frame.lifecycle.reason_to_leave()))
}

fn context<A: Actor, K: Hash + Eq + Send + Sync + 'static, B>(
    core: &Arc<Core<A, K>>,
    slot: usize,
) -> Context<B> {
    let home: Arc<dyn Erased> = core.clone();
    let lives = core.frame.membership.slots.at(slot).details.lock().lives;
    Context::new(core.frame.config.name.clone(), slot, lives, Arc::downgrade(&home))
}

/// Builds the actor of a slot anew, after it has ended for this reason, and a wait.
async fn restart<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    cx: &mut Context<A>,
    wait: Duration,
    reason: ExitReason,
) -> Option<A> {
    pause(&**core, slot, wait).await;
    let slot_state = core.frame.membership.slots.at(slot);
    count(&slot_state.counters.restarts);
    slot_state.details.lock().lives += 1;
    // What the one before has asked for was meant for it.
    cx.take_exit();
    cx.restarted();
    let mut starting = Starting { core, slot, cx: &mut *cx, actor: None };
    start_again(&**core, slot, &mut starting, 0).await;
    let actor = starting.actor?;
    core.frame.notify(PoolEvent::WorkerRestarted { slot, restarts: cx.restarts(), reason });
    Some(actor)
}

/// Settles what a worker held that panicked, and lets others go on with the rest.
fn settle_panicked<A: Actor, K: Hash + Eq + Send + Sync + 'static, B>(
    in_flight: &mut InFlight<A, K>,
    cx: &Context<B>,
    panic: Box<dyn Any + Send>,
) -> ExitReason {
    let message = panic_message(&*panic);
    let location = panic_location::of(&*panic);
    discard(panic);
    tracing::error!(worker = cx.name(), panic = message, "a handler panicked");
    in_flight.panicked(message.clone());
    in_flight.rest();
    ExitReason::Panicked { message, location }
}

/// Handles messages until the pool has ended, the worker is to leave, or it ends by itself. What
/// to do next is the [`Driver`]'s to say.
#[expect(clippy::manual_async_fn, reason = "as for `begin`")]
fn work<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> impl Future<Output = End> + Send {
    async move {
        let core = in_flight.worker.core.clone();
        let mut driver = Driver::new(&core.settings);
        let mut permit = None;
        loop {
            match driver.next(in_flight, cx.is_ending()) {
                Step::Run => {
                    permit.iter_mut().for_each(Turn::started);
                    let attempts = Apart(pin!(attempt(&core, in_flight, actor, cx))).await;
                    if attempts == 0 {
                        permit.iter_mut().for_each(Turn::not_started);
                        continue;
                    }
                    driver.ran(in_flight, attempts);
                    if let Some(permit) = permit.take() {
                        end_pass(in_flight, permit);
                    }
                }
                Step::Defer => {
                    in_flight.begins_later = true;
                    step_aside().await;
                    in_flight.begins_later = false;
                }
                Step::Park => {
                    permit = None;
                    idle(in_flight, &core, actor, cx).await;
                    driver.unparked();
                }
                Step::Search => {
                    in_flight.begin_search();
                    step_aside().await;
                    in_flight.end_search();
                }
                Step::Yield => {
                    core.serve_waiters();
                    step_aside().await;
                }
                Step::Permit => {
                    permit = pass(in_flight).await;
                    driver.permitted(permit.is_some());
                }
                Step::Fair => driver.takes_fairly(),
                Step::Hear => {
                    if let Some(reason) = Box::pin(hear(in_flight, actor, cx)).await {
                        return End::Exit(reason);
                    }
                }
                Step::Exit => {
                    if let Some(reason) = cx.take_exit() {
                        return End::Exit(reason);
                    }
                }
                Step::End => break,
            }
        }
        // Pairs with the store in `end`. If the end is missed, the worker ends as one that was
        // killed.
        match in_flight.slot_state.has(KILLED) && !core.frame.lifecycle.ended.load(Ordering::SeqCst)
        {
            true => End::Killed,
            false => End::Over,
        }
    }
}

/// `own` is whose hook it is.
async fn end<A: Actor>(mut actor: A, reason: &ExitReason, own: Option<(usize, usize)>) {
    if let Err(panic) = CatchUnwind(Box::pin(actor.stopped(reason)), own).await {
        discard(panic);
        tracing::error!("a `stopped` hook panicked");
    }
    discard(actor);
}
