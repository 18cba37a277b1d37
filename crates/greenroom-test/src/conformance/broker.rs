//! The partitioned source in memory, as a connector: the smallest one with every ability, to read
//! before writing another.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    source::{Partition, Source},
};

use super::connector::{Body, Clock, Connector, Item, Place, Stored};
use crate::partitioned::{Broker, BrokerOptions};

/// [Brokers](Broker) with these options.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrokerConnector(pub BrokerOptions);

impl Connector for BrokerConnector {
    fn name(&self) -> String {
        "broker".to_owned()
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        Ok(Box::new(BrokerPlace(Broker::new(self.0))))
    }
}

/// A broker outlives its sources.
struct BrokerPlace(Broker);

impl Place for BrokerPlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        for Item { partition, body } in items {
            match body {
                Body::Event(event) => self.0.publish(partition.0, [event.clone()]),
                Body::Malformed(raw) => self.0.publish_malformed(partition.0, raw.clone()),
                Body::Gap => self.0.skip(partition.0, 1),
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(std::future::ready(Ok(self.0.source())))
    }

    fn revoke(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        self.0.revoke(partition.0);
        Box::pin(std::future::ready(Ok(())))
    }

    fn assign(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        self.0.assign(partition.0);
        Box::pin(std::future::ready(Ok(())))
    }

    fn stored(&self) -> Option<Stored> {
        let broker = self.0.clone();
        Some(Arc::new(move || {
            let of = |partition: u32| (Partition(partition), broker.committed(partition));
            broker.partitions().into_iter().map(of).collect()
        }))
    }
}
