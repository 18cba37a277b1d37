//! Outputs that reject events for good, or fail for now (D13).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom::Backoff;
use greenroom_bus::{
    BoxFuture,
    dead_letter::Reason,
    engine::{AckWhen, Control, Engine, HandlerConfig, OutageConfig, RunReport},
    event::Event,
    handler::Outputs,
    sink::{
        Outgoing, Sink, SinkError, Trouble,
        remote::{
            Attempted, Remote, RemoteSink, RequestPace, Requests, SinkRoom, TargetHad, WaitingEvent,
        },
    },
    watermark::Positions,
};
use tokio::{sync::Notify, time::Instant};

use crate::engine::{
    positions::{Keeping, Kept},
    support::{
        Bench, HANG, checked, event,
        handlers::{answer, pass},
        letters::{Letter, MemoryLetters},
        ms, on,
        sink::{Behaviour, MemorySink},
        source::{Script, Step},
    },
};

/// Every event is rejected.
const REJECTS: Behaviour = Behaviour {
    room: 64,
    latency: Duration::ZERO,
    fails_after: None,
    hangs: false,
    is_down: false,
    rejects: Some(1),
    stumbles: None,
};

fn events(count: usize) -> Vec<Event> {
    (0..count).map(|n| event(n, "t", Some(&format!("k{}", n % 3)))).collect()
}

async fn run(
    sink: MemorySink,
    handler: HandlerConfig,
    count: usize,
) -> (RunReport, Vec<Letter>, Arc<MemorySink>) {
    let bench = Bench::with(sink, MemoryLetters::default());
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    let bench =
        bench.set(|engine| engine.input(Box::new(Script::of(events(count)))).handler("h", handler));
    (bench.run().await, letters.stored(), sink)
}

#[tokio::test(start_paused = true)]
async fn d13_what_an_output_rejects_makes_a_dead_letter_of_its_input_and_the_run_goes_on() {
    let rejects = Behaviour { rejects: Some(3), ..Behaviour::default() };
    let (report, letters, sink) = run(MemorySink::new(rejects), on(&["t"], pass()), 50).await;
    let rejected = (0..50).filter(|n| rejects.rejects(&n.to_string())).count() as u64;
    assert!(rejected > 5 && rejected < 45, "{rejected}");
    assert_eq!((report.taken, report.handled, report.dead_lettered), (50, 50 - rejected, rejected));
    assert_eq!(report.dead_letters_by_reason, [("output_rejected", rejected)].into());
    assert_eq!((report.outputs[0].events, report.outputs[0].rejected), (50, rejected));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(sink.ids().len() as u64, 50 - rejected);
    let letter = &letters[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::OutputRejected, 1));
    assert_eq!(letter.error, r#"the output "out" rejects what was made of it: not this one"#);
    assert_eq!(letter.pool.as_deref(), Some("default"));
    let [by] = letter.rejected.as_slice() else { panic!("{letter:?}") };
    assert_eq!((&*by.output, &*by.error), ("out", "not this one"));
    assert!(by.event.is_none(), "it is the event of the letter");
}

#[tokio::test(start_paused = true)]
async fn d13_what_the_handler_had_made_is_kept_in_one_letter() {
    let makes = answer(|input, _| {
        let made = |n| event(format!("{}-{n}", input.id()), "made", None);
        Ok(Outputs::Events((0..3).map(made).collect()))
    });
    let (report, letters, _) = run(MemorySink::new(REJECTS), on(&["t"], makes), 2).await;
    assert_eq!((report.dead_lettered, letters.len(), report.outputs[0].rejected), (2, 2, 6));
    let letter = &letters[0];
    assert_eq!(letter.event.as_ref().unwrap().id(), "0");
    assert!(letter.error.ends_with("not this one (and 2 more: see `rejected_by`)"));
    let made: Vec<_> = letter.rejected.iter().map(|by| by.event.as_ref().unwrap()).collect();
    assert_eq!(made.iter().map(|made| made.id()).collect::<Vec<_>>(), ["0-0", "0-1", "0-2"]);
    assert_eq!(made[0].extension("causationid"), Some(&"0".into()), "as the output got it");
}

#[tokio::test(start_paused = true)]
async fn d13_of_several_outputs_one_rejects_and_the_others_store() {
    let (rejecting, other) = (Arc::new(MemorySink::new(REJECTS)), Arc::new(MemorySink::default()));
    let letters = Arc::new(MemoryLetters::default());
    let all = || vec!["**".parse().unwrap()];
    let engine = Engine::builder()
        .all_outputs(true)
        .output("first", all(), other.clone())
        .output("second", all(), rejecting)
        .dead_letters(letters.clone())
        .input(Box::new(Script::of(events(10))))
        .handler("h", on(&["t"], pass()));
    let report = checked(engine.build().await.unwrap().run().await);
    assert_eq!((report.handled, report.dead_lettered, report.refused), (0, 10, 0));
    assert_eq!((other.ids().len(), letters.stored().len()), (10, 10));
    let rejected: Vec<_> = report.outputs.iter().map(|output| output.rejected).collect();
    assert_eq!(rejected, [0, 10]);
    assert!(letters.stored().iter().all(|letter| &*letter.rejected[0].output == "second"));
}

