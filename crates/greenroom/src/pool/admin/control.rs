//! The interface of a pool for code that knows its actors, but not the type of its keys.

use std::{any::Any, future::Future, pin::Pin, sync::Arc};

use crate::{
    Actor, DeadLetters,
    address::Address,
    pool::{
        Worker,
        frame::AnyCore,
        shares::Share,
        stop::{Stop, StopReport},
        worker::in_flight::DeliveryOf,
    },
};

pub(crate) type ControlFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The operations of a pool, for any type of keys.
pub(crate) trait Control<A: Actor>: AnyCore {
    fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize;
    /// The share of a message. Runs user code.
    fn share_of(&self, message: &A::Message) -> Share;
    fn dead_letters(&self) -> DeadLetters<A::Message, A::Error>;
    fn address(self: Arc<Self>) -> Address<A::Message, A::Reply, A::Error>;
    /// The core, with the type of its keys.
    fn typed(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// The type of its keys, if it has any.
    fn key_type(&self) -> Option<&'static str>;
    fn workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>>;
    fn stop(self: Arc<Self>, how: Stop) -> ControlFuture<'static, StopReport<A::Message>>;
    fn stop_keeping_calls(
        self: Arc<Self>,
        how: Stop,
    ) -> ControlFuture<'static, StopReport<DeliveryOf<A>>>;
}
