//! Inputs, outputs and dead letters of NATS, where this build has them.

use std::sync::Arc;

use greenroom_bus::{dead_letter::DeadLetterStore, sink::Sink, source::Source};
#[cfg(feature = "nats")]
use greenroom_nats::{
    output::{NatsDeadLetters, NatsSink},
    source::{NatsLooking, NatsSource},
};

use crate::config::{InputConfig, NatsInput, NatsLetters, NatsOutput, PoolConfig};

/// Connects, and finds or makes the consumer.
///
/// # Errors
/// What cannot be used, or that no server is there.
#[cfg(feature = "nats")]
pub(super) async fn source(
    input: &InputConfig,
    nats: &NatsInput,
    pools: &[PoolConfig],
) -> Result<Box<dyn Source>, String> {
    let options = nats.options(input.records.as_ref(), input.run_ahead, pools)?;
    let source = NatsSource::open(&nats.server(), options).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What the consumer has not done, up to what is there now. The consumer is left alone.
///
/// # Errors
/// What cannot be used, or that no server is there.
#[cfg(feature = "nats")]
pub(super) async fn looking(
    input: &InputConfig,
    nats: &NatsInput,
) -> Result<Box<dyn Source>, String> {
    let options = nats.options(input.records.as_ref(), input.run_ahead, &[])?;
    let source = NatsLooking::open(&nats.server(), options).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// Connects.
///
/// # Errors
/// What cannot be used, or that no server is there.
#[cfg(feature = "nats")]
pub(super) async fn sink(nats: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    let sink = NatsSink::open(&nats.server(), nats.options()?).await;
    Ok(Arc::new(sink.map_err(|error| error.to_string())?))
}

/// Connects.
///
/// # Errors
/// What cannot be used, or that no server is there.
#[cfg(feature = "nats")]
pub(super) async fn letters(nats: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    let letters = NatsDeadLetters::open(&nats.server(), nats.library_subject()?).await;
    Ok(Arc::new(letters.map_err(|error| error.to_string())?))
}

// A configuration that was checked has none of these in a build without the feature.

#[cfg(not(feature = "nats"))]
pub(super) async fn source(
    _: &InputConfig,
    _: &NatsInput,
    _: &[PoolConfig],
) -> Result<Box<dyn Source>, String> {
    Err(lacking())
}

#[cfg(not(feature = "nats"))]
pub(super) async fn looking(_: &InputConfig, _: &NatsInput) -> Result<Box<dyn Source>, String> {
    Err(lacking())
}

#[cfg(not(feature = "nats"))]
pub(super) async fn sink(_: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    Err(lacking())
}

#[cfg(not(feature = "nats"))]
pub(super) async fn letters(_: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    Err(lacking())
}

#[cfg(not(feature = "nats"))]
fn lacking() -> String {
    let install = crate::config::lacking("nats").unwrap_or_default();
    format!("this greenroom was built without `nats`; install one that has it: {install}")
}
