//! Streams as an input of a configuration.

use greenroom_bus::{
    BoxFuture, by_client,
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, input},
};
use greenroom_config::{At, Listing};

use crate::options::NatsInput;

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> =
    input::<NatsInput>("nats", "Reads a stream of NATS JetStream.");

impl InputKind for NatsInput {
    fn record(&self) -> Option<RecordShape> {
        let parts = &["pointer", "header", "key", "topic", "time"];
        Some(RecordShape { one: "a record", parts })
    }

    fn lacks(&self, part: &str) -> Option<(&'static str, &'static str)> {
        (part == "key" && self.key.is_none()).then_some((
            "a message of this input has no key",
            "say what the key of a message is: `nats: { key: { token: 2 } }`",
        ))
    }

    fn keeps_positions(&self) -> bool {
        true
    }

    fn reach(&self, at: &mut At<'_>) {
        self.server().reach(at);
    }

    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async {
            by_client!("NATS", setup => {
                // What is taken and not settled is with the input and the pools.
                let capacity = self.capacity.or(Some(setup.room));
                let input = Self { capacity, ..self.clone() };
                let source = crate::source::NatsSource::open(input, setup.records.clone()).await;
                source.map(OpenInput::reads)
            })
        })
    }

    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async {
            by_client!("NATS", setup => {
                let looking = crate::source::NatsLooking::open(self, setup.records.clone()).await;
                looking.map(|looking| Box::new(looking) as _)
            })
        })
    }

    fn looked(&self) -> Option<&'static str> {
        Some("no consumer was read from: of streams, what is there now and not done was read")
    }
}
