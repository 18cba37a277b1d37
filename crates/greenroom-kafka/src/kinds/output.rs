//! A topic as an output of a configuration.

use greenroom_bus::{
    BoxFuture, by_client,
    sink::{OpenOutput, OutputKind, output},
};
#[cfg(feature = "client")]
use greenroom_config::At;
use greenroom_config::Listing;

use crate::options::KafkaOutput;

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> =
    output::<KafkaOutput>("kafka", "Publishes to a Kafka topic.");

impl OutputKind for KafkaOutput {
    #[cfg(feature = "client")]
    fn reach(&self, at: &mut At<'_>) {
        self.connection().reach(at, || crate::output::KafkaSink::check(self).err());
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async {
            by_client!("Kafka", => {
                crate::output::KafkaSink::open(self.clone()).map(OpenOutput::fixed)
            })
        })
    }
}
