//! A subject as an output of a configuration.

use greenroom_bus::{
    BoxFuture,
    sink::{OpenOutput, OutputKind, output},
};
use greenroom_config::{At, Listing};

use super::{NatsOutput, library};

/// Its line in the registry.
pub const OUTPUT: Listing<dyn OutputKind> =
    output::<NatsOutput>("nats", "Publishes to NATS JetStream.");

impl OutputKind for NatsOutput {
    fn reach(&self, at: &mut At<'_>) {
        self.reach_files(at);
    }

    fn open(&self) -> BoxFuture<'_, Result<OpenOutput, String>> {
        Box::pin(async { Ok(OpenOutput { sink: library::sink(self).await?, live: None }) })
    }
}
