//! The state of the source, from the drivers of its partitions (O17).

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::source::{InputState, Lease, Partition, StatusCell};
use parking_lot::Mutex;

use crate::connection::Connection;

/// Shared by the drivers of a source.
pub(super) struct Statuses {
    pub(super) cell: Arc<StatusCell>,
    /// The streams that it reads, as shown without trouble.
    reads: String,
    /// Of each partition.
    who_reads: Mutex<BTreeMap<Partition, WhoReads>>,
    /// Until when handlers may begin their messages.
    pub(super) lease: Arc<Lease>,
    /// Until when each partition is this process's own, for those read under a lease.
    leased: Mutex<BTreeMap<Partition, Instant>>,
}

/// The state of a partition, as long as there is a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhoReads {
    /// This process reads it.
    Here,
    /// Another one does.
    Elsewhere,
    /// Its lease is not known.
    Unknown,
    /// Its consumer cannot be had.
    Gone,
}

/// Longer than any process runs: nothing is known that would end before.
const FOR_GOOD: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Statuses {
    /// Of a source that is about to connect.
    pub(super) fn new(name: &str, server: &str, reads: String) -> Arc<Self> {
        let cell = StatusCell::new(name, server);
        let (lease, leased) = (Lease::new(Instant::now()), Mutex::default());
        Arc::new(Self { cell, reads, who_reads: Mutex::default(), lease, leased })
    }

    /// This partition is this process's own until then. Handlers may begin their messages until the
    /// first of these times.
    pub(super) fn leased_until(&self, partition: Partition, until: Instant) {
        self.leased.lock().insert(partition, until);
        self.extend();
    }

    /// Another process has this partition, and the engine has given up its messages: until then,
    /// the leases of others would let handlers begin them.
    pub(super) fn not_leased(&self, partition: Partition) {
        self.leased.lock().remove(&partition);
        self.extend();
    }

    /// No lease of this partition can be kept, so none can run out.
    pub(super) fn without_lease(&self, partition: Partition, why: String) {
        self.cell.remark(why);
        self.leased_until(partition, Instant::now() + FOR_GOOD);
    }

    fn extend(&self) {
        let first = self.leased.lock().values().min().copied();
        first.into_iter().for_each(|first| self.lease.extend(first));
    }

    /// The driver of this partition sees this.
    pub(super) fn show(&self, connection: &Connection, partition: Partition, who: WhoReads) {
        self.who_reads.lock().insert(partition, who);
        let (state, detail) = match connection.is_up() {
            true => self.stands(),
            false if connection.is_refused() => (InputState::Refused, connection.why_down()),
            false => (InputState::Lost, connection.why_down()),
        };
        self.cell.set(state, detail);
    }

    fn stands(&self) -> (InputState, String) {
        let who_reads = self.who_reads.lock();
        let any = |who| who_reads.values().any(|one| *one == who);
        let (state, why) = if any(WhoReads::Gone) {
            let why = "the consumer or its stream is gone, or cannot be had: it is looked for";
            (InputState::Waiting, why)
        } else if any(WhoReads::Unknown) {
            let why = "whether another process reads it is not known, so nothing is read: the \
                       key-value bucket greenroom-leases is asked again and again";
            (InputState::Waiting, why)
        } else if any(WhoReads::Elsewhere) {
            (InputState::Assigned, "another process reads it, and this one waits until that ends")
        } else {
            return (InputState::Assigned, self.reads.clone());
        };
        (state, format!("{}: {why}", self.reads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o17_an_input_says_what_keeps_it_from_reading() {
        let statuses = Statuses::new("nats", "", "consumer a".to_owned());
        let stands = |who| {
            statuses.who_reads.lock().insert(Partition(2), who);
            statuses.stands()
        };
        statuses.who_reads.lock().insert(Partition(1), WhoReads::Here);
        assert_eq!(stands(WhoReads::Here), (InputState::Assigned, "consumer a".to_owned()));
        let (state, detail) = stands(WhoReads::Elsewhere);
        assert_eq!(state, InputState::Assigned, "a second process may be ready, as in a deploy");
        assert!(detail.starts_with("consumer a: another process reads it"), "{detail}");
        for (who, why) in [(WhoReads::Unknown, "greenroom-leases"), (WhoReads::Gone, "is gone")] {
            let (state, detail) = stands(who);
            assert!(state == InputState::Waiting && detail.contains(why), "{detail}");
        }
    }

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
        statuses.without_lease(Partition::ONLY, "there is no bucket".to_owned());
        assert!(statuses.lease.is_held());
        assert_eq!(statuses.cell.get().remark.as_deref(), Some("there is no bucket"));
    }
}
