//! What the options open.

use std::sync::Arc;

use greenroom::Backoff;
use greenroom_bus::{
    dead_letter::{
        DeadLetterStore,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
    sink::Sink,
    source::{InputSetup, Source},
};
use tokio::runtime;

use super::{NatsInput, NatsLetters, NatsOutput};
use crate::{
    RedriveOptions,
    output::{NatsDeadLetters, NatsSink, NatsSinkOptions},
    source::{NatsLooking, NatsSource, NatsSourceOptions},
};

/// Connects, and finds or makes the consumer.
pub(super) async fn source(
    nats: &NatsInput,
    setup: &InputSetup,
) -> Result<Box<dyn Source>, String> {
    let source = NatsSource::open(&nats.server(), options(nats, setup)).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What the consumer has not done, up to what is there now. The consumer is left alone.
pub(super) async fn looking(
    nats: &NatsInput,
    setup: &InputSetup,
) -> Result<Box<dyn Source>, String> {
    let source = NatsLooking::open(&nats.server(), options(nats, setup)).await;
    Ok(Box::new(source.map_err(|error| error.to_string())?))
}

/// What is taken and not settled is with the input and the pools, which decide how much that may
/// be.
fn options(nats: &NatsInput, setup: &InputSetup) -> NatsSourceOptions {
    NatsSourceOptions {
        filters: nats.subjects.clone().unwrap_or_default(),
        partitions: nats.partitions.clone().map_or_else(Vec::new, |partitions| partitions.0),
        start: nats.start,
        capacity: nats.capacity.unwrap_or(setup.room),
        batch: nats.batch,
        batch_bytes: nats.batch_bytes,
        ack_wait: nats.ack_wait,
        hold_bytes: nats.hold,
        key: nats.key.clone(),
        records: setup.records.clone().map(Arc::new),
        ..NatsSourceOptions::new(&nats.stream, &nats.consumer)
    }
}

/// Connects.
pub(super) async fn sink(nats: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    let options = NatsSinkOptions {
        mode: nats.mode,
        concurrency: nats.concurrency,
        backoff: Backoff::new(nats.backoff.from, nats.backoff.to),
        probe: Backoff::new(nats.probe.from, nats.probe.to),
        ..NatsSinkOptions::new(nats.subject.clone())
    };
    let sink = NatsSink::open(&nats.server(), options).await;
    Ok(Arc::new(sink.map_err(|error| error.to_string())?))
}

/// Connects.
pub(super) async fn letters(nats: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    let letters = NatsDeadLetters::open(&nats.server(), nats.subject.clone()).await;
    Ok(Arc::new(letters.map_err(|error| error.to_string())?))
}

/// Publishes the messages of letters again, on a runtime of its own.
pub(super) fn redrive(
    letters: &NatsLetters,
    choice: LetterChoice,
    inputs: &[InputOfLetters<'_>],
    tells: &mut dyn FnMut(&Redriven),
) -> Result<Redriven, String> {
    let inputs = inputs.iter().filter_map(|(kind, setup)| {
        let nats = kind.as_any().downcast_ref::<NatsInput>()?;
        Some((setup.name.clone(), nats.server()))
    });
    let inputs = inputs.collect();
    let options = RedriveOptions { choice, inputs, ..RedriveOptions::new(letters.subject.clone()) };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    let redriven = runtime.block_on(crate::redrive(&letters.server(), &options, tells));
    redriven.map_err(|why| why.to_string())
}
