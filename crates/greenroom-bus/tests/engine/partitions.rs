//! Partitions that are paused, drained and taken away one by one (D15).

mod asking;
mod leases;
mod pausing;
mod revoking;
mod views;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom_bus::{
    BoxFuture,
    engine::{
        Control, Engine, HandlerConfig, InputConfig, LoopbackConfig, PartitionView, PoolConfig,
        RunReport,
    },
    event::Event,
    handler::{
        Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling, Outputs,
    },
    settlement::{Outcome, Refusal, Settled},
    sink::{Outgoing, Sink, SinkError},
    source::{Lease, Partition, PartitionStanding, Pull, Pulling, Source, Taken},
};
use greenroom_test::partitioned::Broker;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::{handle, pass, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    sized,
    source::Step,
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);
const REVOKED: Settled = Settled::Refused(Refusal::Revoked);

/// What was started, and may end when the test says so.
#[derive(Clone)]
struct Gate {
    started: Arc<Mutex<Vec<String>>>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { started: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    fn handler(&self) -> Arc<dyn HandlerFactory> {
        let gate = self.clone();
        handle(move |event, _| {
            let gate = gate.clone();
            async move {
                gate.started.lock().push(event.id().to_owned());
                gate.open.acquire().await.unwrap().forget();
                Ok(Outputs::Same)
            }
        })
    }

    fn open(&self) {
        self.open.add_permits(1_000_000);
    }

    fn started(&self) -> Vec<String> {
        self.started.lock().clone()
    }
}

struct Running {
    broker: Broker,
    control: Control,
    run: JoinHandle<RunReport>,
    letters: Arc<MemoryLetters>,
}

impl Running {
    async fn new(config: InputConfig, bench: Bench) -> Self {
        let broker = Broker::default();
        let letters = bench.letters.clone();
        let engine = bench.engine.input_named("broker", config, broker.source());
        let engine = engine.build().await.unwrap();
        let control = engine.control();
        Self { broker, control, run: tokio::spawn(engine.run()), letters }
    }

    async fn ended(self) -> RunReport {
        self.broker.end();
        let report = tokio::time::timeout(crate::engine::support::HANG, self.run).await;
        assert_eq!(self.broker.misuse(), [""; 0]);
        checked(report.expect("the run did not end").unwrap())
    }

    fn partition(&self, partition: u32) -> Option<PartitionView> {
        let views = self.control.input_views().remove(0).partitions;
        views.into_iter().find(|view| view.partition == Partition(partition))
    }
}

fn events(prefix: &str, count: usize) -> Vec<Event> {
    (0..count)
        .map(|n| event(format!("{prefix}{n}"), "made", Some(&format!("{prefix}{n}"))))
        .collect()
}

/// All of one key.
fn of_key(prefix: &str, count: usize) -> Vec<Event> {
    (0..count).map(|n| event(format!("{prefix}{n}"), "made", Some(prefix))).collect()
}

async fn a_while() {
    tokio::time::sleep(ms(500)).await;
}

fn how(settled: &[(u64, Settled)]) -> Vec<Settled> {
    settled.iter().map(|(_, how)| *how).collect()
}

/// What the gate holds is in hand for as long as the test wants.
async fn held(events_of_each: usize) -> (Running, Gate) {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 10)).handler("held", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", events_of_each));
    running.broker.publish(1, events("b", events_of_each));
    a_while().await;
    (running, gate)
}
