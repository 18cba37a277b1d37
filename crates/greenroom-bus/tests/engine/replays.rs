//! Dead letters that are handled again: at the end of their key's line, and at least once.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::FinalAction;
use greenroom_bus::{
    BoxFuture,
    dead_letter::{
        DeadLetter, DeadLetterStore,
        replay::{ReplayEnd, Replayed, Replays, TakenLetters},
    },
    engine::{
        Engine, EngineBuilder, HandlerConfig, LoopbackConfig, OutageConfig, PoolConfig, Retry,
        RunReport,
    },
    event::Event,
    handler::{Failure, FailureKind, Outputs},
    layer::{Deduplication, Layers},
    sink::SinkError,
    store::letters::{
        Edit, Filter, JobChange, LetterStore, LetterStoreOptions, Letters, Order, Summary,
    },
};

use crate::engine::support::{
    event,
    handlers::{answer, handle},
    on, pool,
    sink::MemorySink,
    source::{Script, Step},
};

/// Longer than a test takes. A pull that waits so long may be dropped and made again.
const LONG: Duration = Duration::from_secs(100_000);

/// A store, and what a handler has done.
struct Desk {
    directory: tempfile::TempDir,
    /// What fails.
    bad: Arc<Mutex<HashSet<String>>>,
    handled: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    fn new(bad: &[&str]) -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            bad: Arc::new(Mutex::new(bad.iter().map(|id| (*id).to_owned()).collect())),
            handled: Arc::default(),
        }
    }

    fn store(&self) -> LetterStore {
        let path = self.directory.path().join("letters");
        LetterStore::open(&path, LetterStoreOptions::default()).unwrap()
    }

    fn letters(&self) -> Vec<Summary> {
        let letters = Letters::open(&self.directory.path().join("letters")).unwrap();
        letters.list(&Filter::default(), Order::Oldest, 0, 1_000).unwrap().0
    }

    fn mend(&self) {
        self.bad.lock().unwrap().clear();
    }

    fn handled(&self) -> Vec<String> {
        self.handled.lock().unwrap().clone()
    }

    /// An engine with this handler, `h`, which rejects what is bad.
    fn engine(&self, store: &LetterStore, config: PoolConfig) -> EngineBuilder {
        let (bad, handled) = (self.bad.clone(), self.handled.clone());
        let handler = answer(move |event, _| {
            if bad.lock().unwrap().contains(event.id()) {
                return Err(Failure::new(FailureKind::Reject, "it is bad"));
            }
            handled.lock().unwrap().push(event.id().to_owned());
            Ok(Outputs::None)
        });
        Engine::builder()
            .pool("default", config)
            .handler("h", on(&["t"], handler))
            .output("out", vec!["**".parse().unwrap()], Arc::new(MemorySink::default()))
            .dead_letters(Arc::new(store.clone()))
    }

    /// Runs these events.
    async fn run(&self, events: Vec<Event>) -> RunReport {
        let store = self.store();
        let engine = self.engine(&store, pool(4, 100));
        run(engine.input_named("i", dflt(), Box::new(Script::of(events)))).await
    }
}

fn dflt() -> greenroom_bus::engine::InputConfig {
    greenroom_bus::engine::InputConfig::default()
}

async fn run(engine: EngineBuilder) -> RunReport {
    let engine = engine.build().await.unwrap();
    let report = tokio::time::timeout(Duration::from_secs(30), engine.run()).await.unwrap();
    assert!(report.adds_up(), "{report:?}");
    assert_eq!(report.out_of_order, 0, "{report:?}");
    report
}

async fn until(is_so: impl Fn() -> bool) {
    let late = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < late, "what was waited for did not come");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn never() -> Script {
    Script::new("script", [Step::Wait(LONG)])
}

