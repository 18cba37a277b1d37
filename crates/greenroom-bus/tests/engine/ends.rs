//! Inputs and outputs that come and go while the engine runs (G01), and what that
//! means for its end (G06, G08).

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use greenroom_bus::{
    BoxFuture,
    engine::{ChangeError, Control, Engine, HandlerConfig, LoopbackConfig, NotAdded, RunReport},
    event::Event,
    handler::{HandlerFactory, Outputs},
    pattern::Pattern,
    router::Matcher,
    sink::Sink,
    source::{Committer, Pulling, Source, SourceError, Standing, Taken},
};
use tokio::{task::JoinHandle, time::Instant};

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::{answer, never, pass, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

fn events(prefix: &str, count: usize) -> Vec<Event> {
    (0..count).map(|n| event(format!("{prefix}-{n}"), "t", Some("key"))).collect()
}

/// Gives an event of this name every ten milliseconds, for ever.
fn ticking(name: &str) -> Script {
    let steps = (0..10_000).flat_map(|n| {
        let tick = event(format!("{name}-{n}"), "t", Some(&format!("{n}")));
        [Step::Wait(ms(10)), Step::Batch(vec![Ok(tick)])]
    });
    Script::new(name, steps)
}

struct Running {
    control: Control,
    sink: Arc<MemorySink>,
    run: JoinHandle<RunReport>,
}

impl Running {
    /// An engine with the input `first`, which does not end by itself.
    async fn start(factory: Arc<dyn HandlerFactory>) -> Self {
        let bench = Bench::new().set(|engine| {
            let source = Script::of(events("first", 10)).then(Step::Never);
            let engine = engine.input_named("first", Matcher::any(), Box::new(source));
            engine.pool("default", pool(4, 100)).handler("h", on(&["t"], factory))
        });
        Self::of(bench).await
    }

    async fn of(bench: Bench) -> Self {
        let sink = bench.sink.clone();
        let engine = bench.engine.build().await.unwrap();
        Self { control: engine.control(), sink, run: tokio::spawn(engine.run()) }
    }

    fn add(&self, name: &str, source: Script) -> Result<(), NotAdded<Box<dyn Source>>> {
        self.control.add_input(name, Matcher::any(), Box::new(source))
    }

    async fn remove(&self, name: &str) -> greenroom_bus::engine::InputReport {
        self.control.remove_input(name).unwrap().done().await
    }

    async fn end(self) -> RunReport {
        checked(tokio::time::timeout(HANG, self.run).await.expect("the run did not end").unwrap())
    }
}

fn every() -> Vec<Pattern> {
    vec!["**".parse().unwrap()]
}

fn taken(kind: &'static str, name: &str, leaving: bool) -> ChangeError {
    ChangeError::NameTaken { kind, name: name.to_owned(), leaving }
}

#[tokio::test(start_paused = true)]
async fn g01_an_input_that_is_added_is_read_and_one_that_is_removed_is_not() {
    let running = Running::start(pass()).await;
    let source = ticking("tick");
    let given = source.given();
    running.add("tick", source).unwrap();
    tokio::time::sleep(ms(505)).await;
    assert_eq!(running.sink.ids().len(), 10 + 50);
    let removed = running.remove("tick").await;
    assert_eq!((&*removed.name, &*removed.source, removed.taken), ("tick", "tick", 50));
    assert!(removed.removed && removed.error.is_none(), "{removed:?}");
    tokio::time::sleep(ms(500)).await;
    assert_eq!(given.load(Ordering::Relaxed), 50, "nothing more is taken");
    running.remove("first").await;
    let report = running.end().await;
    assert_eq!((report.taken, report.handled), (60, 60));
    let rows: Vec<_> =
        report.inputs.iter().map(|row| (&*row.name, row.taken, row.removed)).collect();
    assert_eq!(rows, [("first", 10, true), ("tick", 50, true)], "the report knows those that went");
}

#[tokio::test(start_paused = true)]
async fn g01_an_input_stops_at_once_and_what_it_gave_is_handled_in_order() {
    let running = Running::start(slow(ms(100))).await;
    let source = Script::of(events("slow", 30)).then(Step::Never);
    running.add("slow", source).unwrap();
    tokio::time::sleep(ms(10)).await;
    let before = Instant::now();
    let removal = running.control.remove_input("slow").unwrap();
    let again = running.add("slow", Script::of([])).unwrap_err();
    assert_eq!(again.why, taken("input", "slow", true));
    assert_eq!(removal.done().await.taken, 30);
    // One key: one event after the other, the ten of the other input beside them.
    assert!((ms(2_900)..ms(3_100)).contains(&before.elapsed()), "{:?}", before.elapsed());
    let ids: Vec<_> = running.sink.ids().into_iter().filter(|id| id.starts_with("slow")).collect();
    assert_eq!(ids, (0..30).map(|n| format!("slow-{n}")).collect::<Vec<_>>());
    running.add("slow", Script::of(events("anew", 5))).expect("the name is free again");
    running.remove("first").await;
    assert_eq!(running.end().await.handled, 10 + 30 + 5);
}

/// Tells when it is dropped.
struct Dropped<S>(S, Arc<std::sync::Mutex<Option<Instant>>>);

impl<S> Drop for Dropped<S> {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some(Instant::now());
    }
}

