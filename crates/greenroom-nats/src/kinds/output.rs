//! A subject as an output of a configuration.

use greenroom_bus::{
    BoxFuture, by_client,
    sink::{OpenOutput, OutputKind, output},
};
use greenroom_config::{At, Listing};

use crate::options::NatsOutput;

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> =
    output::<NatsOutput>("nats", "Publishes to NATS JetStream.");

impl OutputKind for NatsOutput {
    fn reach(&self, at: &mut At<'_>) {
        self.server().reach(at);
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async {
            by_client!("NATS", => {
                crate::output::NatsSink::open(self.clone()).await.map(OpenOutput::fixed)
            })
        })
    }
}
