//! The life of a worker: start, work, exit, restart, end.

use std::{
    any::Any,
    future::Future,
    hash::Hash,
    pin::pin,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    change::Outcomes,
    core::{Core, exit::Sequel},
    discard::discard,
    employed::Employed,
    hold::{Hold, Posture, Source, Taken},
    in_place,
    limits::Pass,
    seat::{KILLED, REST, SIGNAL, Status},
    tally::count,
};
use crate::{
    Actor, Context, ExitReason, PoolEvent, any_address::Erased, panic_location,
    pool::panic_message::panic_message, step_aside,
};

pub(crate) mod adopted;
mod apart;
mod attempt;
mod catch_unwind;
mod coalesce;
mod factory;
mod habit;
mod idle;
mod pass;
mod patience;
mod start;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use catch_unwind::CatchUnwind;
pub(crate) use factory::Factory;

use self::{
    apart::Apart,
    attempt::{StandsFor, attempt, hear},
    coalesce::{Coalescing, pause as pause_for_sender},
    habit::Habit,
    idle::idle,
    pass::{end_pass, pass},
    patience::Patience,
    start::{first_start, pause, start_again},
    turn::Turn,
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

/// How a worker's task came to its end.
enum Gone {
    /// The slot is still its own: the pool has ended, or the worker has left for this reason.
    Over(ExitReason),
    /// The slot is not this worker's any more: another may have been started there.
    GivenUp,
}

/// Runs the worker of one slot until the pool has ended, it is told to leave, or the slot is
/// disabled. If the task is dropped, even before it was polled, its slot is cleaned up.
pub(crate) fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Employed<A, K>,
    slot: usize,
    outcomes: Outcomes,
) -> impl Future<Output = ()> + Send {
    let undertaker = Undertaker { core, slot, gone: None, adopted: false };
    begin(undertaker, Beginning::First(outcomes))
}

/// Why the task of a worker is begun.
enum Beginning {
    /// The slot was vacant; waiting callers are told the outcome.
    First(Outcomes),
    /// The worker there was killed.
    AfterKill,
}

/// The life of a worker's task. A future of its own for the loop would cost its way in and out
/// with each turn.
async fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    mut undertaker: Undertaker<A, K>,
    beginning: Beginning,
) {
    let (core, slot) = (undertaker.core.clone(), undertaker.slot);
    let mut cx = context(&core, slot);
    let mut actor = match Box::pin(first_actor(&core, slot, &mut cx, beginning)).await {
        Ok(actor) => actor,
        Err(gone) => return undertaker.gone = Some(gone),
    };
    let mut hold = Hold::new(core.clone(), slot);
    let own = Some((core.identity(), slot));
    undertaker.gone = Some(loop {
        core.has_started(slot);
        hold.wake_up();
        let worked = CatchUnwind(Box::pin(work(&mut hold, &mut actor, &mut cx)), own).await;
        let exit = match worked {
            Ok(End::Over) => {
                hold.give_up_place();
                hold.rest();
                let reason = core.lifecycle.reason_to_leave();
                end(actor, &reason, own).await;
                break Gone::Over(reason);
            }
            // As when its task is aborted: the undertaker begins the next one.
            Ok(End::Killed) => return,
            Ok(End::Exit(reason)) => {
                hold.give_up_place();
                hold.rest();
                reason
            }
            Err(panic) => bury(&mut hold, &cx, panic),
        };
        core.has_died(slot);
        let sequel = core.sequel(slot, &exit);
        let Sequel::Restart(wait) = sequel else {
            end(actor, &exit, own).await;
            break match sequel {
                Sequel::GivenUp => Gone::GivenUp,
                _ => Gone::Over(exit),
            };
        };
        let _ = CatchUnwind(Box::pin(actor.restarting(&exit)), own).await;
        discard(actor);
        actor = match Box::pin(restart(&core, slot, &mut cx, wait, exit)).await {
            Some(actor) => actor,
            None => break Gone::Over(core.lifecycle.reason_to_leave()),
        };
    });
}

/// The actor that a worker's task begins with. Boxed by its caller, as `restart` is.
async fn first_actor<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    cx: &mut Context<A>,
    beginning: Beginning,
) -> Result<A, Gone> {
    let actor = match beginning {
        Beginning::First(outcomes) => first_start(core, slot, cx, outcomes).await,
        Beginning::AfterKill => {
            core.has_died(slot);
            match core.sequel(slot, &ExitReason::Killed) {
                Sequel::Restart(wait) => {
                    let again = restart(core, slot, cx, wait, ExitReason::Killed).await;
                    // It may have been killed before it had started.
                    again.inspect(|_| core.tell_started(slot))
                }
                Sequel::Over => return Err(Gone::Over(ExitReason::Killed)),
                Sequel::GivenUp => return Err(Gone::GivenUp),
            }
        }
    };
    actor.ok_or_else(|| Gone::Over(core.lifecycle.reason_to_leave()))
}

