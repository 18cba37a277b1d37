//! The state that a broker's handle, its source and its commits share.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use greenroom_bus::source::{Lease, Partition, Taken, generator::zipf::Chance};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{log::Log, options::BrokerOptions};

/// The most events that a repeat goes back.
const BACK: usize = 8;

/// Shared by all of them.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) state: Mutex<State>,
    /// Notified of each change: publishing, rebalances, batches, settlements.
    pub(super) changed: Notify,
    /// How long sources hold their partitions.
    pub(super) lease: OnceLock<Arc<Lease>>,
}

impl Shared {
    pub(super) fn new(options: BrokerOptions) -> Self {
        let state = Mutex::new(State::new(options));
        Self(Arc::new(Inner { state, changed: Notify::new(), lease: OnceLock::new() }))
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.0.state.lock());
        self.0.changed.notify_waiters();
        changed
    }
}

pub(super) struct State {
    options: BrokerOptions,
    chance: Chance,
    pub(super) logs: BTreeMap<Partition, Log>,
    /// The number of the current source, from 1; 0 before there is one. Earlier sources are fenced.
    pub(super) member: u64,
    /// Whether that source is being pulled.
    pub(super) is_asked: bool,
    /// The partitions that the source was last told to pause.
    pub(super) paused: Vec<Partition>,
    /// The partitions that the engine has released, in that order.
    pub(super) revoked: Vec<Partition>,
    pub(super) has_ended: bool,
    pub(super) heeds_no_pause: bool,
    /// Calls of the engine that violate the contract of a source.
    pub(super) misuse: Vec<String>,
    /// The partition that was given last.
    last: Partition,
}

impl State {
    fn new(options: BrokerOptions) -> Self {
        Self {
            options,
            chance: Chance::new(options.seed),
            logs: BTreeMap::new(),
            member: 0,
            is_asked: false,
            paused: Vec::new(),
            revoked: Vec::new(),
            has_ended: false,
            heeds_no_pause: false,
            misuse: Vec::new(),
            last: Partition::ONLY,
        }
    }

    /// The log of this partition, which is assigned from the beginning.
    pub(super) fn log(&mut self, partition: Partition) -> &mut Log {
        let is_read = self.member > 0;
        self.logs.entry(partition).or_insert_with(|| {
            let mut log = Log::new(partition);
            if is_read {
                log.assign();
            }
            log
        })
    }

    /// The number of positions to skip before the next event.
    pub(super) fn gap(&mut self) -> u64 {
        let is_left_out = self.chance.unit() < self.options.gaps;
        u64::from(is_left_out) * (1 + self.chance.below(3) as u64)
    }

    /// True if a partition is to be taken away.
    pub(super) fn any_leaves(&self) -> bool {
        self.logs.values().any(Log::leaves)
    }

    /// Gives a few events of a partition that is not paused, starting after the last one. Returns
    /// the partition, if any.
    pub(super) fn give(&mut self, into: &mut Vec<Taken>) -> Option<Partition> {
        loop {
            let next = self.next()?;
            self.last = next;
            let repeats = self.chance.unit() < self.options.repeats;
            let back = if repeats { 1 + self.chance.below(BACK) } else { 0 };
            let batch = 1 + self.chance.below(self.options.batch.max(1));
            let log = self.logs.get_mut(&next)?;
            log.go_back(back);
            log.give(batch, into);
            // Repeated events may all be done or in hand.
            if !into.is_empty() {
                return Some(next);
            }
        }
    }

    fn next(&self) -> Option<Partition> {
        let is_open = |(partition, log): &(&Partition, &Log)| {
            log.has_more() && (self.heeds_no_pause || !self.paused.contains(partition))
        };
        let mut behind = self.logs.iter().filter(|(partition, _)| **partition > self.last);
        let next = behind.find(is_open).or_else(|| self.logs.iter().find(is_open));
        next.map(|(partition, _)| *partition)
    }

    /// True if nothing more will be given.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended && !self.logs.values().any(|log| log.is_wanted && log.has_more())
    }
}
