//! Inputs that keep their positions (D01, D10, F02), and a stop under load (Z09).

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom_bus::{
    BoxFuture,
    engine::InputConfig,
    event::Event,
    handler::{HandlerFactory, Outputs},
    router::Matcher,
    settlement::Settled,
    source::{Committer, Pulling, Receipts, Resumed, Source, SourceError, Standing, Taken},
    watermark::{Epoch, Positions, Received, Watermark},
};

use crate::engine::support::{
    Bench, checked, event,
    handlers::{answer, handle, pass, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

/// What the positions of a test's source are, seen from outside.
#[derive(Clone)]
pub(crate) struct Kept(Arc<Mutex<Inner>>);

struct Inner {
    watermark: Watermark,
    epoch: Epoch,
    /// When each commit was made, and what it said.
    commits: Vec<(tokio::time::Instant, Positions)>,
    /// Whether the next commits fail.
    fails: bool,
    /// How often it is to be committed.
    every: Duration,
    /// Looked at with each commit.
    check: Box<dyn Fn(&Positions) + Send>,
}

impl Kept {
    pub(crate) fn new(check: impl Fn(&Positions) + Send + 'static) -> Self {
        Self::going_on(&Positions::starting_at(1), check)
    }

    /// Goes on where an earlier run has ended.
    pub(crate) fn from_stored(stored: &Positions) -> Self {
        Self::going_on(stored, |_| {})
    }

    fn going_on(stored: &Positions, check: impl Fn(&Positions) + Send + 'static) -> Self {
        let mut watermark = Watermark::default();
        let epoch = watermark.assign(stored);
        let (commits, check, every) = (Vec::new(), Box::new(check), ms(1_000));
        let inner = Inner { watermark, epoch, commits, fails: false, check, every };
        Self(Arc::new(Mutex::new(inner)))
    }

    pub(crate) fn last(&self) -> Positions {
        self.0.lock().unwrap().commits.last().unwrap().1.clone()
    }

    /// As `last`, of an input that may not have been read: then nothing of it was taken.
    pub(crate) fn last_if_any(&self) -> Positions {
        let inner = self.0.lock().unwrap();
        let last = inner.commits.last().map(|(_, positions)| positions.clone());
        last.unwrap_or_else(|| Positions::starting_at(1))
    }
}

impl Receipts for Kept {
    fn settled(&self, position: u64, how: Settled) {
        let Inner { watermark, epoch, .. } = &mut *self.0.lock().unwrap();
        match how {
            Settled::Acknowledged(_) => watermark.settle(*epoch, position),
            Settled::Refused(_) => watermark.refuse(*epoch, position),
        };
    }
}

impl Committer for Kept {
    fn commit<'a>(&'a self) -> BoxFuture<'a, Result<(), SourceError>> {
        Box::pin(async move {
            let inner = &mut *self.0.lock().unwrap();
            if inner.fails {
                return Err(SourceError::new("script", "the place of its positions is full"));
            }
            let snapshot = inner.watermark.snapshot().unwrap();
            (inner.check)(snapshot.positions());
            inner.commits.push((tokio::time::Instant::now(), snapshot.positions().clone()));
            inner.watermark.confirm(&snapshot);
            Ok(())
        })
    }

    fn every(&self) -> Duration {
        self.0.lock().unwrap().every
    }

    fn standing(&self) -> Standing {
        let repeated_at_most = self.0.lock().unwrap().watermark.repeated_at_most();
        let resumed = Some(Resumed { partitions: 3, files: 0, done: 212, again_at_most: 41 });
        Standing { resumed, repeated_at_most, ..Standing::default() }
    }
}

/// A script that keeps its positions.
pub(crate) struct Keeping(pub(crate) Script, pub(crate) Kept);

impl Source for Keeping {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        Box::pin(async move {
            let pull = self.0.pull(into).await?;
            let inner = &mut *self.1.0.lock().unwrap();
            into.retain(|item| inner.watermark.receive(item.position) == Received::New);
            Ok(pull)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        Some(Arc::new(self.1.clone()))
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        Some(Arc::new(self.1.clone()))
    }
}

/// Events whose ids are their positions, given by sevens.
fn numbered(count: u64) -> Script {
    Script::of((1..=count).map(|n| event(n, "t", None)))
}

/// Fails where a commit says of an event that it is done, and its output is not stored.
fn only_what_is_stored(sink: &Arc<MemorySink>) -> impl Fn(&Positions) + Send + 'static {
    let sink = sink.clone();
    move |positions| {
        let stored: BTreeSet<u64> = sink.ids().iter().map(|id| id.parse().unwrap()).collect();
        let done = (1..positions.next()).filter(|position| positions.is_done(*position));
        done.for_each(|position| assert!(stored.contains(&position), "{position} is not stored"));
    }
}

