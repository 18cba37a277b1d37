//! A whole engine on virtual time, between a broker and an output in memory: for tests of your own
//! handlers and routers (V02).
//!
//! ```text
//! events ─▶ broker of three partitions ─▶ your engine: router, pools, handlers ─▶ output in memory
//!             │ chaos(seed): repeats,        │ chaos: attempts are late, fail,       └▶ StageRun
//!             └ rebalances, gaps             └ or lose their answer
//! ```
//!
//! Time jumps to the next moment at which something happens, so a run of an hour takes
//! milliseconds. Everything else is that of a real run: order, retries, settlement, commits,
//! partitions that are revoked under load.
//!
//! ```
//! use std::sync::Arc;
//!
//! use greenroom_bus::{
//!     codec::Decoders,
//!     engine::{HandlerConfig, PoolConfig},
//!     event::Event,
//!     handler::{Outputs, typed::TypedFactory},
//! };
//! use greenroom_test::{Stage, assert_order, assert_settled};
//!
//! // The handler under test: it makes a price of each order.
//! let prices = |cents: u64, order: Event| async move {
//!     let price = Event::builder(format!("{}-price", order.id()), "/prices", "price.set");
//!     Ok(Outputs::Events(vec![price.data_json(&(cents * 2)).build()?]))
//! };
//! let prices = Arc::new(TypedFactory::new(Decoders::json(), prices));
//!
//! let order = |n: u64| {
//!     let order = Event::builder(n.to_string(), "/shop", "order.placed");
//!     order.subject(format!("customer-{}", n % 5)).data_json(&n).build().unwrap()
//! };
//! let run = Stage::new((0..200).map(order)).chaos(7).run(|engine| {
//!     let on = vec!["order.*".parse().unwrap()];
//!     let order_by = Some("subject".parse().unwrap());
//!     engine
//!         .pool("default", PoolConfig { workers: 8, ..PoolConfig::default() })
//!         .handler("prices", HandlerConfig { order_by, ..HandlerConfig::new(on, prices) })
//! });
//! assert_settled!(run);
//! assert_order!(run);
//! assert!(run.outputs().len() >= 200 && run.letters().is_empty());
//! ```
//!
//! A failure names the seed, and how to repeat it:
//!
//! ```text
//! the order was not kept:
//!   17 of key customer-2 began at `prices` while 12 of that key was in hand
//! seed 7: `.chaos(7)` repeats it; with `.chaos(greenroom_test::seed())`, GREENROOM_SEED=7
//! ```
//!
//! # When to use something else
//! A handler alone needs no engine: call it. A pool without events is tested by
//! `#[tokio::test(start_paused = true)]`. For a connector, there is
//! [`conformance`](mod@crate::conformance).

mod chaos;
mod letters;
mod run;
mod sink;
mod watch;

use std::{hash::BuildHasher, sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{Engine, EngineBuilder, HandlerConfig, InputConfig, PoolConfig},
    event::{Event, OrderBy},
    handler::HandlerFactory,
    layer::Layers,
    pattern::Pattern,
};
use tokio::{
    runtime::{Builder, Handle},
    time::timeout,
};

use self::{chaos::Chaos, letters::StageLetters, sink::StageSink, watch::Watch};
use crate::partitioned::{Broker, BrokerOptions};

pub use self::{
    run::StageRun,
    watch::{AttemptEnd, SeenAttempt},
};

/// Partitions of the broker.
const PARTITIONS: u32 = 3;

/// No run takes longer, in virtual time: after that, it is stopped, and is not settled.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Workers of the pool of a handler that is run without an engine of its own.
const WORKERS: usize = 8;

/// Events, and the conditions under which they are handled.
#[derive(Debug, Clone)]
#[must_use = "nothing happens before it is run"]
pub struct Stage {
    events: Vec<Event>,
    order_by: OrderBy,
    chaos: Option<u64>,
}

impl Stage {
    /// These events, in this order. Those of one subject are in one partition.
    pub fn new(events: impl IntoIterator<Item = Event>) -> Self {
        let order_by = "subject".parse();
        let order_by = order_by.unwrap_or_else(|error| unreachable!("`subject` is a key: {error}"));
        Self { events: events.into_iter().collect(), order_by, chaos: None }
    }

    /// Events with the same value here belong to one partition, and their order is checked.
    /// Default: `subject`. Name the `order_by` of your handlers.
    pub fn order_by(self, order_by: OrderBy) -> Self {
        Self { order_by, ..self }
    }

