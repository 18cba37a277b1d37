//! Stopping: one deadline, within which what is in hand is handled, and what its input cannot
//! deliver again; the rest is given back, and what is left at the deadline is refused (G05, Z09).

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{AckWhen, Control, Engine, Finish, HandlerConfig, OutageConfig, RunReport},
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
    watermark::Positions,
};

use crate::engine::{
    positions::{Keeping, Kept},
    support::{
        Bench, HANG, checked, event,
        handlers::{answer, handle, never, pass, slow},
        letters::MemoryLetters,
        ms, on, pool,
        sink::{Behaviour, MemorySink},
        source::{Script, Step},
    },
};

fn events(count: usize) -> Vec<Event> {
    (0..count).map(|n| event(n, "t", Some(&format!("key-{n}")))).collect()
}

/// 100 events in a pool of one worker, from a source that does not end.
fn bench(factory: Arc<dyn HandlerFactory>, deadline: Duration) -> Bench {
    Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events(100)).then(Step::Never)));
        let engine = engine.pool("default", pool(1, 50)).handler("h", on(&["t"], factory));
        engine.deadline(deadline)
    })
}

/// Runs, and asks for a drain after this long.
async fn drained(engine: Engine, after: Duration) -> RunReport {
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(after).await;
    control.drain();
    checked(run.await.unwrap())
}

