//! A topic for the dead letters of a configuration.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture, by_client,
    dead_letter::{
        DeadLetterStore, LettersKind, letters,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
};
#[cfg(feature = "client")]
use greenroom_config::At;
use greenroom_config::Listing;

use crate::options::KafkaLetters;

/// Its line in the registry.
pub const LETTERS: Listing<dyn LettersKind> =
    letters::<KafkaLetters>("kafka", "Publishes them to a Kafka topic instead of the file.");

impl LettersKind for KafkaLetters {
    fn place(&self) -> String {
        format!("the topic {} of Kafka", self.topic)
    }

    #[cfg(feature = "client")]
    fn reach(&self, at: &mut At<'_>) {
        self.connection().reach(at, || crate::output::KafkaDeadLetters::check(self).err());
    }

    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn DeadLetterStore>, String>> {
        Box::pin(async {
            by_client!("Kafka", => {
                crate::output::KafkaDeadLetters::open(self).map(|letters| Arc::new(letters) as _)
            })
        })
    }

    fn redrive(
        &self,
        choice: LetterChoice,
        inputs: &[InputOfLetters<'_>],
        tells: &mut dyn FnMut(&Redriven),
    ) -> Result<Redriven, String> {
        by_client!("Kafka", choice inputs tells => {
            let inputs = inputs.iter().filter_map(|(kind, setup)| {
                let kafka = kind.as_any().downcast_ref::<crate::options::KafkaInput>()?;
                Some((setup.name.clone(), kafka.clone()))
            });
            crate::redrive(self, &inputs.collect::<Vec<_>>(), &choice, tells)
        })
    }
}
