//! An engine over a stream whose handlers do not keep up, or never return (Z09, Z13).

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use async_nats::jetstream::stream::StorageType;
use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Control, Engine, HandlerConfig, PoolConfig, RunReport},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_nats::{NatsInput, source::NatsSource};
use tokio::{sync::watch, task::JoinHandle};

use crate::server::{TestStream, until};

const WORKERS: usize = 4;

/// Takes a millisecond, and notes what it has handled. Events that are `stuck` wait until they are
/// let go.
#[derive(Clone)]
struct Stuck {
    stuck: fn(u64) -> bool,
    let_go: watch::Receiver<bool>,
    handled: Arc<Mutex<Vec<u64>>>,
}

impl HandlerFactory for Stuck {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Stuck {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        let number = event.id().parse().unwrap();
        Handling::Later(Box::pin(async move {
            if (self.stuck)(number) {
                self.let_go.wait_for(|let_go| *let_go).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.handled.lock().unwrap().push(number);
            Ok(Outputs::None)
        }))
    }
}

struct Running {
    handled: Arc<Mutex<Vec<u64>>>,
    let_go: watch::Sender<bool>,
    control: Control,
    report: JoinHandle<RunReport>,
    _letters: tempfile::TempDir,
}

impl Running {
    async fn start(options: NatsInput, deadline: Duration, stuck: fn(u64) -> bool) -> Self {
        let source = NatsSource::open(options, None).await.unwrap();
        let (let_go, when) = watch::channel(false);
        let handled = Arc::default();
        let handler = Stuck { stuck, let_go: when, handled: Arc::clone(&handled) };
        let on = vec!["**".parse().unwrap()];
        let order_by = Some("subject".parse().unwrap());
        let handler = HandlerConfig { order_by, ..HandlerConfig::new(on, Arc::new(handler)) };
        let letters = tempfile::tempdir().unwrap();
        let store = FileDeadLetterStore::open(letters.path().join("dead")).unwrap();
        let engine = Engine::builder()
            .input(Box::new(source))
            .pool("default", PoolConfig { workers: WORKERS, ..PoolConfig::default() })
            .handler("stuck", handler)
            .dead_letters(Arc::new(store))
            .deadline(deadline)
            .build()
            .await
            .unwrap();
        let control = engine.control();
        let report = tokio::spawn(engine.run());
        Self { handled, let_go, control, report, _letters: letters }
    }

    fn count(&self) -> usize {
        self.handled.lock().unwrap().len()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn z09_a_stop_under_load_gives_back_what_it_abandons() {
    const EVENTS: u64 = 10_000;
    const DEADLINE: Duration = Duration::from_secs(1);
    let Some(stream) = TestStream::new("z09_stop").await else { return };
    stream.publish(0..EVENTS, 0).await;
    // One never returns, and the others are far from done by the deadline.
    let first = Running::start(stream.options(), DEADLINE, |number| number == 17).await;
    until("some handled", async || first.count() >= 100).await;
    let asked = Instant::now();
    first.control.drain();
    let report = first.report.await.unwrap();
    assert!(asked.elapsed() < DEADLINE + Duration::from_secs(1), "{:?}", asked.elapsed());
    assert!(report.given_back > 0, "{report:?}");
    let done = first.handled.lock().unwrap().clone();
    let second = Running::start(stream.options(), DEADLINE, |_| false).await;
    let all = async || {
        let again = second.handled.lock().unwrap();
        done.iter().chain(&*again).collect::<HashSet<_>>().len() as u64 == EVENTS
    };
    until("all handled", all).await;
    second.control.drain();
    second.report.await.unwrap();
    let handled = second.handled.lock().unwrap().len() + done.len();
    // Each worker may have been stopped between an event and its settlement.
    let repeated = handled as u64 - EVENTS;
    assert!(repeated <= WORKERS as u64, "{repeated} were handled, and not acknowledged by the end");
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z13_slow_handlers_cost_no_delivery_and_hold_up_their_own_keys_alone() {
    const KEYS: u64 = 10;
    let Some(address) = crate::server::address("z13_slow") else { return };
    let stream = TestStream::at(address, StorageType::Memory).await;
    stream.publish(0..1_000, KEYS).await;
    // Of one key of ten, each event would take for ever.
    let options = NatsInput { ack_wait: Duration::from_secs(2), ..stream.options() };
    let ack_wait = options.ack_wait;
    let slow = |number| number % KEYS == 3;
    let running = Running::start(options, Duration::from_secs(30), slow).await;
    until("the others handled", async || running.count() == 900).await;
    // Only time can show that nothing comes back.
    tokio::time::sleep(ack_wait * 2).await;
    let consumer = stream.consumer("greenroom").await;
    assert_eq!((consumer.num_redelivered, consumer.num_ack_pending), (0, 100));
    running.let_go.send_replace(true);
    until("all handled", async || running.count() == 1_000).await;
    running.control.drain();
    let report = running.report.await.unwrap();
    assert_eq!((report.handled, report.refused), (1_000, 0));
    let of_key: Vec<u64> =
        running.handled.lock().unwrap().iter().copied().filter(|n| slow(*n)).collect();
    assert!(of_key.is_sorted());
    stream.remove().await;
}