impl<S: Source> Source for Dropped<S> {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn pull<'a>(
        &'a mut self,
        into: &'a mut Vec<greenroom_bus::source::Taken>,
    ) -> greenroom_bus::BoxFuture<
        'a,
        Result<greenroom_bus::source::Pull, greenroom_bus::source::SourceError>,
    > {
        self.0.pull(into)
    }

    fn replayable(&self) -> bool {
        self.0.replayable()
    }
}

#[tokio::test(start_paused = true)]
async fn g05_inputs_stop_within_100_ms_of_a_removal_and_of_a_stop() {
    for how in 0..3 {
        // A pool that is full, and more that waits beside it: what waits does not hold
        // up the stop of the source.
        let running = Running::start(slow(ms(10_000))).await;
        let dropped = Arc::default();
        let source = Dropped(ticking("tick"), Arc::clone(&dropped));
        running.control.add_input("tick", Matcher::any(), Box::new(source)).unwrap();
        tokio::time::sleep(ms(3_003)).await;
        let told = Instant::now();
        match how {
            0 => drop(running.control.remove_input("tick").unwrap()),
            1 => running.control.drain(),
            _ => running.control.stop_now(),
        }
        tokio::time::sleep(ms(100)).await;
        let stopped = dropped.lock().unwrap().expect("the source is still read");
        assert!(stopped - told <= ms(100), "{:?}", stopped - told);
        running.control.stop_now();
        running.end().await;
    }
}

/// On threads: nothing here is measured by the clock, only what comes before what.
#[test]
fn g05_an_input_stops_while_a_handler_blocks_its_thread() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let (tell, is_blocked) = std::sync::mpsc::channel::<()>();
    let both = std::sync::Mutex::new((tell, blocked));
    runtime.block_on(async {
        let blocks = answer(move |event, _| {
            if event.id() == "tick-3" {
                let both = both.lock().unwrap();
                both.0.send(()).unwrap();
                let _ = both.1.recv();
            }
            Ok(Outputs::Same)
        });
        let running = Running::start(blocks).await;
        let (source, dropped) = (ticking("tick"), Arc::default());
        let given = source.given();
        let source = Dropped(source, Arc::clone(&dropped));
        running.control.add_input("tick", Matcher::any(), Box::new(source)).unwrap();
        tokio::task::spawn_blocking(move || is_blocked.recv()).await.unwrap().unwrap();
        running.control.drain();
        let stopped = async {
            while dropped.lock().unwrap().is_none() {
                tokio::time::sleep(ms(1)).await;
            }
        };
        let patience = Duration::from_secs(20);
        tokio::time::timeout(patience, stopped).await.expect("the source is still read");
        assert!(!running.run.is_finished(), "the handler is in its thread");
        let taken = given.load(Ordering::Relaxed);
        tokio::time::sleep(ms(50)).await;
        assert_eq!(given.load(Ordering::Relaxed), taken, "nothing is taken any more");
        drop(release);
        let report = running.end().await;
        assert_eq!((report.taken, report.handled), (10 + taken, 10 + taken));
    });
}

