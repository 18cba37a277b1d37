//! A source of several partitions that a test feeds, takes partitions away from, and looks into.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use greenroom_bus::{
    BoxFuture,
    event::Event,
    settlement::Settled,
    source::{Partition, Pull, Receipts, Source, SourceError, Taken},
};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The test's side. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Broker(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// What is to be given of each.
    waiting: BTreeMap<Partition, VecDeque<Event>>,
    /// Events given of each.
    given: BTreeMap<Partition, u64>,
    paused: Vec<Partition>,
    revoking: Vec<Partition>,
    revoked: Vec<Partition>,
    /// How events were settled, by partition and position.
    settled: BTreeMap<(Partition, u64), Settled>,
    ended: bool,
    /// It gives what it has, paused or not.
    heeds_nothing: bool,
}

impl Broker {
    pub(crate) fn source(&self) -> Box<dyn Source> {
        Box::new(Partitioned { broker: self.clone(), last: Partition::ONLY })
    }

    /// Gives these events of a partition, where it is not paused.
    pub(crate) fn give(&self, partition: u32, events: impl IntoIterator<Item = Event>) {
        self.change(|state| {
            state.waiting.entry(Partition(partition)).or_default().extend(events);
        });
    }

    /// Takes a partition away, with what was not given of it.
    pub(crate) fn revoke(&self, partition: u32) {
        self.change(|state| {
            state.waiting.remove(&Partition(partition));
            state.revoking.push(Partition(partition));
        });
    }

    /// From here on it gives also of partitions that are paused.
    pub(crate) fn heed_nothing(&self) {
        self.change(|state| state.heeds_nothing = true);
    }

    /// Ends once all is given.
    pub(crate) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    pub(crate) fn given(&self, partition: u32) -> u64 {
        self.0.state.lock().given.get(&Partition(partition)).copied().unwrap_or_default()
    }

    pub(crate) fn paused(&self) -> Vec<u32> {
        self.0.state.lock().paused.iter().map(|partition| partition.0).collect()
    }

    /// Those of which the engine has said that nothing is started any more.
    pub(crate) fn revoked(&self) -> Vec<u32> {
        self.0.state.lock().revoked.iter().map(|partition| partition.0).collect()
    }

    /// How the events of a partition were settled, by position.
    pub(crate) fn settled(&self, partition: u32) -> Vec<(u64, Settled)> {
        let state = self.0.state.lock();
        let of_it = state.settled.iter().filter(|((of, _), _)| of.0 == partition);
        of_it.map(|((_, position), how)| (*position, *how)).collect()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock());
        self.0.changed.notify_one();
    }
}

struct Partitioned {
    broker: Broker,
    last: Partition,
}

/// Positions of a partition rise over all its assignments: what is given again is given as new.
struct Heard(Broker, Partition);

impl Receipts for Heard {
    fn settled(&self, position: u64, how: Settled) {
        let before = self.0.0.state.lock().settled.insert((self.1, position), how);
        assert_eq!(before, None, "{position} of {} was settled twice", self.1);
    }
}

impl Partitioned {
    /// A few of a partition that is not paused; the one after the last first.
    fn next(&mut self, into: &mut Vec<Taken>) -> Option<Pull> {
        let mut state = self.broker.0.state.lock();
        if !state.revoking.is_empty() {
            return Some(Pull::Revoke);
        }
        let State { waiting, paused, given, ended, heeds_nothing, .. } = &mut *state;
        let open = |partition: &&Partition| {
            (*heeds_nothing || !paused.contains(partition)) && !waiting[partition].is_empty()
        };
        let mut behind = waiting.keys().filter(|partition| **partition > self.last).filter(open);
        let next = behind.next().or_else(|| waiting.keys().find(open)).copied();
        let Some(next) = next else {
            let is_empty = waiting.values().all(VecDeque::is_empty);
            return (*ended && is_empty).then_some(Pull::End);
        };
        self.last = next;
        let events = waiting.get_mut(&next).into_iter().flat_map(|events| {
            let few = events.len().min(7);
            events.drain(..few)
        });
        let position = given.entry(next).or_default();
        for event in events {
            *position += 1;
            into.push(Taken { position: *position, event: Ok(event) });
        }
        Some(Pull::More)
    }
}

impl Source for Partitioned {
    fn describe(&self) -> String {
        "broker".to_owned()
    }

    fn pull<'a>(
        &'a mut self,
        into: &'a mut Vec<Taken>,
    ) -> BoxFuture<'a, Result<Pull, SourceError>> {
        Box::pin(async move {
            loop {
                if let Some(pull) = self.next(into) {
                    return Ok(pull);
                }
                self.broker.0.changed.notified().await;
            }
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        Some(Arc::new(Heard(self.broker.clone(), self.last)))
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.last
    }

    fn set_paused(&mut self, paused: &[Partition]) {
        self.broker.0.state.lock().paused = paused.to_vec();
    }

    fn revoking(&mut self) -> Vec<Partition> {
        std::mem::take(&mut self.broker.0.state.lock().revoking)
    }

    fn revoked(&mut self, partition: Partition) {
        self.broker.0.state.lock().revoked.push(partition);
    }
}
