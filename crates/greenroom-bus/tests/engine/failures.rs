//! What becomes of failed attempts, and who is told of them (D05, R10).

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use greenroom_bus::{
    dead_letter::Reason,
    engine::{HandlerConfig, LoopbackConfig, Retry},
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
};

use crate::engine::support::{
    Bench, event,
    handlers::{answer, pass},
    ms, on, pool,
    source::{Script, Step},
};

fn events(count: usize) -> impl Iterator<Item = Event> {
    (0..count).map(|n| event(n, "t", Some(&format!("key-{n}"))))
}

fn bench(factory: Arc<dyn HandlerFactory>, count: usize) -> Bench {
    Bench::new().set(|engine| {
        engine.input(Box::new(Script::of(events(count)))).handler("h", on(&["t"], factory))
    })
}

/// What was told: id, attempt, key, kind and error.
type Told = Arc<Mutex<Vec<(String, u32, String, Option<FailureKind>, String)>>>;

fn told(bench: Bench) -> (Bench, Told) {
    let told = Told::default();
    let notes = told.clone();
    let bench = bench.set(|engine| {
        engine.on_failure(move |failed| {
            assert_eq!((&*failed.pool, &*failed.handler), ("default", "h"));
            assert_eq!((failed.source, failed.event.ty()), ("script", "t"));
            notes.lock().unwrap().push((
                failed.event.id().to_owned(),
                failed.attempt,
                failed.key.unwrap_or_default().to_owned(),
                failed.kind,
                failed.error.to_owned(),
            ));
        })
    });
    (bench, told)
}

#[tokio::test(start_paused = true)]
async fn r10_an_error_handler_sees_each_failure_with_its_event() {
    let fails = |event: Event, attempt: u32| match event.id() {
        "0" if attempt < 3 => Err(Failure::retry("not yet")),
        "1" => Err(Failure::reject("never")),
        _ => Ok(Outputs::Same),
    };
    let (bench, told) = told(bench(answer(fails), 3));
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (2, 1));
    let mut told = told.lock().unwrap().clone();
    told.sort_by_key(|(id, attempt, ..)| (id.clone(), *attempt));
    let retry = Some(FailureKind::Retry { after: None });
    let line = |id: &str, attempt, kind, error: &str| {
        (id.to_owned(), attempt, format!("key-{id}"), kind, error.to_owned())
    };
    let rejected = line("1", 1, Some(FailureKind::Reject), "never");
    assert_eq!(*told, [line("0", 1, retry, "not yet"), line("0", 2, retry, "not yet"), rejected]);
}

#[tokio::test(start_paused = true)]
async fn r10_a_handler_that_panics_is_told_with_its_event() {
    let panics = answer(|event, attempt| match event.id() {
        "1" if attempt == 1 => panic!("on purpose"),
        _ => Ok(Outputs::Same),
    });
    let (bench, told) = told(bench(panics, 3));
    assert_eq!(bench.run().await.handled, 3);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    assert_eq!((&*told[0].0, told[0].1, told[0].3), ("1", 1, None));
}

#[tokio::test(start_paused = true)]
async fn r10_an_error_handler_that_panics_changes_nothing() {
    for panics_too in [false, true] {
        let fails = answer(move |_, attempt| match attempt {
            1 if panics_too => panic!("the handler"),
            1 => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::Same),
        });
        let bench =
            bench(fails, 2).set(|engine| engine.on_failure(|_| panic!("the error handler")));
        let report = bench.run().await;
        assert_eq!((report.handled, report.retried), (2, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn d05_a_fatal_failure_stops_its_source_and_settles_nothing() {
    let fatal = answer(|event, _| match event.id() {
        "20" => Err(Failure::new(FailureKind::Fatal, "the licence has run out")),
        _ => Ok(Outputs::Same),
    });
    let source = Script::of(events(30)).named("broken").then(Step::Wait(ms(1_000)));
    let later = (0..100).map(|n| Ok(event(format!("late-{n}"), "t", None))).collect();
    let others = (0..50).map(|n| event(format!("other-{n}"), "t", None));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(source.then(Step::Batch(later))));
        let engine = engine.input(Box::new(Script::of(others)));
        engine.pool("default", pool(1, 100)).handler("h", on(&["t"], fatal))
    });
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    let report = bench.run().await;
    // It is stopped at once, with or without its last batch of seven before the wait.
    assert!((50 + 21..=50 + 30).contains(&report.taken), "{report:?}");
    assert_eq!((report.handled, report.refused), (report.taken - 1, 1));
    assert!(letters.stored().is_empty() && !sink.ids().contains(&"20".to_owned()));
    let expected = "broken: stopped by the handler \"h\": the licence has run out";
    assert_eq!(report.errors, [expected]);
    assert!(!report.is_clean());
}