fn context<A: Actor, K: Hash + Eq + Send + Sync + 'static, B>(
    core: &Arc<Core<A, K>>,
    slot: usize,
) -> Context<B> {
    let home: Arc<dyn Erased> = core.clone();
    let lives = core.membership.seats.at(slot).place.lock().lives;
    Context::new(core.settings.config.name.clone(), slot, lives, Arc::downgrade(&home))
}

/// A worker that was told to leave is gone when its task ends or is dropped. If the task is dropped
/// because the worker was killed, another task goes on.
struct Undertaker<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: Employed<A, K>,
    slot: usize,
    /// Present when the task has come to its end.
    gone: Option<Gone>,
    /// It cannot be built again: if it is killed, it has left the pool.
    adopted: bool,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Undertaker<A, K> {
    fn drop(&mut self) {
        let (core, slot) = (&self.core, self.slot);
        let seat = core.membership.seats.at(slot);
        // Pairs with the store in `end`. If the end is missed, a task is begun that finds it.
        let goes_on = !core.lifecycle.ended.load(Ordering::SeqCst);
        let killed = seat.has(KILLED) && goes_on;
        if killed && self.adopted && self.gone.is_none() {
            core.drop_out(slot, &mpsc::unbounded_channel().0);
        }
        match &self.gone {
            Some(Gone::GivenUp) => self.core.spare(),
            None if killed && !self.adopted && !seat.has(REST) => self.begin_again(),
            gone if seat.status() == Status::Leaving => {
                let finished = match gone {
                    Some(Gone::Over(reason)) => Some(reason),
                    _ => None,
                };
                core.left(slot, finished.unwrap_or(&ExitReason::Killed));
                if finished.is_some() {
                    self.core.spare();
                }
            }
            _ if seat.has(REST) && goes_on => {
                core.rests(slot);
                self.core.spare();
            }
            _ => {}
        }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Undertaker<A, K> {
    fn begin_again(&self) {
        let (core, slot) = (&self.core, self.slot);
        // First: a kill from here on is meant for the task that is begun.
        core.membership.seats.at(slot).done(KILLED);
        let undertaker = Undertaker { core: Employed::new(core), slot, gone: None, adopted: false };
        core.employ(slot, begin(undertaker, Beginning::AfterKill));
    }
}

/// Builds the actor of a slot anew, after it has ended for this reason, and a wait. Boxed by its
/// callers, like everything rare: a worker's task is as large as the largest thing that it does.
async fn restart<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    cx: &mut Context<A>,
    wait: Duration,
    reason: ExitReason,
) -> Option<A> {
    pause(core, slot, wait).await;
    let seat = core.membership.seats.at(slot);
    count(&seat.tally.restarts);
    seat.place.lock().lives += 1;
    // What the one before has asked for was meant for it.
    cx.take_exit();
    cx.restarted();
    let actor = start_again(core, slot, cx, 0).await?;
    core.tell(PoolEvent::WorkerRestarted { slot, restarts: cx.restarts(), reason });
    Some(actor)
}

/// Settles what a worker held that panicked, and lets others go on with the rest.
fn bury<A: Actor, K: Hash + Eq + Send + Sync + 'static, B>(
    hold: &mut Hold<A, K>,
    cx: &Context<B>,
    panic: Box<dyn Any + Send>,
) -> ExitReason {
    let message = panic_message(&*panic);
    let location = panic_location::of(&*panic);
    discard(panic);
    tracing::error!(worker = cx.name(), panic = message, "a handler panicked");
    hold.panicked(message.clone());
    hold.rest();
    ExitReason::Panicked { message, location }
}

