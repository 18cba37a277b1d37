//! The test's side of a broker.

use std::{sync::Arc, time::Instant};

use greenroom_bus::{
    event::Event,
    settlement::Settled,
    source::{Lease, Partition, Source},
    watermark::Positions,
};

use super::{
    delivery::Delivery,
    member::Member,
    options::BrokerOptions,
    state::{Shared, State},
};

/// What a test publishes to, takes partitions away from, and looks into. Clones are the same
/// broker. Partitions are numbers, which begin with the first call that names them.
#[derive(Clone)]
pub struct Broker(Shared);

impl Default for Broker {
    fn default() -> Self {
        Self::new(BrokerOptions::default())
    }
}

impl Broker {
    /// A broker that has nothing yet.
    pub fn new(options: BrokerOptions) -> Self {
        Self(Shared::new(options))
    }

    /// A source of all partitions that are not taken away, those that come later too. Each goes on
    /// with what is committed. A source that was made before ends with its next pull, and stores
    /// nothing more.
    pub fn source(&self) -> Box<dyn Source> {
        Box::new(Member::join(self.0.clone()))
    }

    /// Sources that are made from now on have their partitions by this lease, which lasts until
    /// then, the first time that this is called.
    pub fn lease(&self, until: Instant) -> Arc<Lease> {
        self.0.0.lease.get_or_init(|| Lease::new(until)).clone()
    }

    /// Puts these at the end of a partition, each after a gap where [chance](BrokerOptions::gaps)
    /// says so.
    pub fn publish(&self, partition: u32, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.append(partition, Ok(event)));
    }

    /// Puts bytes that are no event at the end of a partition.
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

    /// Sources end once they have given all.
    pub fn end(&self) {
        self.0.change(|state| state.has_ended = true);
    }

    /// Takes a partition away. [`revoked`](Self::revoked) has it once the engine has answered.
    /// Where it is taken away already, nothing happens.
    pub fn revoke(&self, partition: u32) {
        self.0.change(|state| state.log(Partition(partition)).is_wanted = false);
    }

    /// Gives a partition back: an epoch begins with what is committed. Where it was not taken away,
    /// or the source has not noticed yet that it was, nothing happens.
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

    /// Gives the last so many of a partition again. The source skips those that are done, or in
    /// hand.
    pub fn repeat(&self, partition: u32, events: usize) {
        self.0.change(|state| state.log(Partition(partition)).go_back(events));
    }

    /// From here on sources give also of partitions that are paused: what no source may do, and an
    /// engine has to bear.
    pub fn heed_no_pause(&self) {
        self.0.change(|state| state.heeds_no_pause = true);
    }

    /// How many events of a partition were given, in all epochs; not those that were skipped.
    pub fn given(&self, partition: u32) -> u64 {
        self.look(|state| state.log(Partition(partition)).given)
    }

    /// True while the source is being asked for more. A consumer that is asked for nothing for a
    /// while is counted out by its broker.
    pub fn is_asked(&self) -> bool {
        self.look(|state| state.is_asked)
    }

    /// Of which partitions the source was told last to give nothing.
    pub fn paused(&self) -> Vec<u32> {
        self.look(|state| state.paused.iter().map(|partition| partition.0).collect())
    }

    /// Those of which the engine has said that nothing is started any more, in that order.
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

    /// The positions of a partition that were published and never acknowledged, in no epoch.
    pub fn undone(&self, partition: u32) -> Vec<u64> {
        self.look(|state| state.log(Partition(partition)).undone())
    }

    /// What the last commit said of a partition.
    pub fn committed(&self, partition: u32) -> Positions {
        self.look(|state| state.log(Partition(partition)).committed().clone())
    }

    /// The partitions that there are.
    pub fn partitions(&self) -> Vec<u32> {
        self.look(|state| state.logs.keys().map(|partition| partition.0).collect())
    }

    /// What the engine did that the contract of a source forbids, for example that it settled an
    /// event twice.
    pub fn misuse(&self) -> Vec<String> {
        self.look(|state| state.misuse.clone())
    }

    /// Waits until this is so. It is looked at after each change: something published, given,
    /// settled, committed, taken away.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.0.0.changed.notified());
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    fn look<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.0.state.lock())
    }
}
