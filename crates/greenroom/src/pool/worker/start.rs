//! Starting workers, the first time and again.

use std::{
    any::Any,
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use greenroom_queue::discard::discard;

use super::catch_unwind::CatchUnwind;
use crate::{
    Actor, Context,
    pool::{
        admin::change::{Outcomes, SlotOutcome},
        clock::timed::later,
        core::Core,
        panic_message::panic_message,
    },
};

/// Reports the result of the first start, and tries again if it failed.
pub(super) async fn first_start<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &mut Context<A>,
    outcomes: Outcomes,
) -> Option<A> {
    let first = tokio::select! {
        biased;
        () = core.over(slot) => return None,
        first = start(core, slot, cx) => first,
    };
    match first {
        Ok(actor) => {
            core.notify_started(slot);
            // Before the report: the spawner of the pool finds its worker there.
            core.has_started(slot);
            let _ = outcomes.send(SlotOutcome::Started(slot));
            Some(actor)
        }
        Err(why) => {
            core.start_failed(slot, why.clone());
            let _ = outcomes.send(SlotOutcome::StartFailed(slot, why));
            drop(outcomes);
            let actor = start_again(core, slot, cx, 1).await?;
            core.notify_started(slot);
            Some(actor)
        }
    }
}

async fn start<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &mut Context<A>,
) -> Result<A, String> {
    let mut actor = core.settings.factory.build(slot).await?;
    let own = Some((core.identity(), slot));
    let reason = match CatchUnwind(Box::pin(actor.started(cx)), own).await {
        Ok(Ok(())) => return Ok(actor),
        Ok(Err(error)) => start_failed(error),
        Err(panic) => {
            let reason = format!("the `started` hook panicked: {}", panic_message(&*panic));
            discard(panic);
            reason
        }
    };
    discard(actor);
    cx.take_exit();
    Err(reason)
}

/// The error of an actor may be of any type; it is quoted if it is text or an error in a box that
/// can say what it is, and named otherwise.
fn start_failed<E: 'static>(error: E) -> String {
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

/// What an error says of itself. That is user code: were its panic to end the worker's task, nobody
/// would try again (P20).
fn quoted(error: &(dyn std::error::Error + Send + Sync)) -> Option<String> {
    catch_unwind(AssertUnwindSafe(|| error.to_string())).map_err(discard).ok()
}

/// Tries until the factory works again, however long that takes: a slot is never lost (P20). `None`
/// once the pool has ended; a start that takes long then goes on unattended.
pub(super) async fn start_again<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    cx: &mut Context<A>,
    mut failures: u32,
) -> Option<A> {
    let backoff = core.settings.config.failure.restarts.backoff;
    loop {
        if failures > 0 {
            pause(core, slot, backoff.wait(failures, core.env.chance())).await;
        }
        let started = tokio::select! {
            biased;
            () = core.over(slot) => return None,
            started = start(core, slot, cx) => started,
        };
        match started {
            Ok(actor) => return Some(actor),
            Err(error) => core.start_failed(slot, error),
        }
        failures = failures.saturating_add(1);
    }
}

/// Waits for this long, or until the pool has ended or the worker is to leave.
pub(super) async fn pause<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    slot: usize,
    wait: Duration,
) {
    let _ = tokio::time::timeout_at(later(wait), core.over(slot)).await;
}
