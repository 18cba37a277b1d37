//! An outage is not a poison message (D09).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::batch::Batches;
use greenroom_bus::{
    engine::{HandlerConfig, OutageConfig, PoolConfig, Retry},
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, HandlerResult, Outputs},
    layer::{Around, Deduplication, Layer, Layers, Request, Surrounded},
    router::Matcher,
};
use tokio::time::Instant;

use crate::engine::support::{
    Bench, event,
    handlers::answer,
    ms, on, pool,
    source::{Script, Step},
};

fn events(count: usize) -> Vec<Event> {
    (0..count).map(|n| event(n, "t", Some(&format!("key-{n}")))).collect()
}

/// Fails until this long after the start, and notes when each attempt was made.
fn down(time: Duration, kind: FailureKind, attempts: &Attempts) -> Arc<dyn HandlerFactory> {
    let (up, attempts) = (Instant::now() + time, attempts.clone());
    answer(move |_, _| {
        attempts.lock().unwrap().push(Instant::now());
        match Instant::now() < up {
            true => Err(Failure::new(kind, "503")),
            false => Ok(Outputs::Same),
        }
    })
}

type Attempts = Arc<Mutex<Vec<Instant>>>;

fn bench(factory: Arc<dyn HandlerFactory>, events: Vec<Event>) -> Bench {
    Bench::new().set(|engine| {
        let limit = Duration::from_secs(90);
        let engine = engine.outage(OutageConfig { limit, ..OutageConfig::default() });
        let engine = engine.input(Box::new(Script::of(events)));
        engine.pool("default", pool(8, 100)).handler("h", on(&["t"], factory))
    })
}

