//! What a program asks of the options of a broker that dead letters go to.

use std::sync::Arc;

use greenroom_config::{AnyOptions, At};

use super::{
    DeadLetterStore,
    redrive::{InputOfLetters, LetterChoice, Redriven},
};
use crate::BoxFuture;

/// The options of a broker that dead letters go to. Its own checks are in its declaration (`then`).
pub trait LettersKind: AnyOptions {
    /// Where they are, in words: `the topic letters of Kafka`.
    fn place(&self) -> String;

    /// Reports what cannot be used of what lies outside of the configuration: certificates,
    /// properties of a library. No server is asked.
    fn reach(&self, at: &mut At<'_>) {
        let _ = at;
    }

    /// Opens the store, on the runtime of the engine.
    ///
    /// # Errors
    /// What could not be opened, and what to do next.
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn DeadLetterStore>, String>>;

    /// Sends the letters that are chosen back to where their events came from, and tells now and
    /// then how far it is. Blocks; outside of any runtime.
    ///
    /// # Errors
    /// What cannot be used, or why it could not go on. What was done before stays done.
    fn redrive(
        &self,
        choice: LetterChoice,
        inputs: &[InputOfLetters<'_>],
        tells: &mut dyn FnMut(&Redriven),
    ) -> Result<Redriven, String>;
}

greenroom_config::kinds! {
    /// A kind of broker for dead letters, by its key, with a sentence on what it does with them.
    pub fn letters: dyn LettersKind;
}