/// Handles messages until the pool has ended, the worker is to leave, or it ends by itself.
async fn work<A: Actor, K: Hash + Eq + Send + Sync + 'static, B: StandsFor<A>>(
    hold: &mut Hold<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> End {
    let core = hold.post.core.clone();
    let (mut in_a_row, mut turn) = (0_u32, Turn::default());
    let mut patience = Patience::new(&core.settings);
    let mut coalescing = Coalescing::default();
    let (mut habit, mut has_waited) = (Habit::default(), false);
    let mut by_call = false;
    let mut permission = None;
    while !hold.is_over() {
        if hold.seat.has_orders()
            && hold.seat.has(SIGNAL)
            && let Some(reason) = Box::pin(hear(hold, actor, cx)).await
        {
            return End::Exit(reason);
        }
        if let Some(reason) = cx.take_exit() {
            return End::Exit(reason);
        }
        if core.settings.is_limited() && permission.is_none() {
            permission = pass(hold).await;
            if permission.is_none() {
                continue;
            }
        }
        if turn.has_begun() && in_place::is_driving() {
            // A caller does the work of one message. Other messages lie where other workers can
            // take them: this worker's own task may be stuck behind the caller for long.
            hold.give_up_place();
            if core.queue.wake.any_ready() {
                turn.begin(0);
                core.serve_waiters();
                core.queue.wake.one(&core.clock.bell);
                step_aside().await;
            }
        }
        let from_lane = matches!(hold.post.source, Source::Lane { .. });
        let mut taken = match hold.post.posture {
            Posture::Uncounted => hold.take_after_wait(),
            _ => hold.take_next(),
        };
        if taken == Taken::Nothing {
            // With keys, a sender's messages go to all shards: the ready ones come first. A handler
            // that has waited has left its shard, and others are ready most likely.
            let goes_on = (core.keyed() || has_waited) && core.queue.wake.any_ready();
            let from_afar = || !by_call && hold.is_fed_from_afar();
            let pauses = coalescing.pauses_after(in_a_row, from_afar);
            if pauses {
                pause_for_sender();
            }
            let is_fed = pauses && hold.finds_something();
            if pauses && !is_fed {
                coalescing.was_in_vain();
            }
            let lingers = !from_lane
                && !goes_on
                && !is_fed
                && hold.post.posture == Posture::Awake
                && patience.lingers_after(in_a_row, by_call);
            if lingers {
                linger(hold).await;
                turn.begin(0);
            }
            in_a_row = 0;
            taken = hold.take_anywhere();
            if lingers {
                patience.found(taken != Taken::Nothing);
            }
        }
        turn.count(1);
        if turn.is_over(&core.queue.wake) {
            turn.begin(0);
            core.serve_waiters();
            step_aside().await;
        }
        match taken {
            Taken::Nothing if !hold.is_over() => {
                permission = None;
                turn.begin(u32::from(idle(hold, &core, actor, cx).await));
            }
            Taken::Nothing | Taken::Skipped => {}
            Taken::InHand => {
                in_a_row += 1;
                // Before the handler is polled, which may compute for long.
                hold.counts_again();
                // Another worker is woken for other ready work. The runtime puts it where only
                // this thread looks, so this worker steps back once, before it perhaps computes for
                // long. If handlers usually wait, this one makes room as soon as it does.
                if core.queue.wake.wants_more()
                    && !in_place::is_driving()
                    && core.queue.wake.one(&core.clock.bell)
                    && !core.queue.wake.waits()
                {
                    hold.begins_later = true;
                    step_aside().await;
                    hold.begins_later = false;
                    if !hold.still_starts() {
                        continue;
                    }
                }
                permission.iter_mut().for_each(Pass::started);
                by_call = hold.delivery.is_call();
                let attempts = Apart(pin!(attempt(&core, hold, actor, cx))).await;
                in_a_row += attempts - 1;
                turn.count(attempts - 1);
                has_waited = std::mem::take(&mut hold.post.has_suspended);
                if has_waited {
                    // Others have had their turn since.
                    turn.begin(1);
                }
                if let Some(waits) = habit.changes(has_waited, core.queue.wake.waits()) {
                    core.wait_usually(waits);
                }
                if let Some(permission) = permission.take() {
                    end_pass(hold, permission);
                }
            }
        }
    }
    // Pairs with the store in `end`. If the end is missed, the worker ends as one that was killed.
    match hold.seat.has(KILLED) && !core.lifecycle.ended.load(Ordering::SeqCst) {
        true => End::Killed,
        false => End::Over,
    }
}

/// Lets other tasks of the runtime have a turn; senders fill the queues in that time, and need not
/// wake a worker.
async fn linger<A: Actor, K: Hash + Eq + Send + Sync + 'static>(hold: &mut Hold<A, K>) {
    // Pairs with the fence in `grant_to_all`: a waiter sees what this worker has started, or the
    // worker sees `starved`. Otherwise a sender waits while the worker lingers.
    fence(Ordering::SeqCst);
    hold.post.core.serve_waiters();
    let lingers = hold.post.core.queue.wake.linger();
    if lingers {
        hold.post.posture = Posture::Lingering;
    }
    step_aside().await;
    if lingers {
        hold.post.core.queue.wake.look_again();
        hold.post.posture = Posture::Awake;
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
