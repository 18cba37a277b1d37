//! Exits: of a worker, and of the pool because of one.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{AnyCore, members::disable, notify::notify_end, rest::lay_off};
use crate::{
    ExitReason, PoolEvent, Stop,
    pool::membership::{
        restart::WhenExhausted,
        slot_state::{REST, Status},
    },
};

/// The fate of a slot whose worker has ended.
pub(crate) enum Sequel {
    /// The worker is restarted after this wait.
    Restart(Duration),
    /// Its task ends.
    Over,
    /// Its task ends, and it no longer owns its slot.
    GivenUp,
}

/// A worker has ended by itself. It no longer holds anything.
pub(crate) fn sequel(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> Sequel {
    let slot_state = pool.frame().membership.slots.at(slot);
    // Pairs with the store in `end`. If the end is missed, the worker finds it in `over`, before it
    // is built again.
    let over = pool.frame().lifecycle.ended.load(Ordering::SeqCst);
    if over || slot_state.status() == Status::Leaving || slot_state.has(REST) {
        return Sequel::Over;
    }
    if std::mem::take(&mut pool.frame().membership.slots.at(slot).details.lock().up) {
        pool.frame().controllers.notify_down(slot, reason);
    }
    if !pool.frame().config.failure.restart_policy.starts_again(reason.is_normal()) {
        return rest_slot(pool, slot, reason);
    }
    let wait = {
        let mut details = pool.frame().membership.slots.at(slot).details.lock();
        details.restarts.next(
            &pool.frame().config.failure.restarts,
            Instant::now(),
            pool.frame().env.chance.fraction(),
        )
    };
    match wait {
        Some(wait) => Sequel::Restart(wait),
        None => exceeded(pool, slot, reason),
    }
}

/// A worker has ended that is not to be restarted. An actor that stands alone ends with it.
fn rest_slot(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> Sequel {
    // Pairs with the store in `rest_from_the_start`, before the pool's first task: a supervised
    // pool never misses it.
    match pool.frame().controllers.supervised.load(Ordering::SeqCst) {
        true => escalate(pool, slot, reason),
        false if pool.frame().config.handling.single => end_with(pool, reason),
        false => give_up(pool, slot, reason),
    }
}

fn exceeded(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> Sequel {
    pool.frame().notify(PoolEvent::BudgetExceeded { slot });
    match pool.frame().config.failure.when_exhausted {
        WhenExhausted::StopPool => end_with(pool, reason),
        WhenExhausted::Escalate => escalate(pool, slot, reason),
        WhenExhausted::Disable => give_up(pool, slot, reason),
    }
}

fn end_with(pool: &Arc<dyn AnyCore>, reason: &ExitReason) -> Sequel {
    stop_because(pool, reason.clone());
    Sequel::Over
}

fn give_up(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> Sequel {
    if disable(pool, slot, reason) { Sequel::GivenUp } else { Sequel::Over }
}

fn escalate(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> Sequel {
    // Pairs with the store in `rest_from_the_start`, as in `rest_slot`.
    if !pool.frame().controllers.supervised.load(Ordering::SeqCst) {
        return give_up(pool, slot, reason);
    }
    if !lay_off(&**pool, slot) {
        return Sequel::Over;
    }
    pool.frame().notify(PoolEvent::Escalated { slot });
    pool.frame().controllers.notify_supervisor(reason);
    Sequel::GivenUp
}

/// Its spawn has failed or was given up: notifies those that were linked to it in its start. Its
/// start was never reported, so there is no notice of its end, and none for a keeper.
pub(crate) fn end_unheard(pool: &Arc<dyn AnyCore>, reason: ExitReason) {
    // Pairs with the `swap` in `notify_end`: the end of a pool is not reported if its start was
    // not.
    pool.frame().lifecycle.told_end.store(true, Ordering::SeqCst);
    end_lives(pool, pool.frame().lifecycle.cause.get_or_init(|| reason));
}

/// Ends the pool after the messages in hand, for this reason, in the background.
pub(crate) fn stop_because(pool: &Arc<dyn AnyCore>, reason: ExitReason) {
    let how = match reason {
        ExitReason::Killed => Stop::within(Duration::ZERO),
        _ => Stop::Now,
    };
    pool.frame().lifecycle.ends_because(reason);
    pool.clone().stop_behind(how);
}

/// The pool has ended: notifies all that are linked to it or to its workers. Listeners also get
/// notices about workers that are stuck, with how long these have been busy. Later calls do
/// nothing.
pub(crate) fn end_of_life(pool: &Arc<dyn AnyCore>, wedged: &[(usize, Duration)]) {
    let reason = pool.frame().lifecycle.cause.get_or_init(|| ExitReason::Shutdown);
    notify_end(&**pool, reason, wedged);
    end_lives(pool, reason);
    pool.frame().controllers.notify_supervisor(reason);
}

fn end_lives(pool: &Arc<dyn AnyCore>, reason: &ExitReason) {
    // Before the workers: a caller that makes a worker's mailbox from now on sees that this life is
    // over.
    pool.frame().lifecycle.life.end(&pool.clone().any(), reason);
    for slot in 0..pool.frame().membership.slots.len() {
        pool.clone().end_worker(slot, reason);
        let adopted = pool.frame().membership.slots.at(slot).details.lock().adopted.take();
        if let Some(adopted) = adopted {
            adopted.outlive(reason);
        }
    }
}
