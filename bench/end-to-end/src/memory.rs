//! From memory to nowhere: what an event costs in the engine, without reading, parsing and writing.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig},
    event::{Event, OrderBy},
    handler::discard::DiscardFactory,
    source::{Pull, Pulling, Source, Taken},
};

use crate::{Failure, WORKERS, clean, random::Random};

/// Events of one pull.
const BATCH: u64 = 1_024;
/// Different events, each with a subject and a payload of its own. They are made before the clock
/// starts, and given again and again in a random order. So many stay in the caches, as what a
/// connector has just read does: with 16,384 a third of the time goes to fetching what the engine
/// is given.
const DIFFERENT: u64 = 4_096;
/// Of bytes that nobody parses.
const PAYLOAD: usize = 256;

struct Memory {
    events: Vec<Event>,
    random: Random,
    given: u64,
    count: u64,
}

impl Memory {
    fn new(count: u64) -> Result<Self, Failure> {
        let event = |number: u64| {
            let event = Event::builder(number.to_string(), "/bench/memory", "bench.raw")
                .subject(format!("customer-{number}"))
                .datacontenttype("application/octet-stream")
                .data_binary(vec![number as u8; PAYLOAD])
                .build();
            Ok::<_, Failure>(event?)
        };
        let events = (0..DIFFERENT).map(event).collect::<Result<_, _>>()?;
        Ok(Self { events, random: Random::new(), given: 0, count })
    }
}

impl Source for Memory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        for _ in 0..BATCH.min(self.count - self.given) {
            self.given += 1;
            let event = &self.events[(self.random.next() % DIFFERENT) as usize];
            into.push(Taken { position: self.given, event: Ok(event.clone()) });
        }
        let is_over = self.given == self.count;
        Box::pin(async move { Ok(if is_over { Pull::End } else { Pull::More }) })
    }

    fn replayable(&self) -> bool {
        false
    }
}

/// The engine over events of memory, whose handlers do nothing, in order of their subjects: how
/// long it took, and for how many. What is made beforehand does not count.
pub async fn engine(count: u64, dead_letters: &Path) -> Result<(Duration, u64), Failure> {
    run(count, dead_letters, Some("subject".parse()?)).await
}

/// As [`engine`], in any order.
pub async fn in_any_order(count: u64, dead_letters: &Path) -> Result<(Duration, u64), Failure> {
    run(count, dead_letters, None).await
}

async fn run(
    count: u64,
    dead_letters: &Path,
    order_by: Option<OrderBy>,
) -> Result<(Duration, u64), Failure> {
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(DiscardFactory));
    handler.order_by = order_by;
    let engine = Engine::builder()
        .input(Box::new(Memory::new(count)?))
        .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
        .handler("all", handler)
        .dead_letters(Arc::new(FileDeadLetterStore::open(dead_letters)?))
        .build()
        .await?;
    let start = Instant::now();
    let events = clean(&engine.run().await)?;
    Ok((start.elapsed(), events))
}
