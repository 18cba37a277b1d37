//! Inputs and outputs of Kafka, where this build has them.

use std::sync::Arc;

use greenroom_bus::{sink::Sink, source::Source};
#[cfg(feature = "kafka")]
use greenroom_kafka::{
    output::KafkaSink,
    source::{KafkaLooking, KafkaSource},
};

use crate::config::{InputConfig, KafkaInput, KafkaOutput};

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

#[cfg(not(feature = "kafka"))]
fn lacking() -> String {
    let install = crate::config::lacking("kafka").unwrap_or_default();
    format!("this greenroom was built without `kafka`; install one that has it: {install}")
}
