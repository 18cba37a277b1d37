//! The task that observes a pool, asks its judge after each period, and acts on
//! the answer if it may.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    Actor, PoolEvent, SpawnError,
    control::advisor::{
        Advice, Advisor, Figures, Finding, Judge, Proposal,
        period::{Look, Period},
    },
    pool::{AdminError, controllers::autoscale::is_over, core::Core, employed::Employed},
    pool_events::ResizeReason,
};

/// The time between two looks: short enough for an average, and long enough that the locks of the
/// queues do not matter.
const LOOK: Duration = Duration::from_secs(1);
/// The fewest looks in a period: if it is short, they come sooner.
const LEAST_LOOKS: u32 = 10;
/// The most looks in a period: if it is long, they come later.
const MOST_LOOKS: u32 = 300;

/// The counts at the beginning of the period.
struct Before {
    at: Duration,
    inbox_full: u64,
    started: u64,
}

/// Looks after a pool that is set up to.
pub(crate) fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Arc<Core<A, K>>) {
    let Some(settings) = core.settings.config.size.advisor.as_deref().copied() else { return };
    if let Ok(judge) = judge(core, settings) {
        begin_with(core, judge);
    }
}

/// Gives a running pool this advisor in place of its own, or none. The new one knows
/// nothing of the time before.
pub(crate) fn replace<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    settings: Option<Advisor>,
) -> Result<(), SpawnError> {
    match settings.map(|settings| judge(core, settings)).transpose()? {
        Some(judge) => begin_with(core, judge),
        None => {
            next_turn(core);
            core.telemetry.measured.forget_residence();
        }
    }
    Ok(())
}

fn judge<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    settings: Advisor,
) -> Result<Judge, SpawnError> {
    // Each worker's own mailbox keeps its size, so there the advice is for an operator.
    let acts = settings.acts && core.settings.functions.dispatch.is_none();
    Judge::new(Advisor { acts, ..settings })
}

fn begin_with<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    judge: Judge,
) {
    let turn = next_turn(core);
    core.telemetry.measured.keep_residence();
    core.env.runtime.spawn(run(Employed::new(core), judge, turn));
}

/// From now on no earlier advisor has a say.
fn next_turn<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> u64 {
    core.controllers.advising.lock().next_turn()
}

/// Runs until the pool has ended, or has another advisor.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    mut core: Employed<A, K>,
    mut judge: Judge,
    turn: u64,
) {
    let period = judge.settings().period;
    let mut before = Before::of(&core);
    while let Some(seen) = watch(&core, period, turn).await {
        let figures = figures(&core, &mut before, seen);
        let advice = judge.advise(&figures);
        if !take_down(&core, &advice, turn) {
            break;
        }
        if let Some(change) = advice.change.filter(|_| advice.acted) {
            carry_out(&core, &figures, change);
        }
    }
    // Pairs with nothing: after a stale `false`, `Employed::drop` asks again before it believes
    // that the pool goes on.
    if !core.lifecycle.ended.load(Ordering::SeqCst) {
        core.spare();
    }
}

/// Observes a pool for a period. `None` if the pool ends in between, or has another
/// advisor. The moments are random: an event that recurs on every second would otherwise be
/// seen always, or never.
async fn watch<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    period: Duration,
    turn: u64,
) -> Option<Period> {
    let looks = (period.div_duration_f64(LOOK) as u32).clamp(LEAST_LOOKS, MOST_LOOKS);
    let (start, mut seen) = (Instant::now(), Period::default());
    for look in 0..looks {
        let share = (f64::from(look) + core.env.chance()) / f64::from(looks);
        if is_over(core, start + period.mul_f64(share)).await
            || !core.controllers.advising.lock().is_turn(turn)
        {
            return None;
        }
        seen.look(&Look::at(core));
    }
    let over = is_over(core, start + period).await;
    (!over).then_some(seen)
}

impl Look {
    fn at<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Self {
        Self {
            queued: core.depth(),
            capacity: core.queue.permits.capacity(),
            busy: core.membership.seats.iter().filter(|seat| seat.is_busy()).count(),
            workers: core.membership.roster.lock().len(),
        }
    }
}

impl Before {
    fn of<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Self {
        let started =
            core.membership.seats.iter().map(|seat| seat.tally.started.load(Ordering::Relaxed));
        Self {
            at: Duration::from_nanos(core.telemetry.coarse.real()),
            inbox_full: core.telemetry.full_episodes(),
            started: started.sum(),
        }
    }
}

fn figures<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    before: &mut Before,
    mut seen: Period,
) -> Figures {
    let now = Before::of(core);
    let then = std::mem::replace(before, Before { ..now });
    let (workers, bounds) = {
        let roster = core.membership.roster.lock();
        (roster.len(), roster.bounds())
    };
    // A pool that sizes itself does so each second.
    let most_workers =
        if core.settings.config.size.autoscale.is_some() { workers } else { *bounds.end() };
    Figures {
        most_workers,
        inbox_full: now.inbox_full - then.inbox_full,
        started: now.started.saturating_sub(then.started),
        p99: core.telemetry.measured.take_residence().or_else(|| core.oldest()),
        ..seen.end(now.at, now.at.saturating_sub(then.at), core.inbox(), workers)
    }
}

/// Keeps the advice, and emits it if it differs from the last one. The first advice is no news if
/// the pool is fine. False if the pool has another advisor by now.
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
    let is_news = match before {
        Some(before) => !before.says_as(advice),
        None => advice.finding != Finding::Fine,
    };
    if is_news {
        core.tell(PoolEvent::Advised { advice: Box::new(*advice) });
    }
    true
}

/// If the size of the pool has been changed in between and leaves no room for this, the
/// next period says so.
fn carry_out<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    figures: &Figures,
    change: Proposal,
) {
    let (outcomes, _) = mpsc::unbounded_channel();
    let bound = |to| core.set_inbox(figures.inbox.with(to), ResizeReason::Advised).map(drop);
    let hire = |more| core.hire(more, ResizeReason::Advised, &outcomes).map(drop);
    let done = [
        change.inbox.map(|inbox| bound(inbox.to)),
        change.workers.map(|workers| hire(workers.to - workers.from)),
    ];
    for error in done.into_iter().flatten().filter_map(Result::err) {
        if error != AdminError::NotRunning {
            tracing::debug!(pool = &*core.settings.config.name, %error, "somebody else has changed it");
        }
    }
}