#[tokio::test(start_paused = true)]
async fn d09_z06_in_an_outage_nothing_is_dead_lettered_and_all_is_handled_soon_after_it() {
    for kind in [FailureKind::Retry { after: None }, FailureKind::Timeout, FailureKind::Pause] {
        let attempts = Attempts::default();
        let outage = Duration::from_secs(60);
        let report = bench(down(outage, kind, &attempts), events(500)).run().await;
        assert_eq!((report.handled, report.dead_lettered, report.refused), (500, 0, 0), "{kind:?}");
        assert!(report.elapsed < outage + Duration::from_secs(10), "{:?}", report.elapsed);
        // 20 failures make the outage, with those in hand; then one probes at a
        // time, at most every 100 ms.
        let attempts = attempts.lock().unwrap();
        let failed = attempts.len() - 500;
        assert!(failed < 100, "{failed} attempts failed in a minute");
        assert_eq!(report.retried, failed as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn d09_a_single_failing_event_burns_its_attempts() {
    let attempts = Attempts::default();
    let factory = down(Duration::from_secs(3_600), FailureKind::Retry { after: None }, &attempts);
    let report = bench(factory, events(1)).run().await;
    assert_eq!((report.dead_lettered, report.refused), (1, 0));
    assert_eq!(attempts.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn d09_an_outage_beyond_its_limit_ends_the_run_and_refuses_the_rest() {
    let factory =
        down(Duration::from_secs(36_000), FailureKind::Retry { after: None }, &Attempts::default());
    let report = bench(factory, events(50)).run().await;
    assert_eq!((report.dead_lettered, report.refused), (0, 50));
    assert!(report.errors[0].contains("\"h\" has been in outage for 90 s: 503"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d09_the_limit_holds_while_events_still_wait_beside_the_pool() {
    let factory =
        down(Duration::from_secs(36_000), FailureKind::Retry { after: None }, &Attempts::default());
    let report = bench(factory, events(1_000)).run().await;
    assert_eq!((report.dead_lettered, report.refused), (0, 1_000));
    assert!(report.elapsed < Duration::from_secs(95), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn d09_a_probe_that_panics_or_says_nothing_gives_way_to_another() {
    let up = Instant::now() + Duration::from_secs(20);
    let turn = Mutex::new(0_u32);
    let factory = answer(move |_, _| {
        if Instant::now() >= up {
            return Ok(Outputs::Same);
        }
        let mut turn = turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *turn += 1;
        match *turn {
            1 => Err(Failure::new(FailureKind::Pause, "401")),
            2 => panic!("the first probe"),
            3 => Err(Failure::new(FailureKind::Released, "not now")),
            _ => Err(Failure::retry("503")),
        }
    });
    let report = bench(factory, events(100)).run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (100, 0, 0), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d09_a_handler_in_outage_leaves_another_of_its_pool_alone() {
    let factory = down(Duration::from_secs(5), FailureKind::Pause, &Attempts::default());
    let events = (0..100).map(|n| event(n, if n % 2 == 0 { "t" } else { "u" }, Some("key")));
    let started = Instant::now();
    let last = Arc::new(Mutex::new(started));
    let noted = last.clone();
    let other = answer(move |_, _| {
        *noted.lock().unwrap() = Instant::now();
        Ok(Outputs::Same)
    });
    let bench = bench(factory, events.collect()).set(|engine| {
        let outage = OutageConfig { failures: 5, ..OutageConfig::default() };
        engine.outage(outage).handler("other", on(&["u"], other))
    });
    assert_eq!(bench.run().await.handled, 100);
    assert!(*last.lock().unwrap() - started < ms(1_000));
}

/// One event a second, each with a key of its own.
fn a_second_apart(count: usize, every: u64) -> Script {
    let steps = events(count)
        .into_iter()
        .flat_map(|event| [Step::Batch(vec![Ok(event)]), Step::Wait(ms(every))]);
    Script::new("slow", steps.collect::<Vec<_>>())
}

fn slow_bench(factory: Arc<dyn HandlerFactory>, source: Script, retry: Retry) -> Bench {
    Bench::new().set(|engine| {
        let handler = HandlerConfig { retry: Some(retry), ..on(&["t"], factory) };
        engine.input(Box::new(source)).pool("default", pool(8, 100)).handler("h", handler)
    })
}

#[tokio::test(start_paused = true)]
async fn d09_a_target_that_is_down_makes_no_dead_letters_of_one_event_a_second() {
    let total = Some(Duration::from_secs(2));
    for (every, retry) in [
        (1_000, Retry::default()),
        (1_000, Retry { total, ..Retry::default() }),
        (4_000, Retry::default()),
        (9_000, Retry { attempts: 2, ..Retry::default() }),
    ] {
        let factory =
            down(Duration::from_secs(60), FailureKind::Retry { after: None }, &Attempts::default());
        let report = slow_bench(factory, a_second_apart(20, every), retry).run().await;
        assert_eq!((report.handled, report.dead_lettered), (20, 0), "{every}: {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d09_a_single_failing_event_of_an_endless_input_is_given_up_after_the_window() {
    let attempts = Attempts::default();
    let factory = down(Duration::from_secs(36_000), FailureKind::Retry { after: None }, &attempts);
    let source = Script::of(events(1)).then(Step::Never);
    let bench = slow_bench(factory, source, Retry::default());
    let letters = bench.letters.clone();
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(letters.stored().is_empty(), "another one may come and say who is to blame");
    let why = control.why("key-0").remove(0).why.expect("it waits in its pool");
    assert_eq!(why.attempt, 4, "what is given back unstarted is no attempt");
    let error = why.last_error.unwrap_or_default();
    assert!(error.contains("waits for others") && error.contains("503"), "{error}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(letters.stored().len(), 1);
    assert!(attempts.lock().unwrap().len() < 20, "it is no busy loop");
    control.drain();
    assert_eq!(run.await.unwrap().dead_lettered, 1);
}

#[tokio::test(start_paused = true)]
async fn d09_a_poison_event_among_good_ones_is_given_up_after_its_attempts() {
    let factory = answer(|event, _| match event.id() {
        "3" => Err(Failure::retry("500")),
        _ => Ok(Outputs::Same),
    });
    let report = slow_bench(factory, a_second_apart(20, 500), Retry::default()).run().await;
    assert_eq!((report.handled, report.dead_lettered, report.retried), (19, 1, 4));
}

#[tokio::test(start_paused = true)]
async fn d09_the_last_attempt_waits_no_longer_once_another_event_has_succeeded() {
    let attempts = Attempts::default();
    let noted = attempts.clone();
    let factory = answer(move |event, _| match event.id() {
        "3" => {
            noted.lock().unwrap().push(Instant::now());
            Err(Failure::retry("500"))
        }
        _ => Ok(Outputs::Same),
    });
    let retry = Retry { attempts: 2, ..Retry::default() };
    let report = slow_bench(factory, a_second_apart(20, 500), retry).run().await;
    assert_eq!((report.handled, report.dead_lettered), (19, 1));
    let attempts = attempts.lock().unwrap();
    assert_eq!(attempts.len(), 2);
    let waited = attempts[1] - attempts[0];
    assert!(waited < ms(1_000), "the next event says who is to blame: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn d09_events_that_failed_before_an_outage_was_known_have_all_attempts_after_it() {
    // Four of five attempts fail before the outage is known, which takes another event; then one
    // more fails.
    let up = Instant::now() + Duration::from_secs(30);
    let after = Mutex::new(0);
    let factory = answer(move |event, _| {
        if Instant::now() < up {
            return Err(Failure::retry("503"));
        }
        let mut after = after.lock().unwrap();
        *after += 1;
        match *after {
            2 | 3 if event.id() == "0" || event.id() == "1" => Err(Failure::retry("503")),
            _ => Ok(Outputs::Same),
        }
    });
    let source = a_second_apart(4, 1_000).then(Step::Wait(Duration::from_secs(10)));
    let report = slow_bench(factory, source, Retry::default()).run().await;
    assert_eq!((report.handled, report.dead_lettered), (4, 0), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d09_the_limit_of_an_outage_begins_when_the_inputs_have_ended() {
    // The target is down from the start and comes back 60 s after the last input has ended: within
    // the limit of 90 s, although the outage is older than that by then.
    let attempts = Attempts::default();
    let factory = down(Duration::from_secs(180), FailureKind::Retry { after: None }, &attempts);
    let source = Script::of(events(50)).then(Step::Wait(Duration::from_secs(120)));
    let bench = Bench::new().set(|engine| {
        let limit = Duration::from_secs(90);
        let engine = engine.outage(OutageConfig { limit, ..OutageConfig::default() });
        engine
            .input(Box::new(source))
            .pool("default", pool(8, 100))
            .handler("h", on(&["t"], factory))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused), (50, 0), "{:?}", report.errors);
    assert!(report.elapsed > Duration::from_secs(180));
}

/// Rejects, in the handler's place, what is "bad".
#[derive(Clone)]
struct NothingBad;

impl Around for NothingBad {
    type Pass = ();

    fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
        match request.event.id().starts_with("bad") {
            true => Err(Err(Failure::reject("it is bad"))),
            false => Ok(()),
        }
    }
}

impl<S> Layer<S> for NothingBad {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

/// A minute of outage. Before each of a hundred events come two of its key that are answered in the
/// handler's place: one that was handled before, and one that is bad.
fn answered_in_its_place(kind: FailureKind, batches: usize, attempts: &Attempts) -> Bench {
    let (up, attempts) = (Instant::now() + Duration::from_secs(60), attempts.clone());
    let target = answer(move |event, _| {
        if event.id() == "seen" {
            return Ok(Outputs::Same);
        }
        attempts.lock().unwrap().push(Instant::now());
        match Instant::now() < up {
            true => Err(Failure::new(kind, "503")),
            false => Ok(Outputs::Same),
        }
    });
    let three = |n: u32| {
        let ids = ["seen".to_owned(), format!("bad-{n}"), n.to_string()];
        ids.map(|id| event(id, "t", Some(&format!("key-{n}"))))
    };
    let first = Step::Batch(vec![Ok(event("seen", "t", None))]);
    let source = Script::new("script", [first, Step::Wait(ms(100))]);
    let source = source.then(Step::Batch((0..100).flat_map(three).map(Ok).collect()));
    let layers = Layers::new().layer(NothingBad);
    let layers = layers.layer(Deduplication::within(Duration::from_secs(600)));
    Bench::new().set(|engine| {
        let batches = Some(Batches::of(batches));
        let engine = engine.pool("default", PoolConfig { batches, ..pool(8, 100) });
        let retry = Some(Retry { attempts: 2, ..Retry::default() });
        let handler = HandlerConfig { retry, ..on(&["t"], layers.around(target)) };
        engine.input(Box::new(source)).handler("h", handler)
    })
}

#[tokio::test(start_paused = true)]
async fn d09_what_is_answered_in_the_handlers_place_hides_no_outage_and_ends_none() {
    for kind in [FailureKind::Retry { after: None }, FailureKind::Pause] {
        for batches in [1, 4] {
            let attempts = Attempts::default();
            let report = answered_in_its_place(kind, batches, &attempts).run().await;
            assert_eq!((report.handled, report.dead_lettered), (201, 100), "{kind:?} {report:?}");
            let of = &report.dead_letters_by_reason;
            assert_eq!(of.get("rejected"), Some(&100), "no good event has used its attempts up");
            let failed = attempts.lock().unwrap().len() - 100;
            assert!(failed < 100, "{failed} attempts failed in a minute: {kind:?} {batches}");
            assert!(report.elapsed < Duration::from_secs(70), "{:?}", report.elapsed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d09_the_limit_begins_anew_with_an_input_that_is_added_after_the_others_have_ended() {
    // What the first input gave waits beside the pool, so the run goes on.
    let attempts = Attempts::default();
    let factory = down(Duration::from_secs(180), FailureKind::Retry { after: None }, &attempts);
    let bench = bench(factory, events(1_000));
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    tokio::time::sleep(Duration::from_secs(60)).await;
    let added = Script::new("added", [Step::Wait(Duration::from_secs(150))]);
    control.add_input("added", Matcher::any(), Box::new(added)).unwrap();
    let report = run.await.unwrap();
    assert_eq!((report.handled, report.refused), (1_000, 0), "{:?}", report.errors);
}
