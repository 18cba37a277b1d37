//! What every connector promises (V01).

use async_nats::jetstream::stream::StorageType;
use greenroom_bus::{BoxFuture, source::Source};
use greenroom_nats::{NatsInput, kinds::Partitions, source::NatsSource};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Connector, Item, Place},
};

use crate::server::{HOW, TestStream, known, unique};

conformance!(a_consumer_for_each_partition: Consumers);

/// Partitions that the suite has for a connector of several.
const PARTITIONS: u32 = 3;

struct Consumers;

impl Connector for Consumers {
    fn name(&self) -> String {
        "NATS JetStream".to_owned()
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Revokes => {
                Some("another process takes a consumer only from one that is frozen or cut off")
            }
            _ => None,
        }
    }

    fn missing(&self) -> Option<String> {
        known().is_none().then(|| HOW.to_owned())
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let address = known().ok_or(HOW)?;
        Ok(Box::new(StreamPlace { address, name: unique("place"), is_made: false }))
    }
}

struct StreamPlace {
    address: String,
    name: String,
    is_made: bool,
}

impl StreamPlace {
    /// The stream, which is made on the runtime of the first run.
    async fn stream(&mut self) -> TestStream {
        let stream = TestStream { address: self.address.clone(), name: self.name.clone() };
        if !std::mem::replace(&mut self.is_made, true) {
            stream.make(StorageType::Memory).await;
        }
        stream
    }
}

impl Place for StreamPlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let stream = self.stream().await;
            let jetstream = stream.jetstream().await;
            for Item { partition, body } in items {
                let (payload, kind) = match body {
                    Body::Event(event) => {
                        let mut json = Vec::new();
                        event.write_json(&mut json);
                        (json, "event")
                    }
                    Body::Malformed(raw) => (raw.clone(), "event"),
                    // The filter leaves it out.
                    Body::Gap => (Vec::new(), "other"),
                };
                let subject = format!("{}.{partition}.{kind}", self.name);
                let answer = jetstream.publish(subject, payload.into()).await;
                let answer = answer.map_err(|error| error.to_string())?;
                answer.await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async move {
            let stream = self.stream().await;
            let options = NatsInput {
                subjects: Some(vec![format!("{}.{{partition}}.event", self.name)]),
                partitions: Some(Partitions((0..PARTITIONS).collect())),
                ..stream.options()
            };
            let source = NatsSource::open(options, None).await;
            source.map(|source| Box::new(source) as _).map_err(|error| error.to_string())
        })
    }
}
