//! The life of a worker: start, work, exit, restart, end.

use std::{
    any::Any,
    hash::Hash,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
};

use super::{
    change::Outcomes,
    core::{Core, exit::Sequel},
    discard::discard,
    employed::Employed,
    erased::Erased,
    hold::{Hold, Posture, Source, Taken},
    limits::Pass,
    seat::{KILLED, REST, SIGNAL, Status},
    tally::count,
};
use crate::{Actor, Context, ExitReason, Happening, panic_location, step_aside};

pub(crate) mod adopted;
mod attempt;
mod catch_unwind;
mod factory;
mod pass;
mod start;
#[cfg(test)]
mod tests;

pub(crate) use catch_unwind::CatchUnwind;
pub(crate) use factory::{Factory, panic_message};

use self::{
    attempt::{StandsFor, attempt, hear},
    pass::{end_pass, pass},
    start::{first_start, pause, start_again},
};

/// How a worker came to its end.
enum End {
    /// The pool has ended, or the worker is to leave.
    Over,
    /// By itself, or because of a signal.
    Exit(ExitReason),
}

/// Runs the worker of one slot until the pool has ended, it is told to leave, or the slot is disabled.
pub(crate) async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Employed<A, K>,
    slot: usize,
    outcomes: Outcomes,
) {
    let mut undertaker = Undertaker::new(&core, slot);
    let mut cx = context(&core, slot);
    if let Some(actor) = first_start(&core, slot, &mut cx, outcomes).await {
        undertaker.given_up = live(&core, slot, actor, cx).await;
    }
    undertaker.finished = true;
}

/// Goes on where a worker was killed.
async fn go_on<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: Employed<A, K>, slot: usize) {
    let mut undertaker = Undertaker::new(&core, slot);
    let mut cx = context(&core, slot);
    core.seats.at(slot).done(KILLED);
    core.has_died(slot);
    match core.sequel(slot, &ExitReason::Killed) {
        Sequel::Restart(wait) => {
            pause(&core, slot, wait).await;
            if let Some(actor) = restart(&core, slot, &mut cx, ExitReason::Killed).await {
                undertaker.given_up = live(&core, slot, actor, cx).await;
            }
        }
        Sequel::Over => {}
        Sequel::GivenUp => undertaker.given_up = true,
    }
    undertaker.finished = true;
}

fn context<A: Actor, K: Hash + Eq + Send + Sync + 'static, B>(
    core: &Arc<Core<A, K>>,
    slot: usize,
) -> Context<B> {
    let home: Arc<dyn Erased> = core.clone();
    let lives = core.seats.at(slot).place.lock().lives;
    Context::new(core.settings.name.clone(), slot, lives, Arc::downgrade(&home))
}

/// A worker that was told to leave is gone when its task ends, also where that is dropped. Where it is dropped because the
/// worker was killed, another task goes on.
struct Undertaker<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: &'a Arc<Core<A, K>>,
    slot: usize,
    /// The task has come to its end.
    finished: bool,
    /// The slot is not this worker's any more: another may have been started there.
    given_up: bool,
}

impl<'a, A: Actor, K: Hash + Eq + Send + Sync + 'static> Undertaker<'a, A, K> {
    fn new(core: &'a Arc<Core<A, K>>, slot: usize) -> Self {
        Self { core, slot, finished: false, given_up: false }
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Undertaker<'_, A, K> {
    fn drop(&mut self) {
        let seat = self.core.seats.at(self.slot);
        if self.given_up {
            return;
        }
        if seat.status() == Status::Leaving {
            return self.core.left(self.slot);
        }
        if seat.has(REST) && !self.core.ended.load(Ordering::SeqCst) {
            return self.core.rests(self.slot);
        }
        if !self.finished && seat.has(KILLED) && !self.core.ended.load(Ordering::SeqCst) {
            let again = self.core.runtime.spawn(go_on(Employed::new(self.core), self.slot));
            seat.place.lock().abort = Some(again.abort_handle());
        }
    }
}

/// True where it has ended with its slot given up.
async fn live<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    mut actor: A,
    mut cx: Context<A>,
) -> bool {
    let mut hold = Hold::new(core.clone(), slot);
    let own = Some((core.identity(), slot));
    loop {
        core.has_started(slot);
        hold.wake_up();
        let worked = CatchUnwind(Box::pin(work(&mut hold, &mut actor, &mut cx)), own).await;
        let exit = match worked {
            Ok(End::Over) => {
                hold.rest();
                end(actor, &core.reason_to_leave()).await;
                return false;
            }
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
            end(actor, &exit).await;
            return matches!(sequel, Sequel::GivenUp);
        };
        let _ = CatchUnwind(Box::pin(actor.restarting(&exit)), None).await;
        discard(actor);
        pause(core, slot, wait).await;
        actor = match restart(core, slot, &mut cx, exit).await {
            Some(actor) => actor,
            None => return false,
        };
    }
}

