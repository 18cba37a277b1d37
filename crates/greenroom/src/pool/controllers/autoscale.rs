//! The task that observes a pool each second, asks its scaler, and carries out the decision.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use super::ends_by;
use crate::{
    Actor,
    control::autoscale::{
        Autoscaler, Decision, Sample,
        looks::{LOOK, Looks},
    },
    pool::{AdminError, core::Core, worker::task_guard::TaskGuard},
    pool_events::ResizeReason,
};

/// Looks after a pool that is set up to.
pub(crate) fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Arc<Core<A, K>>) {
    if let Some(Ok(scaler)) =
        core.settings.config.size.autoscale.as_deref().copied().map(Autoscaler::new)
    {
        core.env.spawn_boxed(run(TaskGuard::new(core), scaler));
    }
}

/// Runs until the pool has ended.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: TaskGuard<A, K>,
    mut scaler: Autoscaler,
) {
    let mut looks = Looks::default();
    scaler.decide(&looks.complete(totals(&core)));
    while !ends_by(&core.lifecycle, Instant::now() + LOOK).await {
        looks.add(core.membership.busy(), core.membership.size());
        if looks.are_enough()
            && let Some(decision) = scaler.decide(&looks.complete(totals(&core)))
        {
            carry_out(&core, &decision);
        }
    }
}

/// A sample in which `handled` counts all attempts so far.
fn totals<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Sample {
    let waiting = core.telemetry.counters.waiting.load(Ordering::Relaxed);
    Sample {
        at: Duration::from_nanos(core.telemetry.coarse.real()),
        queued: core.depth().saturating_sub(waiting),
        oldest: core.oldest().unwrap_or_default(),
        workers: core.membership.size(),
        handled: core.membership.ended(),
        ..Sample::default()
    }
}

/// If the size has been changed in between and leaves no room for this, the next sample says so.
fn carry_out<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
    decision: &Decision,
) {
    let (outcomes, _) = mpsc::unbounded_channel();
    let why = ResizeReason::Autoscaled(decision.reason);
    let done = match decision.to.checked_sub(decision.from) {
        Some(more) => core.hire(more, why, &outcomes),
        None => core.dismiss(decision.from - decision.to, why, &outcomes),
    };
    if let Err(error @ AdminError::OutOfBounds { .. }) = done {
        tracing::debug!(pool = &*core.settings.config.name, %error, "somebody else has resized it");
    }
}
