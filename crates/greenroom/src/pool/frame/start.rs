//! Starting a pool that has been set up.

use std::sync::Arc;

use greenroom_queue::watchdog::Watched;
use tokio::sync::mpsc;

use super::{
    AnyCore,
    end::end,
    exit::end_unheard,
    gate::{close, close_if_deserted},
    members::{give_keys_to_others, start_in},
    task_guard::start_clock,
};
use crate::{
    ExitReason, PoolEvent, SpawnError,
    on_drop::OnDrop,
    pool::{
        admin::change::SlotOutcome,
        controllers::{advisor, autoscale},
        membership::slot_state::Status,
    },
};

/// Starts the initial workers of the pool, and returns when one of them runs.
pub(crate) async fn start_all(pool: &Arc<dyn AnyCore>) -> Result<(), SpawnError> {
    let slots: Vec<usize> = (0..pool.frame().config.size.workers).collect();
    for slot in &slots {
        pool.frame().membership.slots.at(*slot).details.lock().status = Status::Starting;
    }
    start(pool, &slots).await
}

/// Starts a worker in each of these slots, and returns when one of them runs.
pub(crate) async fn start(pool: &Arc<dyn AnyCore>, slots: &[usize]) -> Result<(), SpawnError> {
    let (outcomes, mut told) = mpsc::unbounded_channel();
    let guard = abort_on_drop(pool);
    start_in(pool, slots, &outcomes);
    drop(outcomes);
    let (mut reason, mut failed) = (None, Vec::new());
    loop {
        match told.recv().await {
            Some(SlotOutcome::StartFailed(slot, error)) => {
                reason = reason.or(Some(error));
                failed.push(slot);
            }
            None if !slots.is_empty() => break,
            _ => {
                if slots.is_empty() || pool.frame().needs_clock {
                    start_clock(pool);
                }
                autoscale::begin(pool);
                advisor::begin(pool);
                watch(pool);
                close_if_deserted(&**pool);
                if pool.frame().has_policy {
                    // A policy depends on the order of workers, so all of them get the chance to
                    // start first.
                    while let Some(outcome) = told.recv().await {
                        if let SlotOutcome::StartFailed(slot, _) = outcome {
                            failed.push(slot);
                        }
                    }
                    give_keys_to_others(&**pool, &failed);
                }
                guard.defuse();
                pool.frame().notify(PoolEvent::Started { workers: pool.frame().membership.size() });
                return Ok(());
            }
        }
    }
    let reason = reason.unwrap_or_else(|| "the runtime is shutting down".to_owned());
    pool.frame().lifecycle.ends_because(ExitReason::failed(reason.clone()));
    Err(SpawnError::NoWorkerStarted { pool: pool.frame().config.name.to_string(), reason })
}

/// From now on the watchdog looks at this pool while it is busy.
pub(crate) fn watch(pool: &Arc<dyn AnyCore>) {
    if pool.frame().telemetry.coarse.is_watched() {
        let watched: Arc<dyn Watched> = pool.clone();
        pool.frame().clock.watchdog.connect(&watched);
    }
}

/// Leaves nothing running when a spawn fails or is cancelled.
pub(crate) fn abort_on_drop(pool: &Arc<dyn AnyCore>) -> OnDrop<impl FnMut()> {
    OnDrop::new(move || {
        close(&**pool);
        end(&**pool);
        end_unheard(pool, ExitReason::Killed);
        pool.frame().membership.abort_all();
    })
}