/// Builds the actor of a slot anew, after it has ended for this reason.
async fn restart<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    slot: usize,
    cx: &mut Context<A>,
    reason: ExitReason,
) -> Option<A> {
    let seat = core.seats.at(slot);
    count(&seat.tally.restarts);
    seat.place.lock().lives += 1;
    cx.restarted();
    let actor = start_again(core, slot, cx, 0).await?;
    core.tell(Happening::WorkerRestarted { slot, restarts: cx.restarts(), reason });
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
    let core = hold.core.clone();
    let (mut in_a_row, mut turn) = (0_u32, 0_u32);
    let mut permission = None;
    while !hold.is_over() {
        if hold.seat.has_orders()
            && hold.seat.has(SIGNAL)
            && let Some(reason) = hear(hold, actor, cx).await
        {
            return End::Exit(reason);
        }
        if let Some(reason) = cx.take_exit() {
            return End::Exit(reason);
        }
        if core.settings.gate.is_some() && permission.is_none() {
            permission = pass(hold).await;
            if permission.is_none() {
                continue;
            }
        }
        let from_lane = matches!(hold.source, Source::Lane { .. });
        let mut taken = hold.take_next();
        if taken == Taken::Nothing {
            if !from_lane && in_a_row > 1 {
                linger(hold).await;
                turn = 0;
            }
            in_a_row = 0;
            taken = hold.take_anywhere();
        }
        turn += 1;
        if turn > MESSAGES_PER_TURN {
            turn = 0;
            core.serve_waiters();
            step_aside().await;
        }
        match taken {
            Taken::Nothing if !hold.is_over() => {
                permission = None;
                idle(hold).await;
                turn = 0;
            }
            Taken::Nothing | Taken::Skipped => {}
            Taken::InHand => {
                in_a_row += 1;
                // Another worker is woken for what else is ready. The runtime puts it where only this thread looks, so
                // this worker steps back once, before it perhaps computes for long.
                if core.wake.wants_more() && core.wake.one(&core.clock.bell) {
                    step_aside().await;
                }
                permission.iter_mut().for_each(Pass::started);
                attempt(hold, actor, cx).await;
                if let Some(permission) = permission.take() {
                    end_pass(hold, permission);
                }
            }
        }
    }
    End::Over
}

/// Lets other tasks of the runtime have a turn; senders fill the queues meanwhile, and need not wake anybody.
async fn linger<A: Actor, K: Hash + Eq + Send + Sync + 'static>(hold: &mut Hold<A, K>) {
    fence(Ordering::SeqCst);
    hold.core.serve_waiters();
    let lingers = hold.core.wake.linger();
    if lingers {
        hold.posture = Posture::Lingering;
    }
    step_aside().await;
    if lingers {
        hold.core.wake.look_again();
        hold.posture = Posture::Awake;
    }
}

/// Messages handled or skipped before other tasks of the runtime get a turn, where no queue has run dry before, or the next
/// message was always there just in time: each in a lane of its own, or from a sender that runs beside the worker.
const MESSAGES_PER_TURN: u32 = 64;

/// Waits until there is something to do.
async fn idle<A: Actor, K: Hash + Eq + Send + Sync + 'static>(hold: &mut Hold<A, K>) {
    let core = hold.core.clone();
    core.wake.lie_down(hold.worker);
    hold.posture = Posture::LyingDown;
    core.wake.leave(&core.clock.bell);
    core.serve_waiters();
    core.look_if_drained();
    core.tell_progress();
    if core.ended.load(Ordering::SeqCst) {
        core.wake.all();
    }
    if hold.seat.has_orders() {
        core.wake.call(hold.worker, &core.clock.bell);
    }
    let errand = core.wake.woken(hold.worker).await;
    core.note_time();
    hold.posture = Posture::Awake;
    match errand {
        Some(index) => hold.source = Source::Attending { index, alone: true },
        None => hold.join = true,
    }
}

async fn end<A: Actor>(mut actor: A, reason: &ExitReason) {
    let stopped = async {
        actor.stopped(reason).await;
    };
    if CatchUnwind(Box::pin(stopped), None).await.is_err() {
        tracing::error!("a `stopped` hook panicked");
    }
}
