//! The workers of a pool: the message in hand of each, and since when.

use std::{collections::HashMap, sync::Arc};

use greenroom::{
    inspect::WorkerStatus,
    stats::{LatencySnapshot, WorkerStats},
};

use super::PoolControl;
use crate::event::Event;

/// The state of one worker of a pool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerView {
    /// Its figures; counters continue across restarts.
    pub stats: WorkerStats,
    /// Its key in hand, if its pool keeps order and the handler waits for something; if the handler
    /// computes or blocks its thread, only if the key is among the hottest.
    pub key: Option<KeyInHand>,
    /// The event, where its handler waits for something.
    pub event: Option<Event>,
}

/// The key of an event that is in hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInHand {
    /// The key.
    pub key: Arc<str>,
    /// The handler by which it is ordered.
    pub handler: &'static str,
    /// The input that the event comes from.
    pub input: Arc<str>,
}

impl WorkerView {
    /// True if a worker is in the slot, or is being started there.
    pub fn is_live(&self) -> bool {
        matches!(self.stats.status, Some(WorkerStatus::Live | WorkerStatus::Starting))
    }
}

impl PoolControl {
    /// The state of each worker, by slot; vacant slots are left out. Looks at every key that is in
    /// hand or waits.
    pub fn workers(&self) -> Vec<WorkerView> {
        let mut keys = self.keys_in_hand();
        let stats = self.worker_stats().into_iter().filter(|stats| stats.status.is_some());
        let view = |stats: WorkerStats| {
            // A worker that has finished its message in between has no key either.
            let key = keys.remove(&stats.slot).filter(|_| stats.busy_for.is_some());
            let event = self.settings().in_hand.event(stats.slot);
            WorkerView { key, event, stats }
        };
        stats.map(view).collect()
    }

    /// The figures of each slot, including those whose worker is gone. Without keys: quicker than
    /// [`workers`](Self::workers), however many there are.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        self.managed().admin.worker_stats()
    }

    /// How long events waited and were in hand so far; two of these tell it of the time between
    /// them.
    pub fn latency_snapshot(&self) -> LatencySnapshot {
        self.managed().admin.latency_snapshot()
    }

    fn keys_in_hand(&self) -> HashMap<usize, KeyInHand> {
        let shared = &self.control.shared;
        let Some(keys) = &self.managed().keys else { return HashMap::new() };
        let names = shared.inputs.names();
        let named = keys.in_hand().into_iter().filter_map(|in_hand| {
            let line = in_hand.key;
            let handler = shared.process.handlers[line.handler as usize].name.as_str();
            let input = names.get(line.input as usize)?.clone();
            Some((in_hand.worker, KeyInHand { key: line.key.clone(), handler, input }))
        });
        named.collect()
    }
}
