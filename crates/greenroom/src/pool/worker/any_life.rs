//! An actor in its slot, for code that knows neither its type nor its messages.

use std::any::Any;

use super::factory::AnyActor;
use crate::{
    ExitReason,
    address::vtable::BoxFuture,
    pool::frame::{AnyCore, identity},
};

/// An actor in its slot, for code that knows neither its type nor its messages. Hooks are called
/// when their futures are polled, and not before: their callers catch panics there.
pub(super) trait AnyLife: Send {
    /// Builds an actor.
    fn build(&self) -> BoxFuture<'static, Result<AnyActor, String>>;

    /// Takes in the actor of the slot.
    fn take_in(&mut self, actor: AnyActor);

    /// Runs the hook. An error is the reason why the actor does not start.
    fn started(&mut self) -> BoxFuture<'_, Result<(), String>>;

    /// Runs the hook.
    fn restarting<'a>(&'a mut self, reason: &'a ExitReason) -> BoxFuture<'a, ()>;

    /// Runs the hook.
    fn stopped<'a>(&'a mut self, reason: &'a ExitReason) -> BoxFuture<'a, ()>;

    /// Drops the actor, and clears its requests.
    fn drop_actor(&mut self);

    /// The next actor is built after an exit. Returns how many there have been.
    fn begins_again(&mut self) -> u32;

    /// Nothing is in hand: gives up the worker's place.
    fn rest(&mut self);

    /// Settles the messages in hand when the actor panicked, and lets others continue with the
    /// rest.
    fn settle_panic(&mut self, panic: Box<dyn Any + Send>) -> ExitReason;
}

/// The owner of the hooks: the pool and the slot.
pub(super) fn own(pool: &dyn AnyCore, slot: usize) -> Option<(usize, usize)> {
    Some((identity(pool), slot))
}