#[tokio::test(start_paused = true)]
async fn g06_the_engine_stays_while_one_input_reads_and_then_ends_by_itself() {
    let running = Running::start(pass()).await;
    let control = running.control.clone();
    running.add("second", ticking("second")).unwrap();
    running.remove("first").await;
    tokio::time::sleep(ms(10_000)).await;
    assert!(!running.run.is_finished(), "an input reads");
    let removal = control.remove_input("second").unwrap();
    tokio::time::sleep(ms(10)).await;
    let late = control.add_input("third", Matcher::any(), Box::new(Script::of([]))).unwrap_err();
    assert_eq!((late.why, &*late.part.describe()), (ChangeError::Ending, "script"), "given back");
    assert!(removal.done().await.taken > 900);
    let report = running.end().await;
    assert_eq!(report.handled, report.taken);
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn g06_an_input_that_is_added_as_the_last_one_ends_is_read_or_given_back() {
    let mut read = 0;
    for delay in 0..40 {
        let bench = Bench::new().set(|engine| {
            let source = Script::of(events("a", 7)).then(Step::Wait(ms(20)));
            engine.input(Box::new(source)).handler("h", on(&["t"], pass()))
        });
        let running = Running::of(bench).await;
        tokio::time::sleep(ms(delay)).await;
        let added = running.add("late", Script::of(events("late", 7)));
        if let Err(error) = &added {
            assert_eq!(error.why, ChangeError::Ending);
        }
        let report = running.end().await;
        assert_eq!(report.handled, if added.is_ok() { 14 } else { 7 }, "after {delay} ms");
        read += u64::from(added.is_ok());
    }
    assert!((1..40).contains(&read), "both happen: {read}");
}

#[tokio::test(start_paused = true)]
async fn g01_what_cannot_be_is_an_error_and_gives_back_what_was_to_be_added() {
    let running = Running::start(pass()).await;
    let error = running.add("first", Script::of([]).named("mine")).unwrap_err();
    assert_eq!((&error.why, &*error.part.describe()), (&taken("input", "first", false), "mine"));
    assert_eq!(error.to_string(), "there is an input \"first\" already");
    let empty = running.add("", Script::of([])).unwrap_err().why;
    assert!(matches!(empty, ChangeError::Unusable { .. }), "{empty:?}");
    let unknown = running.control.remove_input("other").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no input \"other\"; there are: first");
    let unknown = running.control.remove_output("other").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no output \"other\"; there are: out");
    let sink: Arc<dyn Sink> = Arc::new(MemorySink::default());
    let add = |name| running.control.add_output(name, every(), Matcher::any(), sink.clone());
    assert_eq!(add("out").unwrap_err().why, taken("output", "out", false));
    let misplaced =
        running.control.add_output_before("other", "more", every(), Matcher::any(), sink.clone());
    assert!(matches!(misplaced.unwrap_err().why, ChangeError::NoSuchEnd { .. }));
    running.control.drain();
    assert_eq!(add("more").unwrap_err().why, ChangeError::Ending);
    assert_eq!(running.add("more", Script::of([])).unwrap_err().why, ChangeError::Ending);
    assert!(matches!(running.control.remove_input("first"), Err(ChangeError::Ending)));
    assert!(matches!(running.control.remove_output("out"), Err(ChangeError::Ending)));
    running.end().await;
}

#[tokio::test(start_paused = true)]
async fn g01_two_ends_of_one_name_are_not_built() {
    let bench = Bench::new().set(|engine| {
        let engine = engine.input_named("a", Matcher::any(), Box::new(Script::of([])));
        engine.input_named("a", Matcher::any(), Box::new(Script::of([])))
    });
    let error = bench.engine.build().await.err().unwrap().to_string();
    assert_eq!(error, "there is an input \"a\" already");
    let bench = Bench::new().set(|engine| {
        let sink = Arc::new(MemorySink::default());
        engine.input(Box::new(Script::of([]))).output("out", every(), sink)
    });
    let error = bench.engine.build().await.err().unwrap().to_string();
    assert_eq!(error, "there is an output \"out\" already");
}

