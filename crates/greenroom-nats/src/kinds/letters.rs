//! A subject for the dead letters of a configuration.

use std::sync::Arc;

use greenroom_bus::{
    BoxFuture,
    dead_letter::{
        DeadLetterStore, LettersKind, letters,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
};
use greenroom_config::{At, Listing};

use super::{NatsLetters, library};

/// Its line in the registry.
pub const LETTERS: Listing<dyn LettersKind> = letters::<NatsLetters>(
    "nats",
    "Publishes them to a subject of NATS JetStream in place of the file.",
);

impl LettersKind for NatsLetters {
    fn place(&self) -> String {
        format!("the subject {} of NATS", self.subject)
    }

    fn reach(&self, at: &mut At<'_>) {
        self.reach_files(at);
    }

    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn DeadLetterStore>, String>> {
        Box::pin(library::letters(self))
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
        library::redrive(self, choice, inputs, tells)
    }
}
