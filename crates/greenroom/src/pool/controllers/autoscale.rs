//! The task that observes a pool each second, asks its scaler, and carries out the decision.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use super::ends_by;
use crate::{
    control::autoscale::{
        Autoscaler, Decision, Sample,
        looks::{LOOK, Looks},
    },
    pool::{
        AdminError,
        frame::{
            AnyCore,
            members::{dismiss, hire, members},
            task_guard::TaskGuard,
        },
    },
    pool_events::ResizeReason,
};

/// Starts the task, if the pool is autoscaled.
pub(crate) fn begin(pool: &Arc<dyn AnyCore>) {
    if let Some(Ok(scaler)) =
        pool.frame().config.size.autoscale.as_deref().copied().map(Autoscaler::new)
    {
        pool.frame().env.spawn(Box::pin(run(TaskGuard::new(pool), scaler)));
    }
}

/// Runs until the pool has ended.
async fn run(pool: TaskGuard, mut scaler: Autoscaler) {
    let mut looks = Looks::default();
    scaler.decide(&looks.complete(totals(&**pool)));
    while !ends_by(&pool.frame().lifecycle, Instant::now() + LOOK).await {
        looks.add(pool.frame().membership.busy(), pool.frame().membership.size());
        if looks.are_enough()
            && let Some(decision) = scaler.decide(&looks.complete(totals(&**pool)))
        {
            carry_out(&pool, &decision);
        }
    }
}

/// A sample in which `handled` counts all attempts so far.
fn totals(pool: &dyn AnyCore) -> Sample {
    let waiting = pool.frame().telemetry.counters.waiting.load(Ordering::Relaxed);
    Sample {
        at: Duration::from_nanos(pool.frame().telemetry.coarse.real()),
        queued: pool.depth().saturating_sub(waiting),
        oldest: pool.oldest().unwrap_or_default(),
        workers: pool.frame().membership.size(),
        handled: pool.frame().membership.ended(),
        ..Sample::default()
    }
}

/// If the size has been changed in between and leaves no room for this, the next sample says so.
fn carry_out(pool: &Arc<dyn AnyCore>, decision: &Decision) {
    let (outcomes, _) = mpsc::unbounded_channel();
    let why = ResizeReason::Autoscaled(decision.reason);
    let done = members(&**pool).and_then(|list| match decision.to.checked_sub(decision.from) {
        Some(more) => hire(pool, list, more, why, &outcomes),
        None => dismiss(pool, list, decision.from - decision.to, why, &outcomes),
    });
    if let Err(error @ AdminError::OutOfBounds { .. }) = done {
        tracing::debug!(pool = &*pool.frame().config.name, %error, "another caller has resized it");
    }
}