#[tokio::test(start_paused = true)]
async fn g01_an_input_that_was_removed_and_fails_says_so() {
    let running = Running::start(pass()).await;
    running.add("broken", Script::of(events("b", 7)).then(Step::Fail).named("broken")).unwrap();
    running.add("panics", Script::of(events("p", 7)).then(Step::Panic).named("panics")).unwrap();
    tokio::time::sleep(ms(10)).await;
    let broken = running.remove("broken").await;
    assert_eq!((broken.taken, broken.error.as_deref()), (7, Some("broken: it broke")));
    let panics = running.remove("panics").await;
    assert_eq!((panics.taken, panics.error.as_deref()), (7, Some("its source panicked")));
    running.remove("first").await;
    let report = running.end().await;
    assert_eq!((report.handled, report.errors.len()), (24, 2), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn g01_the_matcher_of_an_input_that_was_added_is_asked() {
    let running = Running::start(pass()).await;
    let even = Matcher::any().when(|event| event.id().ends_with(['0', '2', '4', '6', '8']));
    running.control.add_input("even", even, Box::new(Script::of(events("e", 20)))).unwrap();
    tokio::time::sleep(ms(10)).await;
    running.remove("first").await;
    let report = running.end().await;
    assert_eq!((report.taken, report.handled, report.ignored), (30, 20, 10));
}

#[tokio::test(start_paused = true)]
async fn g01_an_output_that_is_removed_has_stored_all_that_it_accepted_and_nothing_is_lost() {
    let slow_store = Behaviour { room: 3, latency: ms(7), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(slow_store), MemoryLetters::default()).set(|engine| {
        let engine = engine.input_named("tick", Matcher::any(), Box::new(ticking("tick")));
        engine.pool("default", pool(16, 100)).handler("h", on(&["t"], slow(ms(1))))
    });
    let running = Running::of(bench).await;
    let mut sinks = vec![running.sink.clone()];
    for round in 1..30 {
        tokio::time::sleep(ms(17)).await;
        let next = Arc::new(MemorySink::new(slow_store));
        sinks.push(next.clone());
        running.control.add_output(&format!("out-{round}"), every(), Matcher::any(), next).unwrap();
        let before = if round == 1 { "out".to_owned() } else { format!("out-{}", round - 1) };
        let removed = running.control.remove_output(&before).unwrap().done().await;
        assert!(removed.removed && removed.error.is_none(), "{removed:?}");
        let stored = sinks[round - 1].ids().len() as u64;
        assert_eq!(removed.events, stored, "all that was handed to it is stored");
    }
    running.remove("tick").await;
    let report = running.end().await;
    let mut all: Vec<String> = sinks.iter().flat_map(|sink| sink.ids()).collect();
    all.sort();
    all.dedup();
    assert_eq!((report.handled, all.len() as u64), (report.taken, report.taken));
    assert_eq!(report.outputs.iter().map(|row| row.events).sum::<u64>(), report.taken);
    assert_eq!(report.outputs.iter().filter(|row| row.removed).count(), 29);
}

#[tokio::test(start_paused = true)]
async fn g01_an_output_is_asked_in_the_place_that_it_was_given() {
    let running = Running::start(pass()).await;
    tokio::time::sleep(ms(1)).await;
    let (before, behind) = (Arc::new(MemorySink::default()), Arc::new(MemorySink::default()));
    let odd = Matcher::any().when(|event| event.id().ends_with(['1', '3', '5', '7', '9']));
    let (control, every) = (&running.control, every());
    control.add_output("behind", every.clone(), Matcher::any(), behind.clone()).unwrap();
    control.add_output_before("out", "before", every, odd, before.clone()).unwrap();
    running.add("more", Script::of(events("more", 20))).unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((before.ids().len(), running.sink.ids().len(), behind.ids().len()), (10, 20, 0));
    let last = control.remove_output("out").unwrap().done().await;
    assert_eq!(last.events, 20);
    running.add("rest", Script::of(events("rest", 20))).unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((before.ids().len(), behind.ids().len()), (20, 10));
    running.remove("first").await;
    assert_eq!(running.end().await.handled, 50);
}

#[tokio::test(start_paused = true)]
async fn g01_an_output_that_was_removed_and_cannot_store_says_so_and_the_run_goes_on() {
    let failing =
        Behaviour { room: 50, fails_after: Some(5), latency: ms(100), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(failing), MemoryLetters::default()).set(|engine| {
        let source = Script::of(events("t", 20)).then(Step::Never);
        let engine = engine.input_named("first", Matcher::any(), Box::new(source));
        engine.handler("h", on(&["t"], pass()))
    });
    let running = Running::of(bench).await;
    tokio::time::sleep(ms(10)).await;
    let rest = Arc::new(MemorySink::default());
    running.control.add_output("rest", every(), Matcher::any(), rest.clone()).unwrap();
    let removed = running.control.remove_output("out").unwrap().done().await;
    assert_eq!(removed.error.as_deref(), Some("memory: it is full for good"));
    running.add("more", Script::of(events("more", 20))).unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(rest.ids().len(), 20);
    running.remove("first").await;
    let report = running.end().await;
    assert_eq!((report.handled, report.refused), (25, 15));
    assert_eq!(report.errors, ["memory: it is full for good"]);
}

#[tokio::test(start_paused = true)]
async fn g01_events_that_are_cut_off_before_an_output_has_room_do_not_count_as_given_to_it() {
    let slow = Behaviour { room: 1, latency: ms(100), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(slow), MemoryLetters::default()).set(|engine| {
        let source = Script::of(events("t", 4)).then(Step::Never);
        let engine = engine.input_named("first", Matcher::any(), Box::new(source));
        engine.pool("default", pool(4, 100)).handler("h", on(&["t"], pass()))
    });
    let running = Running::of(bench).await;
    tokio::time::sleep(ms(10)).await;
    running.control.stop_now();
    let (sink, report) = (running.sink.clone(), running.end().await);
    assert_eq!(sink.ids().len(), 2, "one that is being stored, and one in its room");
    assert_eq!((report.handled, report.refused, report.outputs[0].events), (2, 2, 2));
}

/// An output that takes a minute for each event, and has room for one more.
fn full(remote: bool) -> MemorySink {
    let (latency, rejects) = (Duration::from_secs(60), remote.then_some(u32::MAX));
    MemorySink::new(Behaviour { room: 1, latency, rejects, ..Behaviour::default() })
}

/// Four events, of two of which a worker waits for room in a full output.
async fn waiting(bench: Bench) -> Running {
    let events: Vec<_> = (0..4).map(|n| event(n, "t", Some(&format!("{n}")))).collect();
    let source = Box::new(Script::of(events).then(Step::Never));
    let bench = bench.set(|engine| {
        let engine = engine.input_named("first", Matcher::any(), source);
        engine.pool("default", pool(4, 100)).handler("h", on(&["t"], pass()))
    });
    let running = Running::of(bench).await;
    tokio::time::sleep(ms(10)).await;
    running
}

#[tokio::test(start_paused = true)]
async fn g01_what_waits_for_room_in_an_output_that_is_removed_goes_to_the_next_one() {
    for remote in [false, true] {
        let running = waiting(Bench::with(full(remote), MemoryLetters::default())).await;
        let next = Arc::new(MemorySink::default());
        running.control.add_output("next", every(), Matcher::any(), next.clone()).unwrap();
        tokio::time::sleep(ms(10)).await;
        assert_eq!(next.ids().len(), 0);
        let waits = || running.control.output_views().into_iter().map(|output| output.waiting);
        assert_eq!(waits().collect::<Vec<_>>(), [vec![("default".to_owned(), 2)], vec![]]);
        let removal = running.control.remove_output("out").unwrap();
        running.add("more", Script::of(events("more", 20))).unwrap();
        tokio::time::sleep(ms(10)).await;
        assert_eq!(next.ids().len(), 22, "two that waited, and the pool goes on");
        assert!(waits().all(|waiting| waiting.is_empty()), "nobody waits any more");
        assert_eq!(removal.done().await.events, 2);
        running.remove("first").await;
        let (sink, report) = (running.sink.clone(), running.end().await);
        assert_eq!((report.handled, report.refused, sink.ids().len()), (24, 0, 2), "{report:?}");
        assert!(!sink.is_misused());
    }
}

#[tokio::test(start_paused = true)]
async fn g01_what_waits_for_room_in_the_only_output_goes_nowhere_once_that_is_removed() {
    let running = waiting(Bench::with(full(false), MemoryLetters::default())).await;
    let removal = running.control.remove_output("out").unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(running.control.progress().settled, 2);
    assert_eq!(removal.done().await.events, 2);
    running.remove("first").await;
    assert_eq!(running.end().await.handled, 4);
}

#[tokio::test(start_paused = true)]
async fn g01_what_waits_for_room_in_one_of_all_outputs_goes_to_those_that_do_not_have_it() {
    let sink = Arc::new(full(false));
    let bench = Bench::new().set(|engine| engine.output("full", every(), sink).all_outputs(true));
    let running = waiting(bench).await;
    let next = Arc::new(MemorySink::default());
    running.control.add_output("next", every(), Matcher::any(), next.clone()).unwrap();
    let removal = running.control.remove_output("full").unwrap();
    tokio::time::sleep(ms(10)).await;
    assert_eq!((running.sink.ids().len(), next.ids().len()), (4, 2));
    assert_eq!(removal.done().await.events, 2);
    running.remove("first").await;
    assert_eq!(running.end().await.handled, 4);
}

/// Keeps positions, and never gets to the end of storing them.
struct NeverStores(Script);

impl Source for NeverStores {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        self.0.pull(into)
    }

    fn replayable(&self) -> bool {
        true
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        Some(Arc::new(Never))
    }
}

struct Never;

impl Committer for Never {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(std::future::pending())
    }

    fn standing(&self) -> Standing {
        Standing::default()
    }
}

