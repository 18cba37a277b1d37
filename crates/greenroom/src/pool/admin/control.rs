//! What a pool can be asked and told by code that knows its actors, but not the type of its keys.

use std::{any::Any, future::Future, pin::Pin, sync::Arc, time::Duration};

use super::{change::Change, error::AdminError};
use crate::{
    Actor, DeadLetters,
    address::Address,
    control::advisor::{Advice, Advisor},
    inspect::{Inspection, Items},
    pool::{
        Worker,
        limits::Rate,
        membership::not_ready::NotReady,
        stats::{Latencies, LatencySnapshot, PoolStats, WorkerStats},
        stop::{Stop, StopReport},
        worker::in_flight::DeliveryOf,
    },
};

pub(crate) type ControlFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a pool can be told, whatever its keys are.
pub(crate) trait Control<A: Actor>: Send + Sync {
    fn stats(&self) -> PoolStats;
    fn depth(&self) -> u64;
    fn latencies(&self) -> Latencies;
    fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize;
    fn advice(&self) -> Option<Advice>;
    fn worker_stats(&self) -> Vec<WorkerStats>;
    fn latency_snapshot(&self) -> LatencySnapshot;
    fn inspect(&self, wanted: &Items) -> Inspection;
    fn dead_letters(&self) -> DeadLetters<A::Message, A::Error>;
    fn address(self: Arc<Self>) -> Address<A::Message, A::Reply, A::Error>;
    /// The core, with the type of its keys.
    fn typed(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// The type of its keys, if it has any.
    fn key_type(&self) -> Option<&'static str>;
    fn workers(self: Arc<Self>) -> Vec<Worker<A::Message, A::Reply, A::Error>>;
    fn add(self: Arc<Self>, workers: usize) -> Result<Change, AdminError>;
    fn remove(self: Arc<Self>, workers: usize) -> Result<Change, AdminError>;
    fn remove_worker(self: Arc<Self>, slot: usize) -> Result<Change, AdminError>;
    fn resize(self: Arc<Self>, workers: usize) -> Result<Change, AdminError>;
    fn enable(self: Arc<Self>, slot: usize) -> Result<Change, AdminError>;
    fn set_capacity(&self, messages: usize) -> Result<(), AdminError>;
    fn set_advisor(self: Arc<Self>, advisor: Option<Advisor>) -> Result<(), AdminError>;
    fn set_rate(&self, rate: Option<Rate>) -> Result<(), AdminError>;
    fn set_concurrency(&self, messages: Option<usize>) -> Result<(), AdminError>;
    fn ready(
        self: Arc<Self>,
        workers: usize,
        within: Duration,
    ) -> ControlFuture<'static, Result<(), NotReady>>;
    fn stop(self: Arc<Self>, how: Stop) -> ControlFuture<'static, StopReport<A::Message>>;
    fn stop_keeping_calls(
        self: Arc<Self>,
        how: Stop,
    ) -> ControlFuture<'static, StopReport<DeliveryOf<A>>>;
}
