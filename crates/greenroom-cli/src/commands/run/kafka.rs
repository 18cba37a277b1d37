//! Inputs, outputs and dead letters of Kafka, where this build has them.

use std::sync::Arc;

use greenroom_bus::{sink::Sink, source::Source};
#[cfg(feature = "kafka")]
use greenroom_kafka::{
    output::KafkaSink,
    source::{KafkaLooking, KafkaSource},
};

#[cfg(feature = "kafka")]
use crate::config::InputKind;
use crate::config::{InputConfig, KafkaInput, KafkaLetters, KafkaOutput};

/// Dead letters that go to a topic.
#[cfg(feature = "kafka")]
pub(super) type Letters = greenroom_kafka::output::KafkaDeadLetters;

/// Joins the group, in the background.
///
/// # Errors
/// What cannot be used.
#[cfg(feature = "kafka")]
pub(super) fn source(input: &InputConfig, kafka: &KafkaInput) -> Result<Box<dyn Source>, String> {
    let source = KafkaSource::open(kafka.options(input.records.as_ref())?);
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What the group has not done, up to what is there now. The group is not joined.
///
/// # Errors
/// What cannot be used.
#[cfg(feature = "kafka")]
pub(super) fn looking(input: &InputConfig, kafka: &KafkaInput) -> Result<Box<dyn Source>, String> {
    let source = KafkaLooking::new(kafka.options(input.records.as_ref())?);
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// Connects in the background.
///
/// # Errors
/// What cannot be used.
#[cfg(feature = "kafka")]
pub(super) fn sink(kafka: &KafkaOutput) -> Result<Arc<dyn Sink>, String> {
    let sink = KafkaSink::open(kafka.options()?);
    Ok(Arc::new(sink.map_err(|error| error.to_string())?))
}

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
    let InputKind::Kafka(kafka) = &input.kind else { return Ok(()) };
    let options = kafka.options(input.records.as_ref())?;
    letters.input(input.name.as_str(), &options).map_err(|error| error.to_string())
}

// A configuration that was checked has none of these in a build without the feature.

#[cfg(not(feature = "kafka"))]
pub(super) fn source(_: &InputConfig, _: &KafkaInput) -> Result<Box<dyn Source>, String> {
    Err(lacking())
}

#[cfg(not(feature = "kafka"))]
pub(super) fn looking(_: &InputConfig, _: &KafkaInput) -> Result<Box<dyn Source>, String> {
    Err(lacking())
}

#[cfg(not(feature = "kafka"))]
pub(super) fn sink(_: &KafkaOutput) -> Result<Arc<dyn Sink>, String> {
    Err(lacking())
}

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
    Err(lacking())
}

#[cfg(not(feature = "kafka"))]
pub(super) fn reads(letters: &Letters, _: &InputConfig) -> Result<(), String> {
    match *letters {}
}

#[cfg(not(feature = "kafka"))]
fn lacking() -> String {
    let install = crate::config::lacking("kafka").unwrap_or_default();
    format!("this greenroom was built without `kafka`; install one that has it: {install}")
}