    /// Disturbs the run, the same attempts for one seed in the same way: positions have gaps,
    /// events come twice, partitions are revoked and come back; of each event, the first or the
    /// first two attempts may be late, fail, or succeed and lose their answer.
    /// [`seed()`](crate::seed()) gives another seed each time.
    pub fn chaos(self, seed: u64) -> Self {
        Self { chaos: Some(seed), ..self }
    }

    /// Runs the events through the engine that `build` makes: it adds pools and handlers, or a
    /// router. The stage adds the input, an output for all results that go to no other, and the
    /// place of dead letters.
    ///
    /// # Panics
    /// The engine cannot be built; or it is called in a tokio runtime: use `#[test]`, not
    /// `#[tokio::test]`.
    pub fn run(self, build: impl FnOnce(EngineBuilder) -> EngineBuilder) -> StageRun {
        assert!(Handle::try_current().is_err(), "a stage has a runtime of its own: use #[test]");
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
        runtime.block_on(self.play(build))
    }

    /// Runs the events through this handler alone, in a pool of eight workers.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_handler(self, factory: impl HandlerFactory) -> StageRun {
        let order_by = Some(self.order_by);
        let config = HandlerConfig { order_by, ..HandlerConfig::new(all(), Arc::new(factory)) };
        let pool = PoolConfig { workers: WORKERS, ..PoolConfig::default() };
        self.run(|engine| engine.pool("default", pool).handler("handler", config))
    }

    async fn play(self, build: impl FnOnce(EngineBuilder) -> EngineBuilder) -> StageRun {
        let seed = self.chaos.unwrap_or(1);
        let chaos = self.chaos.map(Chaos::new);
        let broker = Broker::new(match chaos {
            Some(_) => BrokerOptions { seed, gaps: 0.05, repeats: 0.1, ..BrokerOptions::default() },
            None => BrokerOptions::default(),
        });
        let watch = Arc::new(Watch::new(&self.events, self.order_by));
        self.publish(&broker);
        let (sink, letters) = (StageSink::new(chaos), Arc::new(StageLetters::default()));
        let engine = Engine::builder()
            .seed(seed)
            .layers(&Layers::new().layer(watch::WatchLayer::new(&watch, chaos)))
            .input_named("broker", InputConfig::default(), broker.source());
        let engine = build(engine)
            .output("stage", all(), sink.clone())
            .dead_letters(letters.clone())
            .build();
        let engine = engine.await.unwrap_or_else(|error| panic!("no engine: {error}"));
        let control = engine.control();
        let running = tokio::spawn(engine.run());
        let is_done = |broker: &Broker| {
            let is_done = |of| broker.undone(of).is_empty() && broker.open(of) == 0;
            broker.partitions().into_iter().all(is_done)
        };
        let played = async {
            if let Some(chaos) = chaos {
                chaos.rebalance(&broker, is_done).await;
            }
            broker.until(is_done).await;
        };
        let is_settled = timeout(LONGEST, played).await.is_ok();
        broker.end();
        if !is_settled {
            control.stop_now();
        }
        let report = running.await.unwrap_or_else(|error| panic!("the run broke: {error}"));
        let ledger = control.ledger();
        StageRun::new((report, ledger), self.chaos, &broker, &watch, &sink, &letters)
    }

    fn publish(&self, broker: &Broker) {
        for (place, event) in self.events.iter().enumerate() {
            let key = self.order_by.key(event).ok().flatten();
            let hash = key.map(|key| foldhash::quality::FixedState::default().hash_one(&*key));
            let number = hash.unwrap_or(place as u64);
            let partition = u32::try_from(number % u64::from(PARTITIONS)).unwrap_or_default();
            broker.publish(partition, [event.clone()]);
        }
        // All of them are there, so that the broker knows them.
        (0..PARTITIONS).for_each(|partition| broker.skip(partition, 0));
    }
}

/// Every type.
fn all() -> Vec<Pattern> {
    vec!["**".parse().unwrap_or_else(|error| unreachable!("`**` is a pattern: {error}"))]
}

/// Every event was settled: it was acknowledged once, nothing of it is open, no commit covers an
/// event that is not done, and the report of the run adds up.
///
/// # Panics
/// Something was not. The message names the events, and the seed that repeats it.
#[macro_export]
macro_rules! assert_settled {
    ($run:expr $(,)?) => {
        if let Err(why) = $run.check_settled() {
            panic!("{why}");
        }
    };
}

/// The events of each key were handled one at a time, and in their order.
///
/// # Panics
/// They were not. The message names the events, and the seed that repeats it.
#[macro_export]
macro_rules! assert_order {
    ($run:expr $(,)?) => {
        if let Err(why) = $run.check_order() {
            panic!("{why}");
        }
    };
}
