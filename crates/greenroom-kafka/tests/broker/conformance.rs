//! What every connector has to do (V01), with a topic of one partition for each partition: a topic
//! can be taken out of a subscription, which is a rebalance, where a partition cannot.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    source::{Partition, Source},
};
use greenroom_kafka::{
    commit_set,
    kinds::KafkaProtocol,
    source::{KafkaSource, Subscription},
};
use greenroom_test::conformance::{self, Ability, Body, Check, Connector, Item, Place, Stored};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use super::fake::broker;
use super::support::{
    PATIENCE, Publisher, committed, config, create_topic, group, options, real_broker, unique,
};

/// As many partitions as the suite uses.
const PARTITIONS: usize = 3;

macro_rules! checks {
    ($protocol:ident, $properties:expr; $($test:ident $check:ident,)*) => {
        mod $protocol {
            use super::*;
            $(
                #[test]
                fn $test() {
                    if let Some(broker) = broker_for(Check::$check) {
                        let kafka = Kafka { broker, properties: $properties };
                        conformance::check(&kafka, Check::$check).told();
                    }
                }
            )*
        }
    };
    ($protocol:ident, $properties:expr) => {
        checks!($protocol, $properties;
            v01_order_per_key OrderPerKey,
            v01_no_loss NoLoss,
            v01_bounded_repeats BoundedRepeats,
            v01_pause_and_resume PauseAndResume,
            v01_malformed_events MalformedEvents,
            v01_shutdown_under_load ShutdownUnderLoad,
            v01_restart Restart,
            v01_gaps Gaps,
            v01_revoke_during_load RevokeDuringLoad,
        );
    };
}

checks!(cooperative, &[]);
checks!(eager, &[("partition.assignment.strategy", "range")]);
// The broker's own protocol (F11).
checks!(consumer_protocol, &[("group.protocol", "consumer")]);

/// The broker in this process gives no offsets that hold nothing.
fn broker_for(check: Check) -> Option<String> {
    match check {
        Check::Gaps => real_broker(),
        _ => Some(broker()),
    }
}

struct Kafka {
    broker: String,
    properties: &'static [(&'static str, &'static str)],
}

impl Connector for Kafka {
    fn name(&self) -> String {
        let properties = self.properties.iter().map(|(name, value)| format!(" {name}={value}"));
        format!("kafka{}", properties.collect::<String>())
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        let is_eager = self.properties.iter().any(|(_, value)| *value == "range");
        let why = "an eager rebalance takes all partitions away, and gives the others back unasked";
        (is_eager && ability == Ability::Revokes).then_some(why)
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let name = unique("v01");
        let topics: Vec<String> = (0..PARTITIONS).map(|at| format!("{name}-{at}")).collect();
        topics.iter().for_each(|topic| create_topic(&self.broker, topic, 1));
        Ok(Box::new(Topics {
            broker: self.broker.clone(),
            properties: self.properties,
            group: name.clone(),
            read: topics.clone(),
            topics,
            subscription: None,
        }))
    }
}

struct Topics {
    broker: String,
    properties: &'static [(&'static str, &'static str)],
    group: String,
    topics: Vec<String>,
    read: Vec<String>,
    subscription: Option<Subscription>,
}

impl Topics {
    /// Offsets that are never given: a record of a transaction that was aborted, and its marker.
    fn leave_gap(&self, topic: &str) {
        let producer: BaseProducer =
            config(&self.broker).set("transactional.id", unique("gap")).create().unwrap();
        producer.init_transactions(PATIENCE).unwrap();
        producer.begin_transaction().unwrap();
        let record = BaseRecord::<str, str>::to(topic).partition(0).payload("never given");
        producer.send(record).map_err(|(error, _)| error).unwrap();
        producer.flush(PATIENCE).unwrap();
        producer.abort_transaction(PATIENCE).unwrap();
    }

    fn change(
        &mut self,
        change: impl FnOnce(&mut Vec<String>),
    ) -> BoxFuture<'_, Result<(), String>> {
        change(&mut self.read);
        if let Some(subscription) = &self.subscription {
            subscription.set_topics(self.read.clone());
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Place for Topics {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        let publisher = Publisher::new(&self.broker);
        // Gaps of a partition that follow each other are one.
        let mut is_gap = [false; PARTITIONS];
        for Item { partition, body } in items {
            let at = partition.0 as usize;
            let topic = &self.topics[at];
            let was_gap = std::mem::replace(&mut is_gap[at], matches!(body, Body::Gap));
            match body {
                Body::Event(event) => publisher.event(topic, 0, event),
                Body::Malformed(raw) => publisher.send(topic, 0, "", raw),
                Body::Gap if was_gap => {}
                Body::Gap => {
                    publisher.flush();
                    self.leave_gap(topic);
                }
            }
        }
        publisher.flush();
        Box::pin(std::future::ready(Ok(())))
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        let mut options = options(&self.broker, &self.group, &self.read);
        for (name, value) in self.properties {
            if *name == "group.protocol" {
                options.protocol = KafkaProtocol::Consumer;
                // The broker decides these.
                options.properties.unset("session.timeout.ms").unset("heartbeat.interval.ms");
            } else {
                options.properties.set(*name, *value);
            }
        }
        let source = KafkaSource::open(options, None).map_err(|error| error.to_string());
        let source = source.map(|source| {
            self.subscription = Some(source.subscription());
            Box::new(source) as Box<dyn Source>
        });
        Box::pin(std::future::ready(source))
    }

    fn revoke(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        let topic = self.topics[partition.0 as usize].clone();
        self.change(|read| read.retain(|other| *other != topic))
    }

    fn assign(&mut self, partition: Partition) -> BoxFuture<'_, Result<(), String>> {
        let topic = self.topics[partition.0 as usize].clone();
        self.change(|read| read.push(topic))
    }

    fn stored(&self) -> Option<Stored> {
        let (group, topics) = (group(&self.broker, &self.group), self.topics.clone());
        Some(Arc::new(move || {
            let of = |(at, topic): (usize, &String)| {
                let (offset, text) = committed(&group, topic, 0)?;
                let positions = commit_set::decode(offset, &text).unwrap();
                Some((Partition(at as u32), positions))
            };
            topics.iter().enumerate().filter_map(of).collect()
        }))
    }
}
