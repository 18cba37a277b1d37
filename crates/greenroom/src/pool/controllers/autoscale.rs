//! The task that observes a pool each second, asks its scaler, and carries out the decision.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    Actor,
    control::autoscale::{Autoscaler, Decision, Sample},
    pool::{AdminError, core::Core, employed::Employed},
    pool_events::ResizeReason,
};

/// The time between two looks at how busy the workers are. A decision is made of ten looks, so that
/// a handler that takes part of a second counts for that part.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 10;

/// Observations between two samples.
#[derive(Default)]
struct Seen {
    looks: u32,
    /// The sum of the shares of workers that were busy.
    busy: f64,
    /// Attempts that had ended at the last sample.
    ended: u64,
}

/// Looks after a pool that is set up to.
pub(crate) fn begin<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Arc<Core<A, K>>) {
    if let Some(Ok(scaler)) =
        core.settings.config.size.autoscale.as_deref().copied().map(Autoscaler::new)
    {
        core.env.runtime.spawn(run(Employed::new(core), scaler));
    }
}

/// Runs until the pool has ended.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: Employed<A, K>,
    mut scaler: Autoscaler,
) {
    let mut seen = Seen::default();
    scaler.decide(&seen.sample(&core));
    while !is_over(&core, Instant::now() + LOOK).await {
        seen.look(&core);
        if seen.looks.is_multiple_of(LOOKS)
            && let Some(decision) = scaler.decide(&seen.sample(&core))
        {
            carry_out(&core, &decision);
        }
    }
}

/// Waits until the pool has ended (true), or this moment has come.
pub(super) async fn is_over<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    at: Instant,
) -> bool {
    loop {
        let over = core.lifecycle.over.notified();
        // Pairs with the store of `Core::end`, which notifies `over` next: either this load sees
        // the end, or `over` resolves. Loaded before `notified`, an end in between would be missed.
        if core.lifecycle.ended.load(Ordering::SeqCst) {
            return true;
        }
        if tokio::time::timeout_at(at, over).await.is_err() {
            // Pairs with nothing: after a stale `false` the caller looks at the pool once more, and
            // its next call sees the end.
            return core.lifecycle.ended.load(Ordering::SeqCst);
        }
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

impl Seen {
    fn look<A: Actor, K: Hash + Eq + Send + Sync + 'static>(&mut self, core: &Core<A, K>) {
        let size = core.membership.roster.lock().len();
        let busy = core.membership.seats.iter().filter(|seat| seat.is_busy()).count();
        self.looks += 1;
        self.busy += (busy as f64 / size.max(1) as f64).min(1.0);
    }

    fn sample<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
        &mut self,
        core: &Core<A, K>,
    ) -> Sample {
        let (started, busy) = core.membership.seats.iter().fold((0, 0), |(started, busy), seat| {
            let of_seat = seat.tally.started.load(Ordering::Relaxed);
            (started + of_seat, busy + u64::from(seat.is_busy()))
        });
        let ended = started.saturating_sub(busy);
        let before = std::mem::replace(self, Self { ended, ..Self::default() });
        Sample {
            at: Duration::from_nanos(core.telemetry.coarse.real()),
            queued: core
                .depth()
                .saturating_sub(core.telemetry.tally.waiting.load(Ordering::Relaxed)),
            oldest: core.oldest().unwrap_or_default(),
            busy: before.busy / f64::from(before.looks.max(1)),
            workers: core.membership.roster.lock().len(),
            handled: ended.saturating_sub(before.ended),
        }
    }
}