#[tokio::test(start_paused = true)]
async fn d13_a_letter_that_cannot_be_stored_refuses_the_event() {
    let full = Behaviour { fails_after: Some(0), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(REJECTS), MemoryLetters::new(full));
    let bench = bench.set(|engine| {
        engine.input(Box::new(Script::of(events(5)))).handler("h", on(&["t"], pass()))
    });
    let report = bench.run().await;
    assert_eq!((report.dead_lettered, report.handled, report.refused), (0, 0, 5));
    assert!(!report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn d13_d10_the_letter_is_stored_before_the_input_is_settled() {
    let slow = Behaviour { latency: ms(100), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(REJECTS), MemoryLetters::new(slow));
    let letters = bench.letters.clone();
    // What a commit says is done has its letter.
    let kept = Kept::new(move |positions: &Positions| {
        let stored = letters.stored();
        for n in 0..5u64 {
            let has_letter = stored.iter().any(|letter| letter.position == n + 1);
            assert!(has_letter || !positions.is_done(n + 1), "{n} of {positions:?}");
        }
    });
    let source = Box::new(Keeping(Script::of(events(5)), kept));
    let bench = bench.set(|engine| engine.input(source).handler("h", on(&["t"], pass())));
    assert_eq!(bench.run().await.dead_lettered, 5);
}

#[tokio::test(start_paused = true)]
async fn d13_what_was_acknowledged_before_is_kept_in_a_letter_and_counts_as_handled() {
    let handler = HandlerConfig { ack: AckWhen::OnSuccess, ..on(&["t"], pass()) };
    let bench = Bench::with(MemorySink::new(REJECTS), MemoryLetters::default());
    let letters = bench.letters.clone();
    let engine = bench.engine.input(Box::new(Script::of(events(5)))).handler("h", handler);
    let report = engine.build().await.unwrap().run().await;
    assert_eq!((report.handled, report.dead_lettered, report.lost_outputs), (5, 0, 0));
    assert_eq!(letters.stored().len(), 5, "nothing is lost");
}

/// A sink that takes nothing until it is let.
#[derive(Default)]
struct Gated {
    open: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<Outgoing>,
    since: Option<Instant>,
    resumed: u32,
}

impl Gated {
    fn stores(&self) {
        let mut state = self.state.lock().unwrap();
        state.since = None;
        state.waiting.drain(..).for_each(|outgoing| outgoing.ack.confirm());
        drop(state);
        self.open.notify_one();
    }
}

impl Sink for Gated {
    fn describe(&self) -> String {
        "gated".to_owned()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let mut state = self.state.lock().unwrap();
        state.since.get_or_insert_with(Instant::now);
        state.waiting.push(outgoing);
        Ok(())
    }

    fn accept<'a>(&'a self, _: Outgoing) -> BoxFuture<'a, ()> {
        unreachable!("there is always room")
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async {
            self.open.notified().await;
            Ok(())
        })
    }

    fn failure(&self) -> Option<SinkError> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<Trouble> {
        let since = self.state.lock().unwrap().since?;
        Some(Trouble::paused(since.elapsed(), "401: the credentials were refused"))
    }

    fn resume(&self) -> bool {
        self.state.lock().unwrap().resumed += 1;
        self.stores();
        true
    }
}

async fn gated(source: Script, limit: Duration) -> (Engine, Arc<Gated>) {
    let sink = Arc::new(Gated::default());
    (delivering_to(sink.clone(), source, limit).await, sink)
}

