//! The task that observes a pool, and asks its judge after each period.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::ends_by;
use crate::{
    Actor, PoolEvent, SpawnError,
    control::advisor::{
        Advice, Advisor, Judge,
        period::{Counts, Look, Period, PeriodEnd, moments},
    },
    pool::{core::Core, worker::task_guard::TaskGuard},
};

/// Looks after a pool that is set up to.
pub(crate) fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Arc<Core<A, K>>) {
    let Some(settings) = core.settings.config.size.advisor.as_deref().copied() else { return };
    // A keeper may have given the pool another one before.
    if !core.controllers.advising.lock().is_turn(0) {
        return;
    }
    if let Ok(judge) = Judge::new(settings) {
        begin_with(core, judge);
    }
}

/// Gives a running pool this advisor in place of its own, or none. The new one knows
/// nothing of the time before.
pub(crate) fn replace<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    settings: Option<Advisor>,
) -> Result<(), SpawnError> {
    match settings.map(Judge::new).transpose()? {
        Some(judge) => begin_with(core, judge),
        None => {
            next_turn(core);
            core.telemetry.measured.forget_residence();
        }
    }
    Ok(())
}

fn begin_with<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    judge: Judge,
) {
    let turn = next_turn(core);
    core.telemetry.measured.keep_residence();
    core.env.spawn_boxed(run(TaskGuard::new(core), judge, turn));
}

/// From now on no earlier advisor has a say.
fn next_turn<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> u64 {
    core.controllers.advising.lock().next_turn()
}

/// Runs until the pool has ended, or has another advisor.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    mut core: TaskGuard<A, K>,
    mut judge: Judge,
    turn: u64,
) {
    let length = judge.settings().period;
    let mut period = Period::begin(counts(&core));
    while observe(&core, &mut period, length, turn).await {
        let advice = judge.advise(&period.end(counts(&core), ending(&core)));
        if !take_down(&core, &advice, turn) {
            break;
        }
    }
    // Pairs with nothing: after a stale `false`, `TaskGuard::drop` asks again before it believes
    // that the pool goes on.
    if !core.lifecycle.ended.load(Ordering::SeqCst) {
        core.spare();
    }
}

/// Observes a pool for a period. False if the pool ends in between, or has another advisor.
async fn observe<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    period: &mut Period,
    length: Duration,
    turn: u64,
) -> bool {
    let start = Instant::now();
    for moment in moments(length, || core.env.chance()) {
        if ends_by(&core.lifecycle, start + moment).await
            || !core.controllers.advising.lock().is_turn(turn)
        {
            return false;
        }
        period.look(&look(core));
    }
    !ends_by(&core.lifecycle, start + length).await
}

fn look<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Look {
    Look {
        queued: core.depth(),
        capacity: core.queue.permits.capacity(),
        busy: core.membership.busy(),
        workers: core.membership.size(),
    }
}

fn counts<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Counts {
    Counts {
        at: Duration::from_nanos(core.telemetry.coarse.real()),
        inbox_full: core.telemetry.full_episodes(),
        started: core.membership.started(),
    }
}

fn ending<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> PeriodEnd {
    let (workers, bounds) = {
        let member_list = core.membership.members.lock();
        (member_list.len(), member_list.bounds())
    };
    // A pool that sizes itself does so each second.
    let sizes_itself = core.settings.config.size.autoscale.is_some();
    PeriodEnd {
        inbox: core.inbox(),
        workers,
        most_workers: if sizes_itself { workers } else { *bounds.end() },
        p99: core.telemetry.measured.take_residence().or_else(|| core.oldest()),
    }
}

/// Keeps the advice, and tells of it if it is news. False if the pool has another advisor by now.
fn take_down<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    advice: &Advice,
    turn: u64,
) -> bool {
    let before = {
        let mut advising = core.controllers.advising.lock();
        if !advising.is_turn(turn) {
            return false;
        }
        advising.take_down(advice)
    };
    if advice.is_news_after(before.as_deref()) {
        core.notify(PoolEvent::Advised { advice: Box::new(*advice) });
    }
    true
}
