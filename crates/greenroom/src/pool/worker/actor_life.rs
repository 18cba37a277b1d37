//! The actor of a slot: the part of its life that depends on its type.

use std::any::Any;

use greenroom_queue::discard::discard;

use super::{
    any_life::AnyLife, factory::AnyActor, in_flight::InFlight, panicked::settle_panicked,
    start::hook_failed,
};
use crate::{Actor, Context, ExitReason, address::vtable::BoxFuture, pool::pool_payload::Key};

/// The state of a worker's task. The field order matters when it is dropped: messages in flight are
/// settled while the actor still exists.
pub(super) struct ActorLife<A: Actor, K: Key> {
    pub(super) in_flight: InFlight<A, K>,
    /// Present once the actor is built.
    pub(super) actor: Option<A>,
    pub(super) cx: Context<A>,
}

impl<A: Actor, K: Key> AnyLife for ActorLife<A, K> {
    fn build(&self) -> BoxFuture<'static, Result<AnyActor, String>> {
        let worker = &self.in_flight.worker;
        worker.core.settings.factory.build(worker.slot)
    }

    fn take_in(&mut self, actor: AnyActor) {
        self.actor = actor.downcast().ok().map(|actor| *actor);
    }

    fn started(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let Some(actor) = &mut self.actor else { return Ok(()) };
            actor.started(&mut self.cx).await.map_err(hook_failed)
        })
    }

    fn restarting<'a>(&'a mut self, reason: &'a ExitReason) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(actor) = &mut self.actor {
                actor.restarting(reason).await;
            }
        })
    }

    fn stopped<'a>(&'a mut self, reason: &'a ExitReason) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(actor) = &mut self.actor {
                actor.stopped(reason).await;
            }
        })
    }

    fn drop_actor(&mut self) {
        discard(self.actor.take());
        // Requests of the dropped actor do not apply to the next one.
        self.cx.take_exit();
    }

    fn begins_again(&mut self) -> u32 {
        self.cx.restarted();
        self.cx.restarts()
    }

    fn rest(&mut self) {
        self.in_flight.worker.give_up_place();
        self.in_flight.worker.rest();
    }

    fn settle_panic(&mut self, panic: Box<dyn Any + Send>) -> ExitReason {
        settle_panicked(&mut self.in_flight, &self.cx.name(), panic)
    }
}