async fn delivering_to(sink: Arc<dyn Sink>, source: Script, limit: Duration) -> Engine {
    let outage = OutageConfig { limit, ..OutageConfig::default() };
    let engine = Engine::builder()
        .output("api", vec!["**".parse().unwrap()], sink)
        .dead_letters(Arc::new(MemoryLetters::default()))
        .outage(outage)
        .input(Box::new(source))
        .handler("h", on(&["t"], pass()));
    engine.build().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn d13_a_paused_output_ends_the_run_after_the_limit_and_says_why() {
    let (engine, _sink) = gated(Script::of(events(5)), ms(60_000)).await;
    let report = tokio::time::timeout(HANG, engine.run()).await.unwrap();
    assert_eq!((report.refused, report.dead_lettered, report.handled), (5, 0, 0));
    let says = "the output \"api\" is paused for 60 s: 401: the credentials were refused";
    assert!(report.errors.iter().any(|error| error == says), "{:?}", report.errors);
    assert!(report.outputs[0].trouble.as_ref().is_some_and(|trouble| trouble.contains("401")));
}

/// A target that never takes its first event. Of the others, it stores one every 40 s.
#[derive(Default)]
struct Stubborn {
    kept: AtomicU32,
}

impl Remote for Stubborn {
    type Kept = u32;

    fn describe(&self) -> String {
        "stubborn".to_owned()
    }

    fn keep(&self, _: Event, _: Option<u64>) -> u32 {
        self.kept.fetch_add(1, Relaxed)
    }

    fn pace(&self) -> RequestPace {
        let second = Backoff::new(ms(1_000), ms(1_000));
        RequestPace { concurrency: 8, batching: None, backoff: second, probe: second }
    }

    async fn attempt(&self, events: &[WaitingEvent<u32>]) -> Attempted {
        if events[0].kept == 0 {
            let (error, had) = ("503".to_owned(), TargetHad::Answered);
            return Attempted::Failed { error, after: None, had };
        }
        tokio::time::sleep(ms(40_000) * events[0].kept).await;
        Attempted::Stored
    }
}

struct StubbornSink(Requests<Stubborn>);

impl RemoteSink for StubbornSink {
    type Driver = Requests<Stubborn>;

    fn driver(&self) -> &Self::Driver {
        &self.0
    }
}

#[tokio::test(start_paused = true)]
async fn d13_an_output_that_gets_on_with_all_but_one_event_ends_the_run_after_the_last_other() {
    let sink = Requests::begin(Stubborn::default(), SinkRoom::new(1 << 20, 100)).unwrap();
    // Each is a line of its own.
    let events: Vec<_> = (0..6).map(|n| event(n, "t", Some(&format!("k{n}")))).collect();
    let engine = delivering_to(Arc::new(StubbornSink(sink)), Script::of(events), ms(60_000)).await;
    let report = tokio::time::timeout(HANG, engine.run()).await.unwrap();
    assert_eq!((report.handled, report.refused, report.dead_lettered), (5, 1, 0), "{report:?}");
    // The last other is stored after 200 s.
    assert!((ms(260_000)..ms(262_000)).contains(&report.elapsed), "{:?}", report.elapsed);
    let says = "the output \"api\" is failing for 260 s: 503";
    assert!(report.errors.iter().any(|error| error == says), "{:?}", report.errors);
}

#[tokio::test(start_paused = true)]
async fn d13_an_operator_resumes_a_paused_output() {
    let (engine, sink) = gated(Script::of(events(5)), ms(60_000)).await;
    let control: Control = engine.control();
    let running = tokio::spawn(engine.run());
    let paused = async {
        while control.output_views()[0].trouble.is_none() {
            tokio::time::sleep(ms(10)).await;
        }
    };
    tokio::time::timeout(HANG, paused).await.unwrap();
    assert!(control.resume_output("nobody").is_err());
    while !running.is_finished() {
        assert_eq!(control.resume_output("api"), Ok(true));
        tokio::time::sleep(ms(10)).await;
    }
    let report = running.await.unwrap();
    assert_eq!((report.handled, report.refused), (5, 0));
    assert!(report.outputs[0].trouble.is_none() && sink.state.lock().unwrap().resumed > 0);
}

#[tokio::test(start_paused = true)]
async fn g01_d13_an_output_that_was_removed_while_it_is_paused_is_seen_and_resumed() {
    let source = Script::of(events(5)).then(Step::Never);
    let (engine, _sink) = gated(source, ms(60_000)).await;
    let control: Control = engine.control();
    let running = tokio::spawn(engine.run());
    let all_are_handed = async {
        while control.output_views()[0].events < 5 {
            tokio::time::sleep(ms(1)).await;
        }
    };
    tokio::time::timeout(HANG, all_are_handed).await.unwrap();
    let removal = control.remove_output("api").unwrap();
    let view = control.output_views().remove(0);
    assert_eq!((&*view.name, view.removed, view.trouble.is_some()), ("api", true, true));
    assert_eq!(control.resume_output("api"), Ok(true));
    let removed = tokio::time::timeout(HANG, removal.done()).await.unwrap();
    assert_eq!((removed.events, removed.error), (5, None));
    assert!(control.output_views().is_empty(), "it is done");
    assert!(control.resume_output("api").is_err());
    control.drain();
    let report = tokio::time::timeout(HANG, running).await.unwrap().unwrap();
    assert_eq!((report.handled, report.refused), (5, 0));
}
