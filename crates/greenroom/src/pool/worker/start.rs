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
    address::vtable::BoxFuture,
    pool::{
        admin::change::{Outcomes, SlotOutcome},
        clock::timed::later,
        core::Core,
        frame::{
            AnyCore,
            end::over,
            members::{has_started, notify_started, start_failed},
        },
        panic_message::panic_message,
    },
};

/// What builds the actor of a slot, whatever its type.
pub(super) trait Starter: Send {
    /// Has it built and started, or says why not.
    fn start(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

/// The actor of a slot, once it has started.
pub(super) struct Starting<'a, A: Actor, K> {
    pub(super) core: &'a Core<A, K>,
    pub(super) slot: usize,
    pub(super) cx: &'a mut Context<A>,
    pub(super) actor: Option<A>,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Starter for Starting<'_, A, K> {
    fn start(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            self.actor = Some(start(self.core, self.slot, self.cx).await?);
            Ok(())
        })
    }
}

/// Reports the result of the first start, and tries again if it failed, until the pool has ended.
pub(super) async fn first_start(
    pool: &dyn AnyCore,
    slot: usize,
    starter: &mut dyn Starter,
    outcomes: Outcomes,
) {
    let first = tokio::select! {
        biased;
        () = over(pool, slot) => return,
        first = starter.start() => first,
    };
    match first {
        Ok(()) => {
            notify_started(pool, slot);
            // Before the report: the spawner of the pool finds its worker there.
            has_started(pool, slot);
            let _ = outcomes.send(SlotOutcome::Started(slot));
        }
        Err(why) => {
            start_failed(pool, slot, why.clone());
            let _ = outcomes.send(SlotOutcome::StartFailed(slot, why));
            drop(outcomes);
            if start_again(pool, slot, starter, 1).await {
                notify_started(pool, slot);
            }
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
        Ok(Err(error)) => hook_failed(error),
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
fn hook_failed<E: 'static>(error: E) -> String {
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

/// Tries until the factory works again, however long that takes: a slot is never lost (P20). False
/// once the pool has ended; a start that takes long then goes on unattended.
pub(super) async fn start_again(
    pool: &dyn AnyCore,
    slot: usize,
    starter: &mut dyn Starter,
    mut failures: u32,
) -> bool {
    let backoff = pool.frame().config.failure.restarts.backoff;
    loop {
        if failures > 0 {
            pause(pool, slot, backoff.wait(failures, pool.frame().env.chance())).await;
        }
        let started = tokio::select! {
            biased;
            () = over(pool, slot) => return false,
            started = starter.start() => started,
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
