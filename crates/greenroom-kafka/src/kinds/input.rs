//! Topics as an input of a configuration.

use greenroom_bus::{
    BoxFuture,
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, input},
};
use greenroom_config::{At, Listing};

use super::{KafkaInput, library};

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> = input::<KafkaInput>("kafka", "Reads topics of Kafka.");

impl InputKind for KafkaInput {
    fn record(&self) -> Option<RecordShape> {
        let parts = &["pointer", "header", "key", "topic", "time"];
        Some(RecordShape { one: "a record", parts })
    }

    fn keeps_positions(&self) -> bool {
        true
    }

    fn reach(&self, at: &mut At<'_>) {
        library::reach_input(self, at);
    }

    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async { library::source(self, setup).map(OpenInput::boxed) })
    }

    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async { library::looking(self, setup) })
    }

    fn looked(&self) -> Option<&'static str> {
        Some("no group was joined: of topics, what is there now and not done was read")
    }
}
