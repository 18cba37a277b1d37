//! A topic as an output of a configuration.

use greenroom_bus::{
    BoxFuture,
    sink::{OpenOutput, OutputKind, output},
};
use greenroom_config::{At, Listing};

use super::{KafkaOutput, library};

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> =
    output::<KafkaOutput>("kafka", "Publishes to a topic of Kafka.");

impl OutputKind for KafkaOutput {
    fn reach(&self, at: &mut At<'_>) {
        library::reach_output(self, at);
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async { Ok(OpenOutput { sink: library::sink(self)?, live: None }) })
    }
}
