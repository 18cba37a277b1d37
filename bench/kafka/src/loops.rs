//! Loops that poll: what librdkafka gives, what it costs to make events of that, and to commit.

use std::{
    str,
    time::{Duration, Instant},
};

use greenroom_bus::event::Event;
use rdkafka::{
    ClientConfig, Message,
    consumer::{BaseConsumer, CommitMode, Consumer},
    message::{BorrowedMessage, Headers},
};

use crate::{Failure, run::Run, side::Task, tally::Tally};

/// What a loop does with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Nothing,
    /// Makes an event, with a copy of the value.
    Copies,
    /// The same, and commits as often as the engine does.
    Commits,
}

pub fn run(task: &Task, does: Does) -> Result<Run, Failure> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &task.broker)
        .set("group.id", &task.group)
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        // A loop that is slower than the broker is not to wait for the next fetch.
        .set("fetch.queue.backoff.ms", "10")
        .create()?;
    consumer.subscribe(&[&task.topic])?;
    let tally = Tally::new(task.events);
    let mut committed = Instant::now();
    loop {
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message?;
        tally.begins();
        if does != Does::Nothing {
            let event = event(&message)?;
            std::hint::black_box(&event);
        }
        if tally.handled() {
            break;
        }
        if does == Does::Commits && committed.elapsed() >= task.commits {
            consumer.commit_consumer_state(CommitMode::Async)?;
            committed = Instant::now();
        }
    }
    if does == Does::Commits {
        consumer.commit_consumer_state(CommitMode::Sync)?;
    }
    Ok(tally.run())
}

/// As the Kafka binding of CloudEvents says, in binary mode.
fn event(message: &BorrowedMessage<'_>) -> Result<Event, Failure> {
    let headers = message.headers().ok_or("a record without headers")?;
    let (mut id, mut source, mut ty) = ("", "", "");
    for header in headers.iter() {
        let value = str::from_utf8(header.value.unwrap_or_default())?;
        match header.key {
            "ce_id" => id = value,
            "ce_source" => source = value,
            "ce_type" => ty = value,
            _ => {}
        }
    }
    let key = str::from_utf8(message.key().unwrap_or_default())?;
    let event = Event::builder(id, source, ty)
        .extension("partitionkey", key)
        .data_binary(message.payload().unwrap_or_default().to_vec());
    Ok(event.build()?)
}
