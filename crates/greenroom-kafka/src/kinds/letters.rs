//! A topic for the dead letters of a configuration.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    dead_letter::{
        DeadLetterStore, LettersKind, letters,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
};
use greenroom_config::{At, Listing};

use super::{KafkaLetters, library};

/// Its line in the registry.
pub const LETTERS: Listing<dyn LettersKind> =
    letters::<KafkaLetters>("kafka", "Publishes them to a topic of Kafka in place of the file.");

impl LettersKind for KafkaLetters {
    fn place(&self) -> String {
        format!("the topic {} of Kafka", self.topic)
    }

    fn reach(&self, at: &mut At<'_>) {
        library::reach_letters(self, at);
    }

    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn DeadLetterStore>, String>> {
        Box::pin(async { library::letters(self) })
    }

    fn redrive(
        &self,
        choice: LetterChoice,
        inputs: &[InputOfLetters<'_>],
        tells: &mut dyn FnMut(&Redriven),
    ) -> Result<Redriven, String> {
        library::redrive(self, choice, inputs, tells)
    }
}
