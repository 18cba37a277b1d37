//! Inputs, outputs and dead letters of Kafka, where this build has them.

use std::sync::Arc;

#[cfg(feature = "kafka")]
use crate::config::KafkaInput;
#[cfg(not(feature = "kafka"))]
use crate::config::lacking;
use crate::config::{InputConfig, KafkaLetters};

/// Dead letters that go to a topic.
#[cfg(feature = "kafka")]
pub(super) type Letters = greenroom_kafka::output::KafkaDeadLetters;

/// Connects in the background.
///
/// # Errors
/// What cannot be used.
#[cfg(feature = "kafka")]
pub(super) fn letters(kafka: &KafkaLetters) -> Result<Arc<Letters>, String> {
    let letters = Letters::open(&kafka.options());
    Ok(Arc::new(letters.map_err(|error| error.to_string())?))
}

/// Where records of this input can be read again, if it reads topics.
///
/// # Errors
/// What cannot be used.
#[cfg(feature = "kafka")]
pub(super) fn reads(letters: &Letters, input: &InputConfig) -> Result<(), String> {
    let Some(kafka) = input.kind.downcast_ref::<KafkaInput>() else { return Ok(()) };
    let options = kafka.options(input.setup(&[])?.records);
    letters.input(input.name.as_str(), &options).map_err(|error| error.to_string())
}

// A configuration that was checked has none of these in a build without the feature.

/// There are none.
#[cfg(not(feature = "kafka"))]
pub(super) enum Letters {}

#[cfg(not(feature = "kafka"))]
impl greenroom_bus::dead_letter::DeadLetterStore for Letters {
    fn describe(&self) -> String {
        match *self {}
    }

    fn store(&self, _: greenroom_bus::dead_letter::DeadLetter) {
        match *self {}
    }

    fn finish<'a>(
        &'a self,
    ) -> greenroom_bus::BoxFuture<'a, Result<(), greenroom_bus::sink::SinkError>> {
        match *self {}
    }

    fn failure(&self) -> Option<greenroom_bus::sink::SinkError> {
        match *self {}
    }
}

#[cfg(not(feature = "kafka"))]
pub(super) fn letters(_: &KafkaLetters) -> Result<Arc<Letters>, String> {
    Err(lacking("kafka").unwrap_or_default())
}

#[cfg(not(feature = "kafka"))]
pub(super) fn reads(letters: &Letters, _: &InputConfig) -> Result<(), String> {
    match *letters {}
}