#[tokio::test(start_paused = true)]
async fn g01_an_input_is_gone_with_its_run_although_its_positions_were_not_stored() {
    let running = Running::start(pass()).await;
    let source = Box::new(NeverStores(Script::of(events("kept", 3)).then(Step::Never)));
    running.control.add_input("kept", Matcher::any(), source).unwrap();
    tokio::time::sleep(ms(10)).await;
    let removal = running.control.remove_input("kept").unwrap();
    running.control.stop_now();
    let report = tokio::time::timeout(HANG, running.run).await.expect("the run did not end");
    assert!(report.unwrap().errors.iter().any(|error| error.contains("not stored")));
    let removed = tokio::time::timeout(ms(1), removal.done()).await.expect("it is not done");
    assert_eq!(removed.taken, 3);
}

/// An output that is slow holds what it took for longer than the run lasts.
#[tokio::test(start_paused = true)]
async fn g01_an_input_is_gone_with_its_run_although_an_output_holds_its_events() {
    let slow = Behaviour { latency: Duration::from_secs(3_600), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(slow), MemoryLetters::default());
    let bench = bench.set(|engine| {
        let source = Box::new(Script::of([event(1, "t", None)]).then(Step::Never));
        let engine = engine.input_named("first", Matcher::any(), source);
        engine.handler("h", on(&["t"], pass()))
    });
    let running = Running::of(bench).await;
    tokio::time::sleep(ms(10)).await;
    let removal = running.control.remove_input("first").unwrap();
    running.control.stop_now();
    assert_eq!(running.run.await.unwrap().refused, 1);
    let removed = tokio::time::timeout(ms(1), removal.done()).await.expect("it is not done");
    assert_eq!(removed.taken, 1);
}

