//! Topics as an input of a configuration.

use greenroom_bus::{
    BoxFuture, by_client,
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, input},
};
#[cfg(feature = "client")]
use greenroom_config::At;
use greenroom_config::Listing;

use crate::options::KafkaInput;

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> = input::<KafkaInput>("kafka", "Reads Kafka topics.");

impl InputKind for KafkaInput {
    fn record(&self) -> Option<RecordShape> {
        let parts = &["pointer", "header", "key", "topic", "time"];
        Some(RecordShape { one: "a record", parts })
    }

    fn keeps_positions(&self) -> bool {
        true
    }

    #[cfg(feature = "client")]
    fn reach(&self, at: &mut At<'_>) {
        self.connection().reach(at, || crate::source::KafkaSource::check(self).err());
    }

    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async {
            by_client!("Kafka", setup => {
                let source = crate::source::KafkaSource::open(self.clone(), setup.records.clone());
                source.map(OpenInput::reads)
            })
        })
    }

    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async {
            by_client!("Kafka", setup => {
                let source = crate::source::KafkaLooking::new(self.clone(), setup.records.clone());
                source.map(|source| Box::new(source) as _)
            })
        })
    }

    fn looked(&self) -> Option<&'static str> {
        Some("no group was joined: of topics, what is there now and not done was read")
    }
}
