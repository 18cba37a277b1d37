//! Failures of single events: what fails waits for itself, and keeps nobody else waiting.

use greenroom::{Restarts, batch::Batches};
use greenroom_bus::{
    dead_letter::Reason,
    engine::PoolConfig,
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, Outputs},
};
use std::sync::Arc;

use crate::engine::support::{
    Bench, event,
    handlers::{answer, handle},
    ms, on, pool,
    source::{Script, Step},
};

fn others(count: usize) -> impl Iterator<Item = Event> {
    (0..count).map(|n| event(format!("other-{n}"), "t", Some(&format!("key-{n}"))))
}

fn bench(factory: Arc<dyn HandlerFactory>, events: Vec<Event>) -> Bench {
    let restarts = Restarts { max: 100, ..Restarts::default() };
    Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(events)));
        engine
            .pool("default", PoolConfig { restarts, ..pool(1, 1_000) })
            .handler("h", on(&["t"], factory))
    })
}

#[tokio::test(start_paused = true)]
async fn k12_d09_in_a_batch_nothing_overtakes_an_event_whose_last_attempt_is_held() {
    // Its handler has had nothing but failures, so the last attempt waits for
    // others to say who is to blame.
    let factory = handle(|event, attempt| async move {
        match event.id() == "first" && attempt <= 2 {
            true => Err(Failure::retry("not yet")),
            false => Ok(Outputs::Same),
        }
    });
    let events = ["first", "second", "third"].map(|id| event(id, "t", Some("key")));
    let batches = Some(Batches::of(3));
    let bench = Bench::new().set(|engine| {
        let script = Script::of(events).then(Step::Wait(ms(60_000)));
        engine
            .input(Box::new(script))
            .pool("default", PoolConfig { batches, ..pool(1, 100) })
            .handler("h", on(&["t"], factory))
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (3, 0));
    assert_eq!(sink.ids(), ["first", "second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn k07_a_retry_parks_the_key_and_not_the_worker() {
    let factory = handle(|event, attempt| async move {
        tokio::time::sleep(ms(1)).await;
        if event.id() == "bad" && attempt == 1 {
            return Err(Failure::new(
                FailureKind::Retry { after: Some(ms(5_000)) },
                "come back later",
            ));
        }
        Ok(Outputs::Same)
    });
    let mut events = vec![event("bad", "t", Some("key")), event("behind", "t", Some("key"))];
    events.extend(others(50));
    let bench = bench(factory, events);
    let sink = bench.sink.clone();
    let report = bench.run().await;
    let ids = sink.ids();
    assert_eq!(ids[50..], ["bad", "behind"], "the only worker went on, and the key waited");
    assert_eq!((report.handled, report.retried), (52, 1));
    let attempts: Vec<u32> = sink.stored()[50..].iter().map(|stored| stored.attempt).collect();
    assert_eq!(attempts, [2, 1]);
}

#[tokio::test(start_paused = true)]
async fn z03_an_event_that_always_fails_burns_its_attempts_and_leaves_the_others_alone() {
    let factory = answer(|event, _| match event.id() {
        "bad" => Err(Failure::retry("always")),
        _ => Ok(Outputs::Same),
    });
    let bench = bench(factory, others(20).chain([event("bad", "t", Some("bad"))]).collect());
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (20, 1, 0));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::RetriesExhausted, 3));
    assert_eq!(letter.error, "always");
    assert_eq!(letter.pool.as_deref(), Some("default"));
}

#[tokio::test(start_paused = true)]
async fn z03_an_event_that_always_panics_is_poison_and_leaves_the_others_alone() {
    let factory = answer(|event, _| match event.id() {
        "bad" => panic!("always"),
        _ => Ok(Outputs::Same),
    });
    let bench =
        bench(factory, [event("bad", "t", Some("bad"))].into_iter().chain(others(20)).collect());
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (20, 1, 0));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.attempts), (Reason::Poisoned, 2));
    assert!(letter.error.contains("always"), "{}", letter.error);
}

#[tokio::test(start_paused = true)]
async fn d05_a_rejected_event_is_a_dead_letter_at_once() {
    let bench = bench(answer(|_, _| Err(Failure::reject("no"))), others(1).collect());
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!(report.retried, 0);
    assert_eq!((letters.stored()[0].reason, letters.stored()[0].attempts), (Reason::Rejected, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_given_back_unstarted_was_not_attempted() {
    let times = std::sync::atomic::AtomicU32::new(0);
    let factory = answer(move |_, attempt| {
        assert_eq!(attempt, 1);
        match times.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0..10 => Err(Failure::new(FailureKind::Released, "not now")),
            _ => Ok(Outputs::Same),
        }
    });
    let bench = bench(factory, others(1).collect());
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.retried, report.pools[0].failed_attempts), (1, 0, 0));
    assert_eq!(sink.stored()[0].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn without_workers_left_events_are_dead_letters_and_the_report_says_why() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let bench = bench(answer(|_, _| panic!("always")), others(4).collect())
        .set(|engine| engine.pool("small", PoolConfig { restarts, ..pool(1, 1) }));
    let mut handler = on(&["u"], answer(|_, _| panic!("always")));
    handler.pool = "small".to_owned();
    let more = (0..50).map(|n| event(n, "u", None));
    let bench = bench.set(|engine| {
        engine.handler("small", handler).input(Box::new(Script::of(more).named("more")))
    });
    let report = bench.run().await;
    assert_eq!((report.taken, report.refused, report.dead_lettered), (54, 0, 54));
    assert_eq!(report.dead_letters_by_reason["no_workers"], 50);
    let disabled = report.errors.iter().filter(|error| error.contains("\"small\" was disabled"));
    assert_eq!(disabled.count(), 1, "{:?}", report.errors);
}
