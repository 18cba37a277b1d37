//! How the source stands, by what the drivers of its partitions see (O17).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::source::{InputState, Lease, Partition, StatusCell};
use parking_lot::Mutex;

use crate::connection::Connection;

/// What the drivers of a source share.
pub(super) struct Statuses {
    pub(super) cell: Arc<StatusCell>,
    /// What it reads, where nothing is wrong.
    reads: String,
    /// Partitions whose consumer cannot be had.
    lost: Mutex<BTreeSet<Partition>>,
    /// Until when handlers may begin what was given.
    pub(super) lease: Arc<Lease>,
    /// Until when each partition is this process's own, of those that it reads by a lease.
    leased: Mutex<BTreeMap<Partition, Instant>>,
}

/// Longer than any process runs: nothing is known that would end before.
const FOR_GOOD: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Statuses {
    /// Of a source that is about to connect.
    pub(super) fn new(name: &str, server: &str, reads: String) -> Arc<Self> {
        let cell = StatusCell::new(name, server);
        let (lease, leased) = (Lease::new(Instant::now()), Mutex::default());
        Arc::new(Self { cell, reads, lost: Mutex::default(), lease, leased })
    }

    /// This partition is this process's own until then. Handlers begin what was given until the
    /// first of these moments.
    pub(super) fn leased_until(&self, partition: Partition, until: Instant) {
        self.leased.lock().insert(partition, until);
        self.extend();
    }

    /// Another process has this partition.
    pub(super) fn not_leased(&self, partition: Partition) {
        self.leased.lock().remove(&partition);
        self.extend();
    }

    /// No lease can be kept, so none can run out.
    pub(super) fn without_lease(&self, why: String) {
        self.cell.remark(why);
        self.lease.extend(Instant::now() + FOR_GOOD);
    }

    fn extend(&self) {
        let first = self.leased.lock().values().min().copied();
        first.into_iter().for_each(|first| self.lease.extend(first));
    }

    /// The driver of this partition sees this.
    pub(super) fn show(&self, connection: &Connection, partition: Partition, is_lost: bool) {
        let any_lost = {
            let mut lost = self.lost.lock();
            match is_lost {
                true => lost.insert(partition),
                false => lost.remove(&partition),
            };
            !lost.is_empty()
        };
        let reads = &self.reads;
        let (state, detail) = match connection.is_up() {
            true if any_lost => {
                let why = "the consumer or its stream is gone, or cannot be had: it is looked for";
                (InputState::Waiting, format!("{reads}: {why}"))
            }
            true => (InputState::Assigned, reads.clone()),
            false if connection.is_refused() => (InputState::Refused, connection.why_down()),
            false => (InputState::Lost, connection.why_down()),
        };
        self.cell.set(state, detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n03_handlers_begin_until_the_first_lease_of_an_input_ends() {
        let statuses = Statuses::new("nats", "", String::new());
        let later = |seconds| Instant::now() + Duration::from_secs(seconds);
        assert!(!statuses.lease.is_held(), "nothing is its own yet");
        statuses.leased_until(Partition(1), Instant::now());
        statuses.leased_until(Partition(2), later(600));
        assert!(!statuses.lease.is_held(), "one of them may be another process's by now");
        statuses.not_leased(Partition(1));
        assert!(statuses.lease.is_held(), "and it is: the other one goes on");
        let statuses = Statuses::new("nats", "", String::new());
        statuses.without_lease("there is no bucket".to_owned());
        assert!(statuses.lease.is_held());
        assert_eq!(statuses.cell.get().remark.as_deref(), Some("there is no bucket"));
    }
}
