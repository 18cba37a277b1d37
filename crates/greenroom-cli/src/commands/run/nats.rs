//! Inputs, outputs and dead letters of NATS, where this build has them.

use std::sync::Arc;

use greenroom_bus::{dead_letter::DeadLetterStore, sink::Sink};
#[cfg(feature = "nats")]
use greenroom_nats::output::{NatsDeadLetters, NatsSink};

#[cfg(not(feature = "nats"))]
use crate::config::lacking;
use crate::config::{NatsLetters, NatsOutput};

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
pub(super) async fn sink(_: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    Err(lacking("nats").unwrap_or_default())
}

#[cfg(not(feature = "nats"))]
pub(super) async fn letters(_: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    Err(lacking("nats").unwrap_or_default())
}
