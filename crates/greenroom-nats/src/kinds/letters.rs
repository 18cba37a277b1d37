//! A subject for the dead letters of a configuration.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture, by_client,
    dead_letter::{
        DeadLetterStore, LettersKind, letters,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
};
use greenroom_config::{At, Listing};

use crate::options::NatsLetters;

/// Its line in the registry.
pub const LETTERS: Listing<dyn LettersKind> = letters::<NatsLetters>(
    "nats",
    "Publishes them to a NATS JetStream subject instead of the file.",
);

impl LettersKind for NatsLetters {
    fn place(&self) -> String {
        format!("the subject {} of NATS", self.subject)
    }

    fn reach(&self, at: &mut At<'_>) {
        self.server().reach(at);
    }

    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn DeadLetterStore>, String>> {
        Box::pin(async {
            by_client!("NATS", => {
                let letters = crate::output::NatsDeadLetters::open(self).await;
                letters.map(|letters| Arc::new(letters) as _)
            })
        })
    }

    fn redrive(
        &self,
        choice: LetterChoice,
        inputs: &[InputOfLetters<'_>],
        tells: &mut dyn FnMut(&Redriven),
    ) -> Result<Redriven, String> {
        if choice.group.is_some() {
            return Err("`--group` is for letters of Kafka: on NATS, one that was sent is removed"
                .to_owned());
        }
        by_client!("NATS", inputs tells => {
            let inputs = inputs.iter().filter_map(|(kind, setup)| {
                let nats = kind.as_any().downcast_ref::<crate::options::NatsInput>()?;
                Some((setup.name.clone(), nats.clone()))
            });
            let inputs: Vec<_> = inputs.collect();
            // On a runtime of its own.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
            runtime.block_on(crate::redrive(self, &inputs, &choice, tells))
        })
    }
}
