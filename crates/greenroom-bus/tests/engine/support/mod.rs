//! Parts that a test can see into, and make fail.

pub(crate) mod handlers;
pub(crate) mod letters;
pub(crate) mod sink;
pub(crate) mod source;

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{Engine, EngineBuilder, HandlerConfig, PoolConfig, Retry, RunReport},
    event::Event,
    handler::HandlerFactory,
};

use self::{letters::MemoryLetters, sink::MemorySink};

/// Longer than any run may take, in virtual time.
pub(crate) const HANG: Duration = Duration::from_secs(100_000);

pub(crate) fn event(id: impl ToString, ty: &str, key: Option<&str>) -> Event {
    let event = Event::builder(id.to_string(), "test", ty);
    match key {
        Some(key) => event.subject(key).build().unwrap(),
        None => event.build().unwrap(),
    }
}

/// An event with data that takes so many bytes, in base64.
pub(crate) fn sized(id: impl ToString, ty: &str, key: Option<&str>, bytes: usize) -> Event {
    let event = Event::builder(id.to_string(), "test", ty).data_binary(vec![0; bytes / 4 * 3]);
    match key {
        Some(key) => event.subject(key).build().unwrap(),
        None => event.build().unwrap(),
    }
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A handler for these types, ordered by subject, with attempts at once after one another.
pub(crate) fn on(types: &[&str], factory: Arc<dyn HandlerFactory>) -> HandlerConfig {
    let on = types.iter().map(|ty| ty.parse().unwrap()).collect();
    let backoff = greenroom::Backoff::new(ms(10), ms(100));
    HandlerConfig {
        order_by: Some("subject".parse().unwrap()),
        retry: Some(Retry { attempts: 3, backoff, total: None }),
        ..HandlerConfig::new(on, factory)
    }
}

pub(crate) fn pool(workers: usize, queue: usize) -> PoolConfig {
    PoolConfig { workers, queue, ..PoolConfig::default() }
}

/// An engine whose output and dead letters can be looked into.
pub(crate) struct Bench {
    pub(crate) engine: EngineBuilder,
    pub(crate) sink: Arc<MemorySink>,
    pub(crate) letters: Arc<MemoryLetters>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(MemorySink::default(), MemoryLetters::default())
    }

    pub(crate) fn with(sink: MemorySink, letters: MemoryLetters) -> Self {
        let (sink, letters) = (Arc::new(sink), Arc::new(letters));
        let engine = Engine::builder()
            .output("out", vec!["**".parse().unwrap()], sink.clone())
            .dead_letters(letters.clone());
        Self { engine, sink, letters }
    }

    pub(crate) fn set(mut self, set: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        self.engine = set(self.engine);
        self
    }

    /// Runs to the end. The report adds up, and nothing left out of order.
    pub(crate) async fn run(self) -> RunReport {
        let engine = self.engine.build().await.unwrap();
        checked(tokio::time::timeout(HANG, engine.run()).await.expect("the run did not end"))
    }
}

pub(crate) fn checked(report: RunReport) -> RunReport {
    assert!(report.adds_up(), "{report:?}");
    assert_eq!(report.out_of_order, 0, "{report:?}");
    assert_eq!(report.dead_letters_by_reason.values().sum::<u64>(), report.dead_lettered);
    report
}