#[tokio::test(start_paused = true)]
async fn d10_a_commit_never_covers_an_event_whose_output_is_not_stored() {
    let behaviour = Behaviour { latency: ms(20), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(behaviour), MemoryLetters::default());
    let kept = Kept::new(only_what_is_stored(&bench.sink));
    let source = Box::new(Keeping(numbered(300), kept.clone()));
    let bench = bench.set(|engine| {
        engine.input(source).pool("default", pool(8, 100)).handler("h", on(&["t"], slow(ms(30))))
    });
    let report = bench.run().await;
    assert_eq!(report.handled, 300);
    let inner = kept.0.lock().unwrap();
    let between: Vec<_> =
        inner.commits.windows(2).map(|pair| pair[1].0.duration_since(pair[0].0)).collect();
    assert!(between.len() >= 5, "300 events of 20 ms take six seconds: {between:?}");
    assert!(between.iter().all(|time| *time <= ms(1_001)), "{between:?}");
    assert_eq!(inner.commits.last().unwrap().1, Positions::starting_at(301));
    assert_eq!(report.positions[0].input, "script");
    assert_eq!(report.positions[0].standing.repeated_at_most, 0);
}

/// A crash repeats what was settled since the last time.
#[tokio::test(start_paused = true)]
async fn d01_positions_are_stored_as_often_as_their_source_or_their_input_says() {
    for (every, commit_every, expected) in [(1_000, None, 6), (100, None, 60), (100, Some(500), 12)]
    {
        let kept = Kept::new(|_| {});
        kept.0.lock().unwrap().every = ms(every);
        let source = Box::new(Keeping(numbered(200), kept.clone()));
        let config = InputConfig { commit_every: commit_every.map(ms), ..InputConfig::default() };
        let bench = Bench::new().set(|engine| {
            let engine = engine.input_with(source, config).pool("default", pool(1, 200));
            engine.handler("h", on(&["t"], slow(ms(30))))
        });
        assert_eq!(bench.run().await.handled, 200);
        let commits = kept.0.lock().unwrap().commits.len();
        assert!((expected..=expected + 3).contains(&commits), "{commits} for {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn d01_what_is_refused_stays_open_in_the_last_commit() {
    let behaviour = Behaviour { fails_after: Some(40), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(behaviour), MemoryLetters::default());
    let kept = Kept::new(only_what_is_stored(&bench.sink));
    let source = Box::new(Keeping(numbered(100), kept.clone()));
    let report =
        bench.set(|engine| engine.input(source).handler("h", on(&["t"], pass()))).run().await;
    let positions = kept.last();
    assert_eq!((report.handled, positions.count_open()), (40, report.refused));
    assert_eq!(report.positions[0].standing.repeated_at_most, report.refused);
}

/// An input that is added after another one was removed may keep its positions in the same place:
/// the last ones are stored before.
#[tokio::test(start_paused = true)]
async fn g01_d10_a_name_is_free_once_the_last_positions_of_an_input_are_stored() {
    let endless = || Box::new(Script::new("endless", [Step::Never]));
    let kept = Kept::new(|_| {});
    let source = Box::new(Keeping(numbered(21).then(Step::Never), kept.clone()));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input_named("stays", Matcher::any(), endless());
        engine
            .input_named("goes", Matcher::any(), source)
            .pool("default", pool(1, 100))
            .handler("h", on(&["t"], slow(ms(300))))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(500)).await;
    let removal = control.remove_input("goes").unwrap();
    let again = control.add_input("goes", Matcher::any(), endless());
    assert!(again.is_err(), "its events are not settled");
    assert_eq!(removal.done().await.taken, 21);
    assert_eq!(kept.last(), Positions::starting_at(22), "stored before the name is free");
    let commits = kept.0.lock().unwrap().commits.len();
    control.add_input("goes", Matcher::any(), endless()).map_err(|error| error.why).unwrap();
    tokio::time::sleep(ms(5_000)).await;
    control.drain();
    run.await.unwrap();
    assert_eq!(kept.0.lock().unwrap().commits.len(), commits, "nothing is stored after that");
}

#[tokio::test(start_paused = true)]
async fn d04_what_is_malformed_or_ignored_is_settled_at_its_position() {
    let items = (1..=20).map(|n| match n % 3 {
        0 => Err(b"nonsense".to_vec()),
        1 => Ok(event(n, "t", None)),
        _ => Ok(event(n, "other", None)),
    });
    let script = Script::new("script", [Step::Batch(items.collect())]);
    let kept = Kept::new(|_| {});
    let source = Box::new(Keeping(script, kept.clone()));
    let report = Bench::new()
        .set(|engine| {
            let ignores = greenroom_bus::engine::NoHandler::Ignore;
            engine.input(source).no_handler(ignores).handler("h", on(&["t"], pass()))
        })
        .run()
        .await;
    assert_eq!((report.handled, report.dead_lettered, report.ignored), (7, 6, 7));
    assert_eq!(kept.last(), Positions::starting_at(21));
}

#[tokio::test(start_paused = true)]
async fn b01_positions_that_cannot_be_stored_stop_their_input() {
    let kept = Kept::new(|_| {});
    let script = numbered(7).then(Step::Wait(ms(1_500))).then(Step::Never);
    let source = Box::new(Keeping(script, kept.clone()));
    let bench = Bench::new().set(|engine| engine.input(source).handler("h", on(&["t"], pass())));
    let engine = bench.engine.build().await.unwrap();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(500)).await;
    kept.0.lock().unwrap().fails = true;
    let report = checked(tokio::time::timeout(ms(5_000), run).await.unwrap().unwrap());
    assert_eq!(report.handled, 7, "what was taken is handled");
    let full = report.errors.iter().filter(|error| error.contains("of its positions is full"));
    assert_eq!(full.count(), 1, "{:?}", report.errors);
}