#[tokio::test(start_paused = true)]
async fn d05_a_fatal_failure_of_what_came_back_in_stops_the_source_it_was_made_of() {
    let made = |ty: &'static str| {
        answer(move |event, _| {
            let made = Event::builder(event.id(), "test", ty).build()?;
            Ok(Outputs::Events(vec![made]))
        })
    };
    let fatal = answer(|_, _| Err(Failure::new(FailureKind::Fatal, "the licence has run out")));
    let one = |ty: &str| Step::Batch(vec![Ok(event(ty, ty, None))]);
    let later = |ty: &str| Script::new(ty, [one(ty), Step::Wait(ms(1_000)), one(ty)]);
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(later("good"))).input(Box::new(later("a")));
        let engine = engine.loopback(LoopbackConfig::new(vec!["back.*".parse().unwrap()]));
        let sends = |factory| HandlerConfig { loopback: 1, ..on(&["a"], factory) };
        let again = HandlerConfig { loopback: 1, ..on(&["back.1"], made("back.2")) };
        let engine = engine.handler("good", on(&["good"], pass()));
        let engine = engine.handler("a", sends(made("back.1"))).handler("again", again);
        engine.handler("fatal", on(&["back.2"], fatal))
    });
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled, report.refused), (3, 2, 1), "{report:?}");
    assert_eq!(report.errors, ["a: stopped by the handler \"fatal\": the licence has run out"]);
}

#[tokio::test(start_paused = true)]
async fn d05_attempts_end_when_they_have_failed_for_as_long_as_they_may() {
    let tries = Arc::new(AtomicU32::new(0));
    let seen = tries.clone();
    let fails = answer(move |_, attempt| {
        seen.store(attempt, Ordering::Relaxed);
        Err(Failure::retry("no"))
    });
    let mut handler = on(&["t"], fails);
    let backoff = greenroom::Backoff::new(ms(1_000), ms(1_000));
    handler.retry = Some(Retry { attempts: 1_000, backoff, total: Some(ms(10_000)) });
    let bench = Bench::new()
        .set(|engine| engine.input(Box::new(Script::of(events(1)))).handler("h", handler));
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!(letters.stored()[0].reason, Reason::RetriesExhausted);
    // Waits of up to a second each, with jitter.
    let tries = tries.load(Ordering::Relaxed);
    assert!((10..=25).contains(&tries), "{tries}");
    assert!((ms(10_000)..ms(11_200)).contains(&report.elapsed), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn d05_retries_hold_no_worker() {
    let fails_first = answer(|event, attempt| match event.id() {
        "0" if attempt < 3 => {
            Err(Failure::new(FailureKind::Retry { after: Some(ms(5_000)) }, "come back later"))
        }
        _ => Ok(Outputs::Same),
    });
    let handler = HandlerConfig { ..on(&["t"], fails_first) };
    let source = Script::of(events(50)).then(Step::Wait(ms(20_000)));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(source)).pool("default", pool(1, 100));
        engine.handler("h", handler).handler("other", on(&["other"], pass()))
    });
    let sink = bench.sink.clone();
    let run = tokio::spawn(bench.run());
    tokio::time::sleep(ms(100)).await;
    assert_eq!(sink.ids().len(), 49, "one worker, and it handles the others meanwhile");
    assert_eq!(run.await.unwrap().handled, 50);
    assert_eq!(sink.stored().last().unwrap().attempt, 3);
}
