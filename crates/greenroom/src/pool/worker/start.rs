//! Starting workers, for the first time and again.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use greenroom_queue::discard::discard;

use super::{
    any_life::{AnyLife, own},
    catch_unwind::CatchUnwind,
};
use crate::pool::{
    admin::change::{Outcomes, SlotOutcome},
    clock::timed::later,
    frame::{
        AnyCore,
        end::over,
        members::{has_started, notify_started, start_failed},
    },
    panic_message::panic_message,
};

/// Reports the result of the first start, and retries if it failed. Returns false once the pool has
/// ended.
pub(super) async fn first_start(
    pool: &dyn AnyCore,
    slot: usize,
    life: &mut dyn AnyLife,
    outcomes: Outcomes,
) -> bool {
    let first = tokio::select! {
        biased;
        () = over(pool, slot) => return false,
        first = start(pool, slot, life) => first,
    };
    match first {
        Ok(()) => {
            notify_started(pool, slot);
            // Before the report: the spawner of the pool expects its worker there.
            has_started(pool, slot);
            let _ = outcomes.send(SlotOutcome::Started(slot));
            true
        }
        Err(why) => {
            start_failed(pool, slot, why.clone());
            let _ = outcomes.send(SlotOutcome::StartFailed(slot, why));
            drop(outcomes);
            let has_started = start_again(pool, slot, life, 1).await;
            if has_started {
                notify_started(pool, slot);
            }
            has_started
        }
    }
}

async fn start(pool: &dyn AnyCore, slot: usize, life: &mut dyn AnyLife) -> Result<(), String> {
    let actor = life.build().await?;
    life.take_in(actor);
    let reason = match CatchUnwind(life.started(), own(pool, slot)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(reason)) => reason,
        Err(panic) => {
            let reason = format!("the `started` hook panicked: {}", panic_message(&*panic));
            discard(panic);
            reason
        }
    };
    life.drop_actor();
    Err(reason)
}

/// The error of an actor may be of any type. It is quoted if it is text or a boxed error that can
/// describe itself, and named by its type otherwise.
pub(super) fn hook_failed<E: 'static>(error: E) -> String {
    let any: &dyn Any = &error;
    let text = any.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| any.downcast_ref::<&str>().copied()).map(str::to_owned);
    let text = text.or_else(|| {
        let boxed = any.downcast_ref::<Box<dyn std::error::Error + Send + Sync>>();
        boxed.and_then(|boxed| quoted(&**boxed))
    });
    let text = text.unwrap_or_else(|| std::any::type_name::<E>().to_owned());
    discard(error);
    format!("the `started` hook failed: {text}")
}

/// The error's own description. That is user code: if its panic ended the worker's task, nothing
/// would retry the start (P20).
fn quoted(error: &(dyn std::error::Error + Send + Sync)) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| error.to_string())).map_err(discard).ok()
}

/// Tries until the factory works again, however long that takes: a slot is never lost (P20).
/// Returns false once the pool has ended; a slow start then continues unattended.
pub(super) async fn start_again(
    pool: &dyn AnyCore,
    slot: usize,
    life: &mut dyn AnyLife,
    mut failures: u32,
) -> bool {
    let backoff = pool.frame().config.failure.restarts.backoff;
    loop {
        if failures > 0 {
            pause(pool, slot, backoff.wait(failures, pool.frame().env.chance.fraction())).await;
        }
        let started = tokio::select! {
            biased;
            () = over(pool, slot) => return false,
            started = start(pool, slot, life) => started,
        };
        match started {
            Ok(()) => return true,
            Err(error) => start_failed(pool, slot, error),
        }
        failures = failures.saturating_add(1);
    }
}

/// Waits for this long, or until the pool has ended or the worker is to leave.
pub(super) async fn pause(pool: &dyn AnyCore, slot: usize, wait: Duration) {
    let _ = tokio::time::timeout_at(later(wait), over(pool, slot)).await;
}