#[tokio::test]
async fn c04_marked_letters_are_taken_by_the_next_start_and_leave_the_store() {
    let desk = Desk::new(&["1", "3"]);
    let events = (0..5).map(|n| event(n, "t", Some("k"))).collect();
    assert_eq!(desk.run(events).await.dead_lettered, 2);
    assert_eq!(desk.letters().len(), 2);
    let store = desk.store();
    assert_eq!(store.mark(Filter::default(), None).await.unwrap().letters, 2);
    drop(store);
    desk.mend();
    let report = desk.run(Vec::new()).await;
    assert_eq!((report.taken, report.handled), (2, 2), "the run waits for its replays");
    assert_eq!(desk.handled(), ["0", "2", "4", "1", "3"]);
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn d06_one_that_fails_again_is_one_letter() {
    let desk = Desk::new(&["1"]);
    desk.run(vec![event(1, "t", Some("k"))]).await;
    for replays in 1..=3 {
        let store = desk.store();
        store.mark(Filter::default(), None).await.unwrap();
        drop(store);
        let report = desk.run(Vec::new()).await;
        assert_eq!(report.dead_lettered, 1);
        let letters = desk.letters();
        assert_eq!((letters.len(), letters[0].number, letters[0].replays), (1, 1, replays));
        assert_eq!(letters[0].state, "stored");
    }
}

#[tokio::test]
async fn c04_a_replay_stands_behind_all_that_was_taken_of_its_key() {
    let desk = Desk::new(&["bad"]);
    desk.run(vec![event("bad", "t", Some("k"))]).await;
    desk.mend();
    let store = desk.store();
    let (gate, handled) = (Arc::new(tokio::sync::Semaphore::new(0)), desk.handled.clone());
    let opened = gate.clone();
    let slow = handle(move |event, _| {
        let (gate, handled) = (gate.clone(), handled.clone());
        async move {
            gate.acquire().await.unwrap().forget();
            handled.lock().unwrap().push(event.id().to_owned());
            Ok(Outputs::None)
        }
    });
    // A queue of two: most of the events wait beside the pool.
    let engine = Engine::builder()
        .pool("default", pool(1, 2))
        .handler("h", on(&["t"], slow))
        .dead_letters(Arc::new(store.clone()));
    let events: Vec<_> = (0..30).map(|n| Ok(event(n, "t", Some("k")))).collect();
    let script = Script::new("script", [Step::Batch(events), Step::Wait(LONG)]);
    let engine = engine.input_named("i", dflt(), Box::new(script)).build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    until(|| control.progress().taken == 30).await;
    store.mark(Filter::default(), None).await.unwrap();
    until(|| control.progress().taken == 31).await;
    opened.add_permits(100);
    until(|| control.progress().settled == 31).await;
    control.drain();
    let report = running.await.unwrap();
    assert_eq!(report.out_of_order, 0);
    let expected: Vec<_> = (0..30).map(|n| n.to_string()).chain(["bad".to_owned()]).collect();
    assert_eq!(desk.handled(), expected);
    drop(store);
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn c04_behind_a_parked_key_a_replay_waits_and_what_a_run_leaves_stays_marked() {
    let desk = Desk::new(&["bad"]);
    desk.run(vec![event("bad", "t", Some("k"))]).await;
    let config = PoolConfig { on_final_failure: FinalAction::ParkKey, ..pool(2, 10) };
    desk.bad.lock().unwrap().insert("worse".to_owned());
    let store = desk.store();
    let engine = desk.engine(&store, config);
    let script =
        Script::new("s", [Step::Batch(vec![Ok(event("worse", "t", Some("k")))]), Step::Wait(LONG)]);
    let engine = engine.input_named("i", dflt(), Box::new(script)).build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    until(|| !control.parked().is_empty()).await;
    store.mark(Filter::default(), None).await.unwrap();
    until(|| control.parked().first().is_some_and(|parked| parked.waiting == 1)).await;
    assert_eq!(desk.letters()[0].state, "in_replay");
    control.stop_now();
    running.await.unwrap();
    drop(store);
    let letters = desk.letters();
    assert_eq!((letters.len(), letters[0].state), (1, "marked"), "the next run takes it up");
    desk.mend();
    assert_eq!(desk.run(Vec::new()).await.handled, 1);
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn g05_a_stop_gives_back_replays_that_wait_and_the_next_start_takes_them() {
    let ids: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let desk = Desk::new(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    desk.run(ids.iter().map(|id| event(id, "t", Some(id))).collect()).await;
    desk.mend();
    let (store, handled) = (desk.store(), desk.handled.clone());
    let slow = handle(move |event, _| {
        let handled = handled.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            handled.lock().unwrap().push(event.id().to_owned());
            Ok(Outputs::None)
        }
    });
    let engine = Engine::builder()
        .pool("default", pool(1, 100))
        .handler("h", on(&["t"], slow))
        .dead_letters(Arc::new(store.clone()));
    let engine = engine.input_named("i", dflt(), Box::new(never())).build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    store.mark(Filter::default(), None).await.unwrap();
    until(|| control.progress().taken == 40).await;
    control.drain();
    let report = running.await.unwrap();
    drop(store);
    assert!(report.is_clean() && report.given_back > 0, "{report:?}");
    assert_eq!(report.handled + report.given_back, 40);
    let left = desk.letters();
    assert!(left.iter().all(|letter| letter.state == "marked"), "{left:?}");
    assert_eq!(desk.run(Vec::new()).await.handled, report.given_back);
    assert_eq!(desk.handled().iter().collect::<HashSet<_>>().len(), 40);
    assert_eq!(desk.handled().len(), 40, "each once");
    assert!(desk.letters().is_empty());
}

/// A store that cannot give any letter at first.
#[derive(Clone)]
struct BusyStore {
    store: LetterStore,
    failures: Arc<AtomicUsize>,
}

impl DeadLetterStore for BusyStore {
    fn describe(&self) -> String {
        self.store.describe()
    }

    fn store(&self, letter: DeadLetter) {
        self.store.store(letter);
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.store.finish()
    }

    fn failure(&self) -> Option<SinkError> {
        self.store.failure()
    }

    fn replays(&self) -> Option<Arc<dyn Replays>> {
        Some(Arc::new(self.clone()))
    }
}

impl Replays for BusyStore {
    fn take<'a>(
        &'a self,
        most: usize,
        bytes: usize,
    ) -> BoxFuture<'a, Result<TakenLetters, SinkError>> {
        let fails = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fails) {
            Ok(_) => Box::pin(async { Err(SinkError::new("letters", "the database is locked")) }),
            Err(_) => Replays::take(&self.store, most, bytes),
        }
    }

    fn marked<'a>(&'a self) -> BoxFuture<'a, ()> {
        self.store.marked()
    }

    fn ended(&self, replayed: Replayed, how: ReplayEnd) {
        self.store.ended(replayed, how);
    }
}

