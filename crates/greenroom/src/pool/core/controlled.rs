//! A pool as it is controlled.

use std::{
    any::{Any, type_name},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use tokio::sync::mpsc;

use super::Core;
use crate::{
    Actor, DeadLetters, SpawnError,
    address::Address,
    control::advisor::{Advice, Advisor},
    inspect::{Inspection, Items},
    pool::{
        Worker,
        admin::{
            change::Change,
            control::{Control, ControlFuture},
            error::AdminError,
        },
        controllers::advisor,
        limits::{Gate, Rate},
        membership::not_ready::NotReady,
        stats::{Latencies, LatencySnapshot, PoolStats, WorkerStats},
        stop::{self, Stop, StopReport},
        worker::in_flight::DeliveryOf,
    },
    pool_events::ResizeReason,
};

impl<A, K> Control<A> for Core<A, K>
where
    A: Actor,
    K: Hash + Eq + Send + Sync + 'static,
{
    fn stats(&self) -> PoolStats {
        self.figures()
    }

    fn depth(&self) -> u64 {
        Self::depth(self) as u64
    }

    fn latencies(&self) -> Latencies {
        self.telemetry.measured.latencies()
    }

    fn withdraw(&self, is_such: &mut dyn FnMut(&A::Message) -> bool) -> usize {
        Core::withdraw(self, is_such)
    }

    fn advice(&self) -> Option<Advice> {
        self.controllers.advising.lock().advice.as_deref().copied()
    }

    fn worker_stats(&self) -> Vec<WorkerStats> {
        self.worker_figures()
    }

    fn latency_snapshot(&self) -> LatencySnapshot {
        self.telemetry.measured.snapshot()
    }

    fn inspect(&self, wanted: &Items) -> Inspection {
        Core::inspect(self, wanted)
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
        Worker::all(Core::workers(&self, false))
    }

    fn add(self: Arc<Self>, workers: usize) -> Result<Change, AdminError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let (slots, size) = self.hire(workers, ResizeReason::Asked, &outcomes)?;
        Ok(Change::new(slots, Vec::new(), size, told, &self.env.runtime))
    }

    fn remove(self: Arc<Self>, workers: usize) -> Result<Change, AdminError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let (slots, size) = self.dismiss(workers, ResizeReason::Asked, &outcomes)?;
        Ok(Change::new(Vec::new(), slots, size, told, &self.env.runtime))
    }

    fn remove_worker(self: Arc<Self>, slot: usize) -> Result<Change, AdminError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let size = self.dismiss_one(slot, &outcomes)?;
        Ok(Change::new(Vec::new(), vec![slot], size, told, &self.env.runtime))
    }

    fn resize(self: Arc<Self>, workers: usize) -> Result<Change, AdminError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let (added, removed) = Core::resize(&self, workers, &outcomes)?;
        Ok(Change::new(added, removed, workers, told, &self.env.runtime))
    }

    fn enable(self: Arc<Self>, slot: usize) -> Result<Change, AdminError> {
        let (outcomes, told) = mpsc::unbounded_channel();
        let size = Core::enable(&self, slot, &outcomes)?;
        Ok(Change::new(vec![slot], Vec::new(), size, told, &self.env.runtime))
    }

    fn set_capacity(&self, messages: usize) -> Result<(), AdminError> {
        Core::set_capacity(self, messages)
    }

    fn set_advisor(self: Arc<Self>, advisor: Option<Advisor>) -> Result<(), AdminError> {
        self.lifecycle.check_running()?;
        let out_of_range = |error: SpawnError| AdminError::AdvisorOutOfRange(error.to_string());
        advisor::replace(&self, advisor).map_err(out_of_range)
    }

    fn set_rate(&self, rate: Option<Rate>) -> Result<(), AdminError> {
        set_limit(self, "rate", |gate| gate.set_rate(rate))
    }

    fn set_concurrency(&self, messages: Option<usize>) -> Result<(), AdminError> {
        set_limit(self, "fixed concurrency limit", |gate| gate.set_concurrency(messages))
    }

    fn ready(
        self: Arc<Self>,
        workers: usize,
        within: Duration,
    ) -> ControlFuture<'static, Result<(), NotReady>> {
        Box::pin(async move { Core::ready(&self, workers, within).await })
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

fn set_limit<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Core<A, K>,
    limit: &'static str,
    set: impl FnOnce(&Gate) -> Result<bool, SpawnError>,
) -> Result<(), AdminError> {
    let out_of_range = |error: SpawnError| AdminError::LimitOutOfRange(error.to_string());
    match core.settings.derived.gate.as_deref().map(set).transpose().map_err(out_of_range)? {
        Some(true) => Ok(()),
        _ => Err(AdminError::NoSuchLimit(limit)),
    }
}
