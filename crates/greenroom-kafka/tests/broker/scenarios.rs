//! Scenarios that every connector passes, with the engine on a broker in this process (Z03, Z08,
//! Z11). Z01, Z02, Z07, Z12 and Z13 are beside this file.

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use greenroom_bus::{
    BoxFuture,
    dead_letter::{DeadLetter, DeadLetterStore},
    engine::{Engine, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{
        Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling, Outputs,
    },
    source::Source,
};
use greenroom_kafka::{commit_set, source::KafkaSource};
use krafka::{
    error::ErrorCode,
    testing::{ApiKey, Control, FakeBroker},
};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use tokio::sync::{Semaphore, mpsc};

use super::{
    fake::fake,
    support::{NoLetters, PATIENCE, Publisher, config, event, options},
};

const TOPIC: &str = "orders";
const GROUP: &str = "billing";

pub(crate) type Handles = dyn Fn(Event) -> BoxFuture<'static, HandlerResult> + Send + Sync;

/// A handler that is a function.
#[derive(Clone)]
struct Of(Arc<Handles>);

impl HandlerFactory for Of {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Of {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later((self.0)(event.clone()))
    }
}

/// Dead letters whose place is there.
#[derive(Clone, Default)]
struct Letters(Arc<Mutex<Vec<String>>>);

impl DeadLetterStore for Letters {
    fn describe(&self) -> String {
        "letters".to_owned()
    }

    fn store(&self, letter: DeadLetter) {
        self.0.lock().unwrap().push(letter.event.unwrap().id().to_owned());
        letter.ack.confirm();
    }
}

fn source(fake: &FakeBroker) -> KafkaSource {
    let options = options(&fake.bootstrap_servers(), GROUP, &[TOPIC.to_owned()]);
    KafkaSource::open(options, None).unwrap()
}

pub(crate) async fn engine(
    source: KafkaSource,
    input: InputConfig,
    letters: Arc<dyn DeadLetterStore>,
    handles: Arc<Handles>,
) -> Engine {
    let handler = HandlerConfig {
        order_by: Some("subject".parse().unwrap()),
        ..HandlerConfig::new(vec!["**".parse().unwrap()], Arc::new(Of(handles)))
    };
    let pool = PoolConfig { workers: 4, ..PoolConfig::default() };
    let engine = Engine::builder()
        .input_named("input", input, Box::new(source) as Box<dyn Source>)
        .pool("default", pool)
        .handler("all", handler)
        .dead_letters(letters)
        .build();
    engine.await.unwrap()
}

fn stored(fake: &FakeBroker) -> Option<(u64, String)> {
    fake.with_state(|state| {
        let of = state.groups.get(GROUP)?.offsets.get(&(TOPIC.to_owned(), 0))?;
        Some((of.offset.unsigned_abs(), of.metadata.clone().unwrap_or_default()))
    })
}

/// Runs ten events, of which the sixth is rejected, to the end.
async fn with_poison(letters: Arc<dyn DeadLetterStore>) -> (u64, String) {
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 1));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..10).for_each(|number| publisher.event(TOPIC, 0, &event(number, &format!("k{number}"))));
    publisher.flush();
    let (tell, mut told) = mpsc::unbounded_channel();
    let handles = move |event: Event| -> BoxFuture<'static, HandlerResult> {
        tell.send(()).unwrap();
        Box::pin(ready(match event.id() {
            "5" => Err(Failure::new(FailureKind::Reject, "it is poison")),
            _ => Ok(Outputs::None),
        }))
    };
    let engine = engine(source(&fake), InputConfig::default(), letters, Arc::new(handles)).await;
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    for _ in 0..10 {
        tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
    }
    control.drain();
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert!(report.adds_up(), "{report:?}");
    stored(&fake).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z03_a_poisoned_event_is_a_letter_and_holds_up_nothing() {
    let letters = Letters::default();
    assert_eq!(with_poison(Arc::new(letters.clone())).await, (10, String::new()));
    assert_eq!(*letters.0.lock().unwrap(), ["5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z03_with_the_place_of_letters_down_a_poisoned_event_stays_open() {
    let (offset, text) = with_poison(Arc::new(NoLetters)).await;
    let positions = commit_set::decode(offset, &text).unwrap();
    assert!((0..10).all(|at| positions.is_done(at) == (at != 5)), "{positions:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z08_what_is_in_hand_and_comes_again_is_never_handled_twice_at_once() {
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 1));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..10).for_each(|number| publisher.event(TOPIC, 0, &event(number, "k")));
    publisher.flush();
    let (gate, at_once) = (Arc::new(Semaphore::new(3)), Arc::new(AtomicUsize::new(0)));
    let (tell, mut told) = mpsc::unbounded_channel();
    let opens = gate.clone();
    let handles = move |event: Event| -> BoxFuture<'static, HandlerResult> {
        let (gate, at_once, tell) = (gate.clone(), at_once.clone(), tell.clone());
        Box::pin(async move {
            assert_eq!(at_once.fetch_add(1, Ordering::SeqCst), 0, "two of a key at once");
            gate.acquire().await.unwrap().forget();
            at_once.fetch_sub(1, Ordering::SeqCst);
            tell.send(event.id().parse::<u64>().unwrap()).unwrap();
            Ok(Outputs::None)
        })
    };
    let (letters, input) = (Arc::new(NoLetters), InputConfig::default());
    let engine = engine(source(&fake), input, letters, Arc::new(handles)).await;
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let mut done = Vec::new();
    for _ in 0..3 {
        done.push(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap());
    }
    // The fourth is in hand while its partition is lost, and comes again with all behind it.
    let joined = fake.request_count(ApiKey::JoinGroup);
    let fetched = fake.request_count(ApiKey::OffsetFetch);
    fake.on_once(ApiKey::Heartbeat, |_| Control::Error(ErrorCode::UnknownMemberId));
    let is_back = || fake.request_count(ApiKey::OffsetFetch) > fetched;
    tokio::task::block_in_place(|| super::support::until("a new assignment", is_back));
    assert!(fake.request_count(ApiKey::JoinGroup) > joined);
    opens.add_permits(1_000);
    while done.last() != Some(&9) {
        done.push(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap());
    }
    control.drain();
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert!(report.adds_up(), "{report:?}");
    assert_eq!(stored(&fake), Some((10, String::new())));
    let mut first = done.clone();
    first.sort_unstable();
    first.dedup();
    assert!(first.into_iter().eq(0..10), "{done:?}");
}

