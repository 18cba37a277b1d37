//! The succession of actors in a slot: start, exit, restart, end, whatever their type.

use std::{any::Any, sync::Arc, time::Duration};

use greenroom_queue::discard::discard;

use super::{
    any_life::{AnyLife, own},
    catch_unwind::CatchUnwind,
    exit_guard::{ExitGuard, Gone},
    start::{first_start, pause, start_again},
};
use crate::{
    ExitReason, PoolEvent,
    pool::{
        frame::{
            AnyCore, Beginning,
            exit::{Sequel, sequel},
            members::{has_died, notify_started},
        },
        stats::counters::count,
    },
};

/// How a worker ended.
pub(super) enum End {
    /// The pool has ended, or the worker is to leave.
    Over,
    /// By itself, or because of a signal.
    Exit(ExitReason),
    /// It was killed. It has nothing in hand and runs no more hooks.
    Killed,
}

/// The step after the work of an actor: another actor in its place, or the end of the task. Boxed
/// by its caller, like everything rare: a worker's task is as large as the largest thing that it
/// does.
pub(super) async fn next_actor(
    exit_guard: &mut ExitGuard,
    life: &mut dyn AnyLife,
    worked: Result<End, Box<dyn Any + Send>>,
) -> Result<(), Gone> {
    let (pool, slot) = (Arc::clone(&exit_guard.pool), exit_guard.slot);
    let exit = match worked {
        Ok(End::Exit(reason)) => {
            life.rest();
            reason
        }
        // A killed one does not come here.
        Ok(End::Over | End::Killed) => {
            life.rest();
            let reason = pool.frame().lifecycle.reason_to_leave();
            end(&*pool, slot, life, &reason).await;
            return Err(Gone::Over(reason));
        }
        Err(panic) => life.settle_panic(panic),
    };
    has_died(&*pool, slot);
    let wait = match sequel(&pool, slot, &exit) {
        Sequel::Restart(wait) => wait,
        Sequel::Over => {
            end(&*pool, slot, life, &exit).await;
            return Err(Gone::Over(exit));
        }
        Sequel::GivenUp => {
            // First: if the hook is dropped, the slot may belong to another worker by then.
            exit_guard.note(Gone::GivenUp);
            end(&*pool, slot, life, &exit).await;
            return Err(Gone::GivenUp);
        }
    };
    discard(CatchUnwind(life.restarting(&exit), own(&*pool, slot)).await);
    life.drop_actor();
    restart(&*pool, slot, life, wait, exit).await
}

/// The first actor of a worker's task. Boxed by its caller, like `next_actor`.
pub(super) async fn first_actor(
    exit_guard: &ExitGuard,
    life: &mut dyn AnyLife,
    beginning: Beginning,
) -> Result<(), Gone> {
    let (pool, slot) = (Arc::clone(&exit_guard.pool), exit_guard.slot);
    match beginning {
        Beginning::First(outcomes) => match first_start(&*pool, slot, life, outcomes).await {
            true => Ok(()),
            false => Err(Gone::Over(pool.frame().lifecycle.reason_to_leave())),
        },
        Beginning::AfterKill => {
            has_died(&*pool, slot);
            match sequel(&pool, slot, &ExitReason::Killed) {
                Sequel::Restart(wait) => {
                    restart(&*pool, slot, life, wait, ExitReason::Killed).await?;
                    // It may have been killed before it had started.
                    notify_started(&*pool, slot);
                    Ok(())
                }
                Sequel::Over => Err(Gone::Over(ExitReason::Killed)),
                Sequel::GivenUp => Err(Gone::GivenUp),
            }
        }
    }
}

/// Builds the actor of a slot again, after it has ended for this reason, and a wait.
async fn restart(
    pool: &dyn AnyCore,
    slot: usize,
    life: &mut dyn AnyLife,
    wait: Duration,
    reason: ExitReason,
) -> Result<(), Gone> {
    pause(pool, slot, wait).await;
    let slot_state = pool.frame().membership.slots.at(slot);
    count(&slot_state.counters.restarts);
    slot_state.details.lock().lives += 1;
    let restarts = life.begins_again();
    if !start_again(pool, slot, life, 0).await {
        return Err(Gone::Over(pool.frame().lifecycle.reason_to_leave()));
    }
    pool.frame().notify(PoolEvent::WorkerRestarted { slot, restarts, reason });
    Ok(())
}

async fn end(pool: &dyn AnyCore, slot: usize, life: &mut dyn AnyLife, reason: &ExitReason) {
    if let Err(panic) = CatchUnwind(life.stopped(reason), own(pool, slot)).await {
        discard(panic);
        tracing::error!("a `stopped` hook panicked");
    }
    life.drop_actor();
}
