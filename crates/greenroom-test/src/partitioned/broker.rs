//! The test's side of a broker.

use std::{sync::Arc, time::Instant};

use greenroom_bus::{
    event::Event,
    settlement::Settled,
    source::{Lease, Partition, Source},
    wait::wait_until,
    watermark::Positions,
};

use super::{
    delivery::Delivery,
    member::Member,
    options::BrokerOptions,
    state::{Shared, State},
};

/// A test publishes to it, takes partitions away and inspects it. Clones are the same broker.
/// Partitions are numbers; the first call that names one creates it.
#[derive(Clone)]
pub struct Broker(Shared);

impl Default for Broker {
    fn default() -> Self {
        Self::new(BrokerOptions::default())
    }
}

impl Broker {
    /// An empty broker.
    pub fn new(options: BrokerOptions) -> Self {
        Self(Shared::new(options))
    }

    /// A source of all partitions that are not taken away, including later ones. Each continues
    /// from its committed positions. An earlier source ends at its next pull, and stores nothing
    /// more.
    pub fn source(&self) -> Box<dyn Source> {
        Box::new(Member::join(self.0.clone()))
    }

    /// Sources made from now on hold their partitions by this lease, which lasts until `until`;
    /// only the first call counts.
    pub fn lease(&self, until: Instant) -> Arc<Lease> {
        self.0.0.lease.get_or_init(|| Lease::new(until)).clone()
    }

    /// Appends these to a partition, each after a gap if [chance](BrokerOptions::gaps) says so.
    pub fn publish(&self, partition: u32, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.append(partition, Ok(event)));
    }

    /// Appends bytes that are no event to a partition.
    pub fn publish_malformed(&self, partition: u32, raw: impl Into<Vec<u8>>) {
        self.append(partition, Err(raw.into()));
    }

    fn append(&self, partition: u32, body: Result<Event, Vec<u8>>) {
        self.0.change(|state| {
            let gap = state.gap();
            let log = state.log(Partition(partition));
            log.skip(gap);
            log.append(body);
        });
    }

    /// The next positions of a partition are never given.
    pub fn skip(&self, partition: u32, positions: u64) {
        self.0.change(|state| state.log(Partition(partition)).skip(positions));
    }

    /// Sources end once they have given everything.
    pub fn end(&self) {
        self.0.change(|state| state.has_ended = true);
    }

    /// Takes a partition away. [`revoked`](Self::revoked) has it once the engine has answered. Does
    /// nothing if it is already taken away.
    pub fn revoke(&self, partition: u32) {
        self.0.change(|state| state.log(Partition(partition)).is_wanted = false);
    }

    /// Gives a partition back: an epoch begins at the committed positions. Does nothing if it was
    /// not taken away, or if the source has not noticed that yet.
    pub fn assign(&self, partition: u32) {
        self.0.change(|state| {
            let is_read = state.member > 0;
            let log = state.log(Partition(partition));
            log.is_wanted = true;
            if is_read && log.epoch().is_none() {
                log.assign();
            }
        });
    }

    /// Gives the last events of a partition again. The source skips those that are done or in hand.
    pub fn repeat(&self, partition: u32, events: usize) {
        self.0.change(|state| state.log(Partition(partition)).go_back(events));
    }

    /// From now on, sources also give events of paused partitions: no source may do this, but an
    /// engine must cope with it.
    pub fn heed_no_pause(&self) {
        self.0.change(|state| state.heeds_no_pause = true);
    }

    /// How many events of a partition were given, in all epochs; skipped ones excluded.
    pub fn given(&self, partition: u32) -> u64 {
        self.look(|state| state.log(Partition(partition)).given)
    }

    /// True while the source is being pulled. A broker drops a consumer that does not poll for a
    /// while.
    pub fn is_asked(&self) -> bool {
        self.look(|state| state.is_asked)
    }

    /// The partitions that the source was last told to pause.
    pub fn paused(&self) -> Vec<u32> {
        self.look(|state| state.paused.iter().map(|partition| partition.0).collect())
    }

    /// The partitions that the engine has released, in that order.
    pub fn revoked(&self) -> Vec<u32> {
        self.look(|state| state.revoked.iter().map(|partition| partition.0).collect())
    }

    /// True while the assignment of this delivery has not ended.
    pub fn is_assigned(&self, delivery: &Delivery) -> bool {
        self.look(|state| state.log(delivery.partition).epoch() == Some(delivery.epoch))
    }

    /// How the events of a partition were settled, with their positions, in the order of epochs and
    /// positions.
    pub fn settled(&self, partition: u32) -> Vec<(u64, Settled)> {
        self.look(|state| state.log(Partition(partition)).settled())
    }

    /// How many deliveries of a partition are not settled.
    pub fn open(&self, partition: u32) -> u64 {
        self.look(|state| state.log(Partition(partition)).open())
    }

    /// The positions of a partition that were published and not acknowledged in any epoch.
    pub fn undone(&self, partition: u32) -> Vec<u64> {
        self.look(|state| state.log(Partition(partition)).undone())
    }

    /// The last committed positions of a partition.
    pub fn committed(&self, partition: u32) -> Positions {
        self.look(|state| state.log(Partition(partition)).committed().clone())
    }

    /// All partitions.
    pub fn partitions(&self) -> Vec<u32> {
        self.look(|state| state.logs.keys().map(|partition| partition.0).collect())
    }

    /// Calls of the engine that violate the contract of a source, for example settling an event
    /// twice.
    pub fn misuse(&self) -> Vec<String> {
        self.look(|state| state.misuse.clone())
    }

    /// Waits until the condition holds. It is checked after each change: something published,
    /// given, settled, committed, taken away.
    ///
    /// # Cancel safety
    /// A dropped future has no effect.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        wait_until(&self.0.0.changed, || is_so(self).then_some(())).await;
    }

    fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.0.state.lock())
    }
}