/// An event of 20 MiB among small ones.
async fn with_a_huge_one(in_flight_bytes: u64) {
    const HUGE: usize = 20 << 20;
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 1));
    let producer: BaseProducer = config(&fake.bootstrap_servers())
        .set("message.max.bytes", (HUGE * 2).to_string())
        .create()
        .unwrap();
    for number in 0..30 {
        let bytes = if number == 10 { HUGE } else { 1_024 };
        let event = Event::builder(number.to_string(), "tests", "made")
            .subject(format!("k{number}"))
            .data_json(&"x".repeat(bytes))
            .build()
            .unwrap();
        let mut json = Vec::new();
        event.write_json(&mut json);
        let record = BaseRecord::<str, [u8]>::to(TOPIC).partition(0).payload(&json);
        producer.send(record).map_err(|(error, _)| error).unwrap();
    }
    producer.flush(PATIENCE).unwrap();
    let (tell, mut told) = mpsc::unbounded_channel();
    let handles = move |event: Event| -> BoxFuture<'static, HandlerResult> {
        tell.send(event.id().to_owned()).unwrap();
        Box::pin(ready(Ok(Outputs::None)))
    };
    let input = InputConfig { in_flight_bytes, ..InputConfig::default() };
    let engine = engine(source(&fake), input, Arc::new(NoLetters), Arc::new(handles)).await;
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    for _ in 0..30 {
        tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();
    }
    control.drain();
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert!(report.is_clean() && report.handled == 30, "{report:?}");
    assert_eq!(stored(&fake), Some((30, String::new())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z11_a_huge_event_passes_among_small_ones() {
    with_a_huge_one(64 << 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z11_an_event_that_is_larger_than_all_room_passes_alone() {
    with_a_huge_one(8 << 20).await;
}

/// As many as are in hand end, the others are given back: the group is left with what is done
/// committed, and its next member is given the rest.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g05_a_stop_gives_back_a_backlog_and_the_next_member_is_given_it() {
    const EVENTS: u64 = 2_000;
    let fake = fake();
    assert!(fake.create_topic(TOPIC, 1));
    let publisher = Publisher::new(&fake.bootstrap_servers());
    (0..EVENTS).for_each(|n| publisher.event(TOPIC, 0, &event(n, &format!("k{n}"))));
    publisher.flush();
    let gate = Arc::new(Semaphore::new(0));
    let (tell, mut told) = mpsc::unbounded_channel();
    let opens = gate.clone();
    let handles = move |event: Event| -> BoxFuture<'static, HandlerResult> {
        let (gate, tell) = (opens.clone(), tell.clone());
        Box::pin(async move {
            tell.send(event.id().parse::<u64>().unwrap()).unwrap();
            gate.acquire().await.unwrap().forget();
            Ok(Outputs::None)
        })
    };
    let handles: Arc<Handles> = Arc::new(handles);
    let (letters, input) = (Arc::new(NoLetters), InputConfig::default());
    let first = engine(source(&fake), input.clone(), letters.clone(), handles.clone()).await;
    let control = first.control();
    let run = tokio::spawn(first.run());
    let mut done = Vec::new();
    for _ in 0..4 {
        done.push(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap());
    }
    control.drain();
    gate.add_permits(EVENTS as usize);
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert!(report.is_clean() && report.adds_up(), "{report:?}");
    assert_eq!((report.handled, report.given_back), (4, report.taken - 4));
    let (offset, text) = stored(&fake).unwrap();
    let positions = commit_set::decode(offset, &text).unwrap();
    assert!((0..EVENTS).all(|at| positions.is_done(at) == done.contains(&at)), "{positions:?}");

    let second = engine(source(&fake), input, letters, handles).await;
    let control = second.control();
    let run = tokio::spawn(second.run());
    while (done.len() as u64) < EVENTS {
        done.push(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap());
    }
    control.drain();
    tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    done.sort_unstable();
    assert!(done.into_iter().eq(0..EVENTS), "each once");
}
