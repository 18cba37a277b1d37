//! The life of a worker: start, work, exit, restart, end.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, atomic::Ordering},
};

use super::{
    core::Core,
    frame::{Beginning, members::has_started},
    membership::slot_state::KILLED,
};
use crate::{Actor, Context, any_address::Erased, pool::pool_payload::Key, step_aside};
use in_flight::InFlight;

mod actor_life;
pub(crate) mod adopted;
mod any_life;
mod apart;
mod attempt;
mod catch_unwind;
mod driver;
mod exit_guard;
mod factory;
mod idle;
pub(crate) mod in_flight;
mod panicked;
mod pass;
pub(crate) mod refusals;
mod start;
mod succession;
#[cfg(test)]
mod tests;

pub(crate) use catch_unwind::CatchUnwind;
pub(crate) use factory::Factory;

use self::{
    actor_life::ActorLife,
    any_life::own,
    apart::Apart,
    attempt::{StandsFor, attempt, hear},
    driver::{Driver, Step},
    exit_guard::ExitGuard,
    idle::idle,
    pass::{Passage, await_pass, end_pass, try_pass},
    succession::{End, first_actor, next_actor},
};

/// Runs the worker of one slot until the pool has ended, the worker is told to leave, or the slot
/// is disabled. If the task is dropped, even before its first poll, its slot is cleaned up.
pub(crate) fn run<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    slot: usize,
    beginning: Beginning,
) -> impl Future<Output = ()> + Send {
    let exit_guard = ExitGuard::new(&core.erased(), slot, false);
    begin(core, exit_guard, beginning)
}

/// The life of a worker's task. A separate future for the loop would cost a call in and out of it
/// with each turn.
#[expect(clippy::manual_async_fn, reason = "an `async fn` keeps room for its arguments twice")]
fn begin<A: Actor, K: Key>(
    core: Arc<Core<A, K>>,
    mut exit_guard: ExitGuard,
    beginning: Beginning,
) -> impl Future<Output = ()> + Send {
    async move {
        let slot = exit_guard.slot;
        let (in_flight, cx) = (InFlight::new(core.clone(), slot), context(&core, slot));
        let mut life = ActorLife { in_flight, actor: None, cx };
        let own = own(&*core, slot);
        let first = first_actor(&exit_guard, &mut life, beginning);
        if let Err(gone) = Box::pin(first).await {
            return exit_guard.note(gone);
        }
        let gone = loop {
            let ActorLife { in_flight, actor: Some(actor), cx } = &mut life else { return };
            has_started(&*core, slot);
            in_flight.worker.wake_up();
            let worked = {
                // Not boxed, so that it is next to the state in flight: a thousand workers that
                // take turns find none of their data in the caches.
                let working = pin!(work(in_flight, actor, cx));
                CatchUnwind(working, own).await
            };
            if matches!(worked, Ok(End::Killed)) {
                // As when its task is aborted: the exit guard starts the next one.
                return;
            }
            if let Err(gone) = Box::pin(next_actor(&mut exit_guard, &mut life, worked)).await {
                break gone;
            }
        };
        exit_guard.note(gone);
    }
}

fn context<A: Actor, K: Key, B>(core: &Arc<Core<A, K>>, slot: usize) -> Context<B> {
    let home: Arc<dyn Erased> = core.clone();
    let lives = core.frame.membership.slots.at(slot).details.lock().lives;
    Context::new(core.frame.config.name.clone(), slot, lives, Arc::downgrade(&home))
}

/// Handles messages until the pool has ended, the worker is to leave, or it ends by itself. The
/// [`Driver`] decides the next step.
#[expect(clippy::manual_async_fn, reason = "as for `begin`")]
fn work<A: Actor, K: Key, B: StandsFor<A>>(
    in_flight: &mut InFlight<A, K>,
    actor: &mut B,
    cx: &mut Context<B>,
) -> impl Future<Output = End> + Send {
    async move {
        let core = in_flight.worker.core.clone();
        let mut driver = Driver::new(&core.settings);
        let mut passage = None;
        loop {
            match driver.next(in_flight, cx.is_ending()) {
                Step::Run => {
                    passage.iter_mut().for_each(Passage::started);
                    let attempts = Apart(pin!(attempt(&core, in_flight, actor, cx))).await;
                    if attempts == 0 {
                        passage.iter_mut().for_each(Passage::not_started);
                        continue;
                    }
                    driver.ran(in_flight, attempts);
                    if let Some(passage) = passage.take() {
                        end_pass(in_flight, passage);
                    }
                }
                Step::Defer => {
                    in_flight.begins_later = true;
                    step_aside().await;
                    in_flight.begins_later = false;
                }
                Step::Park => {
                    passage = None;
                    idle(in_flight, &core, actor, cx).await;
                    driver.unparked();
                }
                Step::Search => {
                    in_flight.worker.begin_search();
                    step_aside().await;
                    in_flight.worker.end_search();
                }
                Step::Yield => {
                    core.serve_waiters();
                    step_aside().await;
                }
                Step::Pass => {
                    passage = try_pass(in_flight);
                    if passage.is_none() {
                        let slot = in_flight.worker.slot;
                        let pass = await_pass(&*core, slot).await;
                        in_flight.worker.wake_up();
                        passage = pass.map(|pass| Passage::new(pass, core.erased(), slot));
                    }
                    driver.passed(passage.is_some());
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
        // Pairs with the store in `end`. If the end is missed, the worker ends like one that was
        // killed.
        match in_flight.slot_state.has(KILLED) && !core.frame.lifecycle.ended.load(Ordering::SeqCst)
        {
            true => End::Killed,
            false => End::Over,
        }
    }
}
