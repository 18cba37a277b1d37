//! Stopping: one deadline, within which what was taken is handled; what is
//! left is refused (G05, Z09).

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    engine::{Engine, RunReport},
    event::Event,
    handler::{HandlerFactory, Outputs},
};

use crate::support::{
    Bench, checked, event,
    handlers::{answer, never, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
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
