//! Inputs, outputs and dead letters of NATS, where this build has them.

use std::sync::Arc;

use greenroom_bus::dead_letter::DeadLetterStore;
#[cfg(feature = "nats")]
use greenroom_nats::output::NatsDeadLetters;

use crate::config::NatsLetters;
#[cfg(not(feature = "nats"))]
use crate::config::lacking;

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
pub(super) async fn letters(_: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    Err(lacking("nats").unwrap_or_default())
}
