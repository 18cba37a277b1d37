//! The task that observes a pool, and asks its judge after each period.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{advising::Advising, ends_by};
use crate::{
    PoolEvent, SpawnError,
    control::advisor::{
        Advice, Advisor, Figures, Judge,
        period::{Look, Period, moments},
    },
    pool::frame::{AnyCore, capacity::inbox, task_guard::TaskGuard},
};

/// Starts the task, if the pool has an advisor.
pub(crate) fn begin(pool: &Arc<dyn AnyCore>) {
    let settings = pool.frame().config.size.advisor.as_deref().copied();
    // A keeper may have given the pool another one already.
    if settings.is_some() && pool.frame().controllers.advising.lock().turn == 0 {
        let begun = replace(pool, settings);
        debug_assert!(begun.is_ok(), "the builder has checked the settings");
    }
}

/// Gives a running pool this advisor in place of its own, or none. The new one knows nothing of the
/// time before, and earlier ones have no effect.
pub(crate) fn replace(
    pool: &Arc<dyn AnyCore>,
    settings: Option<Advisor>,
) -> Result<(), SpawnError> {
    let judge = settings.map(Judge::new).transpose()?;
    let turn = {
        let mut advising = pool.frame().controllers.advising.lock();
        *advising = Advising { advice: None, turn: advising.turn + 1 };
        advising.turn
    };
    if let Some(judge) = judge {
        pool.frame().env.spawn(Box::pin(run(TaskGuard::new(pool), judge, turn)));
    }
    Ok(())
}

/// Runs until the pool has ended, or has another advisor.
async fn run(mut pool: TaskGuard, mut judge: Judge, turn: u64) {
    let length = judge.settings().period;
    let mut period = Period::begin(totals(&**pool));
    let mut times = pool.frame().telemetry.measured.snapshot();
    while observe(&**pool, &mut period, length, turn).await {
        let before = std::mem::replace(&mut times, pool.frame().telemetry.measured.snapshot());
        let residence = times.residence_since(&before);
        let p99 = if residence.count > 0 { Some(residence.p99) } else { pool.oldest() };
        let advice = judge.advise(&period.end(Figures { p99, ..totals(&**pool) }));
        if !take_down(&**pool, &advice, turn) {
            break;
        }
    }
    // After a stale `false`, `TaskGuard::drop` checks again before it assumes that the pool
    // continues.
    if !pool.frame().lifecycle.ended.load(Ordering::Relaxed) {
        pool.spare();
    }
}

/// Observes a pool for a period. Returns false if the pool ends in between, or has another advisor.
async fn observe(pool: &dyn AnyCore, period: &mut Period, length: Duration, turn: u64) -> bool {
    let start = Instant::now();
    for moment in moments(length, || pool.frame().env.chance.fraction()) {
        if ends_by(&pool.frame().lifecycle, start + moment).await
            || pool.frame().controllers.advising.lock().turn != turn
        {
            return false;
        }
        period.look(&Look {
            queued: pool.depth(),
            capacity: pool.permits().capacity(),
            busy: pool.frame().membership.busy(),
            workers: pool.frame().membership.size(),
        });
    }
    !ends_by(&pool.frame().lifecycle, start + length).await
}

/// The counts of a pool since it was built, and its present settings.
fn totals(pool: &dyn AnyCore) -> Figures {
    let (workers, bounds) = {
        let member_list = pool.frame().membership.members.lock();
        (member_list.len(), member_list.bounds())
    };
    // A pool that sizes itself does so each second.
    let sizes_itself = pool.frame().config.size.autoscale.is_some();
    Figures {
        at: Duration::from_nanos(pool.frame().telemetry.coarse.real()),
        most_workers: if sizes_itself { workers } else { *bounds.end() },
        inbox_full: pool.frame().telemetry.full_episodes(),
        started: pool.frame().membership.started(),
        ..Figures::of(inbox(pool), workers)
    }
}

/// Keeps the advice, and reports it if it is news. Returns false if the pool has another advisor by
/// now.
fn take_down(pool: &dyn AnyCore, advice: &Advice, turn: u64) -> bool {
    let before = {
        let mut advising = pool.frame().controllers.advising.lock();
        if advising.turn != turn {
            return false;
        }
        advising.advice.replace(Box::new(*advice))
    };
    if advice.is_news_after(before.as_deref()) {
        pool.frame().notify(PoolEvent::Advised { advice: Box::new(*advice) });
    }
    true
}