/// A worker sends something back in the very moment in which the run is told to stop: nobody takes
/// that any more.
#[tokio::test(start_paused = true)]
async fn g01_an_input_is_gone_with_its_run_although_something_was_on_its_way_back() {
    let (tell, told) = std::sync::mpsc::channel::<Control>();
    let (told, removals) = (Mutex::new(told), Arc::new(Mutex::new(Vec::new())));
    let (ends, removing) = (move || told.lock().unwrap().recv().unwrap(), removals.clone());
    let sends_back = answer(move |_, _| {
        let control = ends();
        removing.lock().unwrap().push(control.remove_input("first").unwrap());
        control.stop_now();
        Ok(Outputs::Events(vec![event(2, "again", None)]))
    });
    let bench = Bench::new().set(|engine| {
        let source = Box::new(Script::of([event(1, "first", None)]).then(Step::Never));
        let engine = engine.input_named("first", Matcher::any(), source);
        let engine = engine.loopback(LoopbackConfig::new(vec!["again".parse().unwrap()]));
        let first = HandlerConfig { loopback: 1, ..on(&["first"], sends_back) };
        engine.handler("first", first).handler("again", on(&["again"], pass()))
    });
    let engine: Engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    tell.send(control.clone()).unwrap();
    let report = tokio::time::timeout(HANG, engine.run()).await.expect("the run did not end");
    assert_eq!((report.taken, report.refused), (1, 1));
    let removal = removals.lock().unwrap().pop().unwrap();
    let removed = tokio::time::timeout(ms(1), removal.done()).await.expect("it is not done");
    assert_eq!((removed.taken, control.progress().settled), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn g01_nobody_waits_for_a_removal_of_a_run_that_was_given_up() {
    let running = Running::start(never()).await;
    tokio::time::sleep(ms(1)).await;
    let hangs = Behaviour { hangs: true, ..Behaviour::default() };
    let sink = Arc::new(MemorySink::new(hangs));
    running.control.add_output("hangs", every(), Matcher::any(), sink).unwrap();
    let removal = running.control.remove_output("hangs").unwrap();
    tokio::time::sleep(ms(100)).await;
    running.run.abort();
    let removed = tokio::time::timeout(HANG, removal.done()).await.unwrap();
    assert!(removed.error.unwrap().contains("given up"));
}

#[tokio::test(start_paused = true)]
async fn g01_an_engine_that_never_runs_keeps_nobody_waiting() {
    let bench = Bench::new()
        .set(|engine| engine.input_named("first", Matcher::any(), Box::new(Script::of([]))));
    let engine: Engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let (input, output) =
        (control.remove_input("first").unwrap(), control.remove_output("out").unwrap());
    drop(engine);
    assert_eq!(input.done().await.taken, 0);
    assert!(output.done().await.error.is_some());
    let late = control.add_input("late", Matcher::any(), Box::new(Script::of([])));
    assert_eq!(late.unwrap_err().why, ChangeError::Ending);
}

/// On threads: events are handed over while outputs come and go, and each is stored once.
#[test]
fn g01_nothing_is_lost_between_threads() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    runtime.block_on(async {
        let endless = (0..2_000).map(|n| {
            let batch = (0..20).map(|m| {
                Ok(event(format!("{n}-{m}"), "t", Some(&format!("{}", (n * 20 + m) % 97))))
            });
            Step::Batch(batch.collect())
        });
        let bench = Bench::new().set(|engine| {
            let source = Script::new("many", endless);
            let engine = engine.input_named("many", Matcher::any(), Box::new(source));
            engine.pool("default", pool(8, 1_000)).handler("h", on(&["t"], pass()))
        });
        let running = Running::of(bench).await;
        let mut sinks = vec![running.sink.clone()];
        for round in 1.. {
            let next = Arc::new(MemorySink::default());
            let (name, added) = (format!("out-{round}"), next.clone());
            if running.control.add_output(&name, every(), Matcher::any(), added).is_err() {
                break;
            }
            sinks.push(next);
            let before = if round == 1 { "out".to_owned() } else { format!("out-{}", round - 1) };
            let Ok(removal) = running.control.remove_output(&before) else { break };
            let removed = removal.done().await;
            assert_eq!(removed.events, sinks[round - 1].ids().len() as u64, "{removed:?}");
        }
        let report = running.end().await;
        let mut all: Vec<String> = sinks.iter().flat_map(|sink| sink.ids()).collect();
        let stored = all.len();
        all.sort();
        all.dedup();
        assert_eq!((report.handled, stored, all.len()), (40_000, 40_000, 40_000));
        assert!(sinks.len() > 10, "{} outputs took part", sinks.len());
        assert!(report.elapsed < Duration::from_secs(20));
    });
}