#[tokio::test]
async fn c04_a_replay_goes_on_once_its_store_can_give_letters_again() {
    let desk = Desk::new(&["1"]);
    desk.run(vec![event(1, "t", Some("k"))]).await;
    desk.mend();
    let store = desk.store();
    store.mark(Filter::default(), None).await.unwrap();
    drop(store);
    let store = desk.store();
    let busy = BusyStore { store: store.clone(), failures: Arc::new(AtomicUsize::new(1)) };
    let engine = desk.engine(&store, pool(1, 10)).dead_letters(Arc::new(busy));
    let report = run(engine.input_named("i", dflt(), Box::new(Script::of([])))).await;
    drop(store);
    assert_eq!((report.handled, desk.handled()), (1, vec!["1".to_owned()]));
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn c04_a_store_that_cannot_give_letters_at_all_does_not_keep_a_run_for_ever() {
    let desk = Desk::new(&["1"]);
    desk.run(vec![event(1, "t", Some("k"))]).await;
    desk.mend();
    let store = desk.store();
    store.mark(Filter::default(), None).await.unwrap();
    let damaged =
        BusyStore { store: store.clone(), failures: Arc::new(AtomicUsize::new(usize::MAX)) };
    let limit = OutageConfig { limit: Duration::from_millis(100), ..OutageConfig::default() };
    let engine = desk.engine(&store, pool(1, 10)).dead_letters(Arc::new(damaged)).outage(limit);
    let report = run(engine.input_named("i", dflt(), Box::new(Script::of([])))).await;
    drop(store);
    assert!(report.errors.iter().any(|error| error.contains("database is locked")), "{report:?}");
    assert_eq!(desk.letters()[0].state, "marked", "the next run takes it up");
    assert_eq!(desk.run(Vec::new()).await.handled, 1);
}

#[tokio::test]
async fn c04_a_letter_whose_handler_or_input_is_gone_stays_with_the_reason() {
    let desk = Desk::new(&["1"]);
    desk.run(vec![event(1, "t", Some("k"))]).await;
    desk.mend();
    let again = async |engine: EngineBuilder, store: LetterStore| {
        store.mark(Filter::default(), None).await.unwrap();
        run(engine).await;
        drop(store);
        let letter = desk.letters().remove(0);
        assert_eq!(letter.state, "stored");
        letter.refused.unwrap()
    };
    let store = desk.store();
    let other = Engine::builder()
        .handler("other", on(&["t"], answer(|_, _| Ok(Outputs::None))))
        .dead_letters(Arc::new(store.clone()))
        .input_named("i", dflt(), Box::new(Script::of([])));
    let refused = again(other, store).await;
    assert!(refused.contains("no handler \"h\" any more"), "{refused}");
    let store = desk.store();
    let elsewhere =
        desk.engine(&store, pool(1, 10)).input_named("j", dflt(), Box::new(Script::of([])));
    let refused = again(elsewhere, store).await;
    assert!(refused.contains("no input \"i\" any more"), "{refused}");
    assert_eq!(desk.letters().len(), 1, "it is not lost");
}

#[tokio::test]
async fn c04_a_replay_with_a_rate_can_be_stopped_and_goes_on_after_a_restart() {
    let desk = Desk::new(&[]);
    *desk.bad.lock().unwrap() = (0..40).map(|n: u32| n.to_string()).collect();
    desk.run((0..40).map(|n| event(n, "t", Some("k"))).collect()).await;
    desk.mend();
    let store = desk.store();
    let engine = desk.engine(&store, pool(4, 100)).input_named("i", dflt(), Box::new(never()));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    let started = Instant::now();
    let marked =
        store.mark(Filter { handler: Some("h".to_owned()), ..Filter::default() }, Some(50.0));
    let job = marked.await.unwrap().replay.unwrap();
    until(|| desk.handled().len() >= 10).await;
    assert!(started.elapsed() >= Duration::from_millis(80), "{:?}", started.elapsed());
    store.change_replay(job, JobChange::Stop).await.unwrap();
    until(|| desk.letters().iter().all(|letter| letter.state == "marked")).await;
    let done = desk.handled().len();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(done < 40 && desk.handled().len() == done, "it stands still");
    control.drain();
    running.await.unwrap();
    drop(store);
    let report = desk.run(Vec::new()).await;
    assert_eq!(report.taken, 0, "one that was stopped stays so");
    let store = desk.store();
    store.change_replay(job, JobChange::Resume).await.unwrap();
    drop(store);
    desk.run(Vec::new()).await;
    let expected: Vec<_> = (0..40).map(|n| n.to_string()).collect();
    assert_eq!(desk.handled(), expected, "each once, and in order");
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn c04_an_input_that_has_ended_takes_its_letters_while_another_is_read() {
    let desk = Desk::new(&["1"]);
    let store = desk.store();
    let engine = desk
        .engine(&store, pool(4, 100))
        .input_named("i", dflt(), Box::new(Script::of([event(1, "t", Some("k"))])))
        .input_named("j", dflt(), Box::new(never()));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    until(|| control.progress().dead_lettered == 1).await;
    desk.mend();
    store.mark(Filter::default(), None).await.unwrap();
    until(|| desk.letters().is_empty()).await;
    assert_eq!(desk.handled(), ["1"]);
    control.drain();
    running.await.unwrap();
}

#[tokio::test]
async fn d07_a_replay_is_handled_although_its_event_counts_as_seen() {
    let desk = Desk::new(&["1"]);
    let store = desk.store();
    let layers = Layers::new().layer(Deduplication::within(Duration::from_secs(3_600)));
    let engine = desk.engine(&store, pool(4, 100)).layers(&layers);
    let engine = engine.input_named(
        "i",
        dflt(),
        Box::new(Script::new(
            "s",
            [Step::Batch(vec![Ok(event(1, "t", Some("k")))]), Step::Wait(LONG)],
        )),
    );
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    until(|| control.progress().dead_lettered == 1).await;
    desk.mend();
    store.mark(Filter::default(), None).await.unwrap();
    until(|| desk.letters().is_empty()).await;
    assert_eq!(desk.handled(), ["1"], "it was not skipped");
    control.drain();
    running.await.unwrap();
}

#[tokio::test]
async fn c04_what_had_come_back_in_goes_the_way_back_again() {
    let desk = Desk::new(&["made"]);
    for mended in [false, true] {
        let store = desk.store();
        if mended {
            desk.mend();
            store.mark(Filter::default(), None).await.unwrap();
        }
        let maker = answer(|_, _| Ok(Outputs::Events(vec![event("made", "t", Some("k"))])));
        let mut first = on(&["first"], maker);
        first.loopback = 1;
        let engine = desk
            .engine(&store, pool(4, 100))
            .handler("first", first)
            .loopback(LoopbackConfig::new(vec!["t".parse().unwrap()]));
        let events = (!mended).then(|| event(1, "first", Some("k")));
        run(engine.input_named("i", dflt(), Box::new(Script::of(events)))).await;
        drop(store);
        assert_eq!(desk.letters().len(), usize::from(!mended));
    }
    assert_eq!(desk.handled(), ["made"]);
}

#[tokio::test]
async fn c04_an_edited_letter_is_handled_as_it_was_edited() {
    let desk = Desk::new(&["1"]);
    desk.run(vec![event(1, "t", Some("k"))]).await;
    let store = desk.store();
    store.edit(Edit { letter: 1, event: event("mended", "t", Some("k")) }).await.unwrap();
    store.mark(Filter::default(), None).await.unwrap();
    drop(store);
    desk.run(Vec::new()).await;
    assert_eq!(desk.handled(), ["mended"]);
    assert!(desk.letters().is_empty());
}

#[tokio::test]
async fn d06_a_store_that_was_ended_refuses_what_comes() {
    let desk = Desk::new(&[]);
    let store = desk.store();
    store.finish().await.unwrap();
    assert!(store.mark(Filter::default(), None).await.is_err());
    assert!(store.finish().await.is_ok(), "once more does no harm");
}

#[tokio::test]
async fn d09_replays_that_fail_are_several_events_and_so_an_outage() {
    let desk = Desk::new(&["0", "1", "2", "3"]);
    let events = (0..4).map(|n| event(n, "t", Some(&format!("k{n}")))).collect();
    assert_eq!(desk.run(events).await.dead_lettered, 4);
    let store = desk.store();
    store.mark(Filter::default(), None).await.unwrap();
    // The target fails for the first six attempts: more than two each would be too many.
    let attempts = AtomicUsize::new(0);
    let target = answer(move |_, _| match attempts.fetch_add(1, Ordering::Relaxed) {
        0..6 => Err(Failure::retry("503")),
        _ => Ok(Outputs::None),
    });
    let retry = Some(Retry { attempts: 2, ..Retry::default() });
    let outage = OutageConfig { failures: 3, ..OutageConfig::default() };
    let engine = Engine::builder()
        .outage(outage)
        .pool("default", pool(4, 100))
        .handler("h", HandlerConfig { retry, ..on(&["t"], target) })
        .output("out", vec!["**".parse().unwrap()], Arc::new(MemorySink::default()))
        .dead_letters(Arc::new(store.clone()))
        .input_named("i", dflt(), Box::new(Script::of([])));
    let report = run(engine).await;
    assert_eq!((report.handled, report.dead_lettered), (4, 0), "{report:?}");
}

#[tokio::test]
async fn c04_letters_are_replayed_for_an_input_that_is_added_after_the_others_have_ended() {
    let desk = Desk::new(&["bad"]);
    desk.run(vec![event("bad", "t", Some("k"))]).await;
    let (store, open) = (desk.store(), Arc::new(tokio::sync::Semaphore::new(0)));
    let gate = open.clone();
    let waits = handle(move |_, _| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(Outputs::None)
        }
    });
    // All that the first input gives has ended, and waits beside the pool.
    let ended = Script::of((0..10).map(|n| event(n, "t", Some("k"))));
    let engine = Engine::builder()
        .pool("default", pool(1, 1))
        .handler("h", on(&["t"], waits))
        .output("out", vec!["**".parse().unwrap()], Arc::new(MemorySink::default()))
        .dead_letters(Arc::new(store.clone()))
        .input_named("ended", dflt(), Box::new(ended));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let running = tokio::spawn(engine.run());
    tokio::time::sleep(Duration::from_millis(300)).await;
    control.add_input("i", dflt(), Box::new(never())).map_err(|error| error.why).unwrap();
    store.mark(Filter::default(), None).await.unwrap();
    open.add_permits(100);
    until(|| desk.letters().is_empty()).await;
    control.drain();
    assert_eq!(running.await.unwrap().handled, 11);
}