#[tokio::test(start_paused = true)]
async fn d12_what_comes_back_in_belongs_to_the_position_of_its_event() {
    let kept = Kept::new(|_| {});
    let source = Box::new(Keeping(numbered(5), kept.clone()));
    let again = answer(|event: Event, _| {
        Ok(Outputs::Events(vec![event_again(&event), event_again(&event)]))
    });
    let report = Bench::new()
        .set(|engine| {
            let mut first = on(&["t"], again);
            first.loopback = 2;
            let loopback = greenroom_bus::engine::LoopbackConfig {
                on: vec!["again".parse().unwrap()],
                room: 100,
            };
            let engine = engine.input(source).loopback(loopback);
            engine.handler("h", first).handler("again", on(&["again"], takes_in(ms(700))))
        })
        .run()
        .await;
    assert_eq!(report.refused, 0, "{report:?}");
    let inner = kept.0.lock().unwrap();
    let first = inner.commits.iter().find(|(_, positions)| positions.lowest() > 1).unwrap();
    assert!(first.0 >= inner.commits[0].0 + ms(1_400), "both that came back are handled first");
    assert_eq!(inner.commits.last().unwrap().1, Positions::starting_at(6));
}

/// Makes nothing, after this long.
fn takes_in(latency: Duration) -> Arc<dyn HandlerFactory> {
    handle(move |_, _| async move {
        tokio::time::sleep(latency).await;
        Ok(Outputs::Events(Vec::new()))
    })
}

fn event_again(event: &Event) -> Event {
    Event::builder(format!("{}-again", event.id()), "test", "again").build().unwrap()
}

/// Ten thousand wait, one handler blocks its thread for ever, and the input goes on giving.
#[test]
fn z09_intake_stops_at_once_and_the_run_by_its_deadline() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(4).enable_all().build().unwrap();
    let release = Arc::new(AtomicBool::new(false));
    let (report, open) = runtime.block_on(under_load(release.clone()));
    assert!(report.taken >= 10_000, "{report:?}");
    assert!(report.given_back > 9_000, "{report:?}");
    assert!((1..9).contains(&report.refused), "what is in hand and blocked: {report:?}");
    assert_eq!(open, report.given_back + report.refused, "what was abandoned stays open");
    release.store(true, Ordering::Release);
}

async fn under_load(release: Arc<AtomicBool>) -> (greenroom_bus::engine::RunReport, u64) {
    let batches = (0..3_000_u64).map(|batch| {
        let events = (0..100).map(|n| Ok(event(batch * 100 + n + 1, "t", None)));
        Step::Batch(events.collect())
    });
    let steps = batches.enumerate().flat_map(|(at, batch)| {
        // All that may wait comes at once; then the input gives on and on.
        let pause = if at < 100 { ms(0) } else { ms(5) };
        [Step::Wait(pause), batch]
    });
    let script = Script::new("script", steps);
    let given = script.given();
    let kept = Kept::new(|_| {});
    let source = Box::new(Keeping(script, kept.clone()));
    let blocks = handle(move |event, _| {
        let release = release.clone();
        async move {
            while event.id() == "1" && !release.load(Ordering::Acquire) {
                std::thread::sleep(ms(20));
            }
            tokio::time::sleep(ms(20)).await;
            Ok(Outputs::Same)
        }
    });
    let bench = Bench::new().set(|engine| {
        let engine = engine.deadline(ms(700)).pool("default", pool(8, 300_000));
        engine.input(source).handler("h", on(&["t"], blocks))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    while control.progress().queued < 10_000 {
        tokio::time::sleep(ms(5)).await;
    }
    let signal = Instant::now();
    control.drain();
    tokio::time::sleep(ms(100)).await;
    let (given_then, taken_then) = (given.load(Ordering::Acquire), control.progress().taken);
    let report = checked(run.await.unwrap());
    let took = signal.elapsed();
    assert_eq!((given.load(Ordering::Acquire), report.taken), (given_then, taken_then));
    assert!(
        took < ms(1_700) + Duration::from_millis(100),
        "by the deadline and a second: {took:?}"
    );
    (report, kept.last().count_open())
}
