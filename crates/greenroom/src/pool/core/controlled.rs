//! The control interface of a pool.

use std::{
    any::{Any, type_name},
    sync::Arc,
};

use super::{Core, Key, withdraw::withdraw, workers::show_workers};
use crate::{
    Actor, DeadLetters,
    address::Address,
    pool::{
        Worker,
        admin::control::{Control, ControlFuture},
        shares::Share,
        stop::{self, Stop, StopReport},
        worker::in_flight::DeliveryOf,
    },
};

impl<A: Actor, K: Key> Control<A> for Core<A, K> {
    fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize {
        withdraw(self, is_such)
    }

    fn share_of(&self, message: &A::Message) -> Share {
        let sharing = self.sharing.as_ref();
        sharing.map_or(Share::COMMON, |sharing| sharing.share_of(self, message))
    }

    fn dead_letters(&self) -> DeadLetters<A::Message, A::Error> {
        self.letters.clone()
    }

    fn address(self: Arc<Self>) -> Address<A::Message, A::Reply, A::Error> {
        Address::new(self)
    }

    fn typed(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn key_type(&self) -> Option<&'static str> {
        self.keyed().then(type_name::<K>)
    }

    fn workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        let mut workers = Vec::new();
        show_workers(&self, false, &mut |slot, vtable| workers.push(Worker::new(slot, vtable)));
        workers
    }

    fn stop(self: Arc<Self>, how: Stop) -> ControlFuture<'static, StopReport<A::Message>> {
        Box::pin(stop::run::stop(self, how))
    }

    fn stop_keeping_calls(
        self: Arc<Self>,
        how: Stop,
    ) -> ControlFuture<'static, StopReport<DeliveryOf<A>>> {
        Box::pin(stop::run::stop_keeping_calls(self, how))
    }
}
