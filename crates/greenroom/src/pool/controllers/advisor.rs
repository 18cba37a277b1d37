//! The task that observes a pool, and asks its judge after each period.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{advising::Advising, ends_by};
use crate::{
    Actor, PoolEvent, SpawnError,
    control::advisor::{
        Advice, Advisor, Figures, Judge,
        period::{Look, Period, moments},
    },
    pool::{core::Core, worker::task_guard::TaskGuard},
};

/// Looks after a pool that is set up to.
pub(crate) fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Arc<Core<A, K>>) {
    let settings = core.settings.config.size.advisor.as_deref().copied();
    // A keeper may have given the pool another one before.
    if settings.is_some() && core.controllers.advising.lock().turn == 0 {
        let begun = replace(core, settings);
        debug_assert!(begun.is_ok(), "the builder has checked the settings");
    }
}

/// Gives a running pool this advisor in place of its own, or none. The new one knows
/// nothing of the time before; no earlier one has a say.
pub(crate) fn replace<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    settings: Option<Advisor>,
) -> Result<(), SpawnError> {
    let judge = settings.map(Judge::new).transpose()?;
    let turn = {
        let mut advising = core.controllers.advising.lock();
        *advising = Advising { advice: None, turn: advising.turn + 1 };
        advising.turn
    };
    if let Some(judge) = judge {
        core.env.spawn_boxed(run(TaskGuard::new(core), judge, turn));
    }
    Ok(())
}

/// Runs until the pool has ended, or has another advisor.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    mut core: TaskGuard<A, K>,
    mut judge: Judge,
    turn: u64,
) {
    let length = judge.settings().period;
    let mut period = Period::begin(totals(&core));
    let mut times = core.telemetry.measured.snapshot();
    while observe(&core, &mut period, length, turn).await {
        let before = std::mem::replace(&mut times, core.telemetry.measured.snapshot());
        let residence = times.residence_since(&before);
        let p99 = if residence.count > 0 { Some(residence.p99) } else { core.oldest() };
        let advice = judge.advise(&period.end(Figures { p99, ..totals(&core) }));
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
            || core.controllers.advising.lock().turn != turn
        {
            return false;
        }
        period.look(&Look {
            queued: core.depth(),
            capacity: core.queue.permits.capacity(),
            busy: core.membership.busy(),
            workers: core.membership.size(),
        });
    }
    !ends_by(&core.lifecycle, start + length).await
}

/// What a pool has counted since it was built, and how it is set now.
fn totals<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Figures {
    let (workers, bounds) = {
        let member_list = core.membership.members.lock();
        (member_list.len(), member_list.bounds())
    };
    // A pool that sizes itself does so each second.
    let sizes_itself = core.settings.config.size.autoscale.is_some();
    Figures {
        at: Duration::from_nanos(core.telemetry.coarse.real()),
        most_workers: if sizes_itself { workers } else { *bounds.end() },
        inbox_full: core.telemetry.full_episodes(),
        started: core.membership.started(),
        ..Figures::of(core.inbox(), workers)
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
        if advising.turn != turn {
            return false;
        }
        advising.advice.replace(Box::new(*advice))
    };
    if advice.is_news_after(before.as_deref()) {
        core.notify(PoolEvent::Advised { advice: Box::new(*advice) });
    }
    true
}
