//! The engine, with handlers that do nothing.

use std::{sync::Arc, time::Instant};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    handler::discard::DiscardFactory,
};
use greenroom_nats::{NatsInput, source::NatsSource};

use crate::{BATCH, CAPACITY, Failed, stream::Filled};

const WORKERS: usize = 64;

/// Reads all: when the server had all acknowledgements.
///
/// # Errors
/// Something went wrong, or not every event was handled once.
pub async fn read(filled: &Filled, consumer: &str) -> Result<Instant, Failed> {
    let input = NatsInput {
        capacity: Some(CAPACITY),
        batch: BATCH,
        ..NatsInput::new(&filled.address, &filled.name, consumer)
    };
    let source = NatsSource::open(input, None).await?;
    let directory = tempfile::tempdir()?;
    let letters = FileDeadLetterStore::open(directory.path().join("dead.ndjson"))?;
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(DiscardFactory));
    handler.order_by = Some("subject".parse()?);
    let engine = Engine::builder()
        .input(Box::new(source))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", handler)
        .dead_letters(Arc::new(letters))
        .build()
        .await?;
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    let acknowledged = filled.acknowledged(consumer).await?;
    control.drain();
    let report = running.await?;
    match (report.handled, report.dead_lettered, report.refused) {
        (handled, 0, 0) if handled == filled.count => Ok(acknowledged),
        _ => Err(format!("not every event was handled once: {report:?}").into()),
    }
}
