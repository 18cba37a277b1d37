//! The actor of a slot: what of its life depends on its type.

use std::any::Any;

use greenroom_queue::discard::discard;

use super::{
    any_life::AnyLife, factory::AnyActor, in_flight::InFlight, panicked::settle_panicked,
    start::hook_failed,
};
use crate::{Actor, Context, ExitReason, address::vtable::BoxFuture, pool::pool_payload::Key};

/// What a worker's task has. It is dropped in this order: what is in flight is settled while the
/// actor is there still.
pub(super) struct ActorLife<A: Actor, K: Key> {
    pub(super) in_flight: InFlight<A, K>,
    /// Present once it is built.
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
        // What it has asked for was meant for it.
        self.cx.take_exit();
    }

    fn begins_again(&mut self) -> u32 {
        self.cx.restarted();
        self.cx.restarts()
    }

    fn rest(&mut self) {
        self.in_flight.give_up_place();
        self.in_flight.rest();
    }

    fn settle_panic(&mut self, panic: Box<dyn Any + Send>) -> ExitReason {
        settle_panicked(&mut self.in_flight, &self.cx.name(), panic)
    }
}
