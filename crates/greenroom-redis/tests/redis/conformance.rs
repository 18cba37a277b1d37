//! What every connector promises (V01).

use greenroom_bus::{BoxFuture, source::Source};
use greenroom_redis::{RedisInput, source::RedisSource};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Connector, Item, Place},
};

use crate::server::{HOW, connect, known, unique};

conformance!(a_stream_for_each_partition: Streams);

/// Partitions that the suite has for a connector of several.
const PARTITIONS: usize = 3;

struct Streams;

impl Connector for Streams {
    fn name(&self) -> String {
        "Redis Streams".to_owned()
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Revokes => Some("consumers of a group share a stream: none has it taken away"),
            _ => None,
        }
    }

    fn missing(&self) -> Option<String> {
        known().is_none().then(|| HOW.to_owned())
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let (address, name) = (known().ok_or(HOW)?, unique("place"));
        let streams = (0..PARTITIONS).map(|number| format!("{name}-{number}")).collect();
        Ok(Box::new(StreamsPlace { address, streams }))
    }
}

struct StreamsPlace {
    address: String,
    streams: Vec<String>,
}

impl Place for StreamsPlace {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let mut connection = connect(&self.address).await;
            for Item { partition, body } in items {
                let stream = &self.streams[partition.0 as usize];
                let data = match body {
                    Body::Event(event) => {
                        let mut json = Vec::new();
                        event.write_json(&mut json);
                        json
                    }
                    Body::Malformed(raw) => raw.clone(),
                    Body::Gap => Vec::new(),
                };
                let mut add = redis::cmd("XADD");
                let add = add.arg(stream).arg("*").arg("data").arg(data);
                let id: String = add.query_async(&mut connection).await.unwrap();
                if matches!(body, Body::Gap) {
                    let delete = redis::cmd("XDEL").arg(stream).arg(id).take();
                    delete.exec_async(&mut connection).await.unwrap();
                }
            }
            Ok(())
        })
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async move {
            let url = format!("redis://{}", self.address);
            let input = RedisInput::new(url, self.streams.clone(), "group", "consumer");
            let source = RedisSource::open(input, None).await;
            source.map(|source| Box::new(source) as _).map_err(|error| error.to_string())
        })
    }
}