#[tokio::test(start_paused = true)]
async fn g05_a_drain_handles_what_was_taken_also_beside_a_full_pool() {
    let bench = bench(slow(ms(10)), Duration::from_secs(30));
    let report = drained(bench.engine.build().await.unwrap(), ms(5)).await;
    assert_eq!((report.taken, report.handled, report.refused), (100, 100, 0));
    assert!(report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn g05_what_is_left_at_the_deadline_is_refused() {
    let bench = bench(slow(ms(10)), ms(300));
    let report = drained(bench.engine.build().await.unwrap(), ms(5)).await;
    assert!((28..=32).contains(&report.handled), "{report:?}");
    assert_eq!(report.handled + report.refused, 100);
    assert!((ms(300)..ms(500)).contains(&report.elapsed), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn z09_a_handler_that_never_returns_is_dropped_at_the_deadline() {
    let bench = bench(never(), ms(300));
    let report = drained(bench.engine.build().await.unwrap(), ms(5)).await;
    assert_eq!((report.handled, report.refused), (0, 100));
    assert!(report.elapsed < ms(500), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn g05_a_second_stop_overtakes_the_first() {
    let engine = bench(slow(ms(10)), Duration::from_secs(30)).engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(5)).await;
    control.drain();
    tokio::time::sleep(ms(200)).await;
    control.stop_now();
    control.drain();
    let report = checked(run.await.unwrap());
    assert!(report.handled < 25 && report.refused > 75, "{report:?}");
    assert!(report.elapsed < ms(400), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_drain_asked_for_before_the_run_has_a_deadline_as_well() {
    for now in [false, true] {
        let engine = bench(never(), ms(300)).engine.build().await.unwrap();
        let control = engine.control();
        if now {
            control.stop_now()
        } else {
            control.drain()
        }
        let report = checked(engine.run().await);
        assert_eq!((report.taken, report.refused), (0, 0));
        assert!(report.elapsed < ms(500), "{:?}", report.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn g05_an_output_that_never_answers_does_not_outlast_the_deadline() {
    let hangs = Behaviour { hangs: true, ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(hangs), MemoryLetters::default()).set(|engine| {
        let engine = engine.input(Box::new(Script::of(events(100)).then(Step::Never)));
        engine.handler("h", on(&["t"], slow(ms(1)))).deadline(ms(2_000))
    });
    let report = drained(bench.engine.build().await.unwrap(), ms(5)).await;
    assert_eq!(report.handled, 100);
    assert_eq!(report.errors, ["memory: what it had accepted was not stored in time"]);
    assert!(report.elapsed < ms(3_005), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn g05_a_deadline_beyond_all_time_is_none() {
    let bench = bench(slow(ms(10)), Duration::MAX);
    let report = drained(bench.engine.build().await.unwrap(), ms(5)).await;
    assert_eq!(report.handled, 100);
}

#[test]
fn z09_a_handler_that_blocks_its_thread_is_named_and_the_run_returns_in_time() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let runtime = runtime.unwrap();
    let report = runtime.block_on(async {
        let factory = answer(move |event, _| {
            if event.id() == "3" {
                let _ = blocked.lock().unwrap().recv();
            }
            Ok(Outputs::Same)
        });
        let bench = bench(factory, ms(200)).set(|engine| engine.pool("other", pool(1, 1)));
        let engine = bench.engine.build().await.unwrap();
        drained(engine, ms(100)).await
    });
    drop(release);
    // How far the others came depends on what else the blocked thread had in hand.
    assert!(report.handled <= 3 && report.refused >= 1, "{report:?}");
    let error = "the worker default-0 blocks its thread and did not stop";
    assert!(report.errors.iter().any(|known| known == error), "{:?}", report.errors);
    // 100 ms until the drain, 200 ms to the deadline, and a second.
    assert!(report.elapsed < ms(1_300), "{:?}", report.elapsed);
}

/// 100 events from an input that keeps its positions and does not end.
fn kept(bench: Bench, workers: usize, handler: HandlerConfig) -> (Bench, Kept) {
    let kept = Kept::new(|_| {});
    let script = Script::of(events(100)).then(Step::Never);
    let source = Box::new(Keeping(script, kept.clone()));
    let bench = bench.set(|engine| {
        engine.input(source).pool("default", pool(workers, 50)).handler("h", handler)
    });
    (bench, kept)
}

/// Runs, changes something, and is stopped a second later.
async fn stopped(bench: Bench, change: impl FnOnce(&Control)) -> RunReport {
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    change(&control);
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(ms(1_000)).await;
    control.drain();
    checked(tokio::time::timeout(HANG, run).await.expect("it does not end").unwrap())
}

#[tokio::test(start_paused = true)]
async fn g05_a_stop_gives_back_what_waits_and_the_next_run_takes_the_rest() {
    let (bench, positions) = kept(Bench::new(), 1, on(&["t"], slow(ms(300))));
    let report = stopped(bench, |_| {}).await;
    assert_eq!((report.handled, report.given_back, report.refused), (4, 96, 0));
    assert!(report.is_clean() && report.elapsed <= ms(1_250), "{report:?}");
    let left = positions.last();
    assert_eq!((left.count_open(), report.positions[0].standing.repeated_at_most), (96, 96));
    let again = Kept::from_stored(&left);
    let source = Box::new(Keeping(Script::of(events(100)), again.clone()));
    let next = Bench::new().set(|engine| engine.input(source).handler("h", on(&["t"], pass())));
    assert_eq!(next.run().await.handled, 96, "each that was given back, and no other");
    assert_eq!(again.last(), Positions::starting_at(101));
}

/// Between two attempts, in an outage, paused, parked, or waiting for an output that is down.
#[tokio::test(start_paused = true)]
async fn g05_a_stop_waits_for_nothing_that_waits_itself() {
    let later = || FailureKind::Retry { after: Some(Duration::from_secs(100)) };
    let fails = |kind| answer(move |_, _| Err(Failure::new(kind, "not now")));
    let down = || Behaviour { is_down: true, room: 5, ..Behaviour::default() };
    let up = Behaviour::default;
    type Change = fn(&Control);
    let none: Change = |_| {};
    let cases: [(_, _, Arc<dyn HandlerFactory>, Change); 6] = [
        ("a retry", up(), fails(later()), none),
        ("an outage", up(), fails(FailureKind::Pause), none),
        ("a pool", up(), pass(), |control| _ = control.pool("default").unwrap().pause()),
        ("a handler", up(), pass(), |control| _ = control.handler("h").unwrap().pause()),
        ("an operator", up(), fails(FailureKind::Park), none),
        ("an output", down(), pass(), none),
    ];
    for (waits_for, behaviour, handler, change) in cases {
        let bench = Bench::with(MemorySink::new(behaviour), MemoryLetters::default());
        let (bench, positions) = kept(bench, 1, on(&["t"], handler));
        let report = stopped(bench, change).await;
        assert!(report.is_clean(), "{waits_for}: {report:?}");
        assert_eq!((report.handled, report.given_back), (0, 100), "{waits_for}");
        assert_eq!(positions.last().count_open(), 100, "{waits_for}");
        assert!(report.elapsed <= ms(1_200), "{waits_for}: {:?}", report.elapsed);
    }
}

#[tokio::test(start_paused = true)]
async fn g05_what_is_made_of_an_event_that_is_acknowledged_already_is_waited_for() {
    let down = Behaviour { is_down: true, room: 5, ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(down), MemoryLetters::default());
    let at_once = HandlerConfig { ack: AckWhen::OnSuccess, ..on(&["t"], pass()) };
    let (bench, _) = kept(bench, 1, at_once);
    let report = stopped(bench.set(|engine| engine.deadline(ms(5_000))), |_| {}).await;
    assert!(report.elapsed >= ms(6_000), "nobody makes it again: {report:?}");
    assert_eq!((report.handled, report.given_back), (7, 93));
    assert!(report.lost_outputs > 0 && !report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn g05_what_is_in_hand_at_a_stop_ends_as_it_would_without_it() {
    for (kind, letters) in [
        (FailureKind::Reject, 1),
        (FailureKind::Crash, 1),
        (FailureKind::Timeout, 0),
        (FailureKind::Park, 0),
    ] {
        let fails = handle(move |_, _| async move {
            tokio::time::sleep(ms(1_500)).await;
            Err(Failure::new(kind, "on purpose"))
        });
        let (bench, _) = kept(Bench::new(), 1, on(&["t"], fails));
        let report = stopped(bench, |_| {}).await;
        assert_eq!((report.dead_lettered, report.given_back), (letters, 100 - letters), "{kind:?}");
        assert!(report.is_clean(), "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn g05_an_option_says_what_a_stop_waits_for_of_every_input() {
    let (again, _) = kept(Bench::new(), 1, on(&["t"], slow(ms(100))));
    let report = stopped(again.set(|engine| engine.finish(Finish::All)), |_| {}).await;
    assert_eq!((report.handled, report.given_back), (100, 0));
    let once = bench(slow(ms(100)), Duration::from_secs(30));
    let report = stopped(once.set(|engine| engine.finish(Finish::InHand)), |_| {}).await;
    assert_eq!((report.handled + report.refused, report.given_back), (100, 0));
    assert!(report.refused > 80 && !report.is_clean(), "nobody delivers them again: {report:?}");
    assert!(report.elapsed <= ms(1_200), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn g08_what_a_stop_cuts_off_in_hand_is_refused_and_the_rest_was_given_back() {
    let (bench, positions) = kept(Bench::new(), 1, on(&["t"], never()));
    let report = stopped(bench.set(|engine| engine.deadline(ms(300))), |_| {}).await;
    assert_eq!((report.given_back, report.refused), (99, 1));
    assert!(!report.is_clean(), "the deadline passed");
    assert_eq!(positions.last().count_open(), 100);
}

/// The first failures of an outage are those of a few events, and their attempts are few.
#[tokio::test(start_paused = true)]
async fn d09_a_stop_as_an_outage_begins_makes_no_dead_letter() {
    for finish in [None, Some(Finish::InHand), Some(Finish::All)] {
        let down = handle(|_, _| async {
            tokio::time::sleep(ms(480)).await;
            Err(Failure::retry("nobody is there"))
        });
        let (bench, positions) = kept(Bench::new(), 8, on(&["t"], down));
        // Only that all attempts of several events have failed makes it one.
        let outage = OutageConfig { failures: 1_000, ..OutageConfig::default() };
        let bench = bench.set(|engine| engine.finish(finish).deadline(ms(5_000)).outage(outage));
        let report = stopped(bench, |_| {}).await;
        assert_eq!((report.dead_lettered, positions.last().count_open()), (0, 100), "{finish:?}");
        let waited_for = if finish == Some(Finish::All) { 100 } else { 0 };
        assert_eq!((report.refused, report.given_back), (waited_for, 100 - waited_for));
    }
}
