//! An output or a dead-letter store that cannot store ends the run: what it did not
//! confirm is refused (D06, D10).

use greenroom_bus::event::Event;

use crate::engine::support::{
    Bench, event,
    handlers::{answer, pass},
    letters::MemoryLetters,
    on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

fn events(count: usize) -> Vec<Event> {
    (0..count).map(|n| event(n, "t", Some(&format!("key-{}", n % 7)))).collect()
}

fn failing(fails_after: usize) -> Behaviour {
    Behaviour { room: 5, fails_after: Some(fails_after), ..Behaviour::default() }
}

#[tokio::test(start_paused = true)]
async fn d10_an_output_that_fails_ends_the_run_and_what_it_did_not_store_is_refused() {
    let bench = Bench::with(MemorySink::new(failing(30)), MemoryLetters::default());
    let bench = bench.set(|engine| {
        // The source does not end by itself.
        let engine = engine.input(Box::new(Script::of(events(200)).then(Step::Never)));
        engine.pool("default", pool(4, 20)).handler("h", on(&["t"], pass()))
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!(report.errors, ["memory: it is full for good"]);
    assert_eq!((report.handled, sink.ids().len()), (30, 30));
    assert_eq!(report.refused, report.taken - 30);
}

#[tokio::test(start_paused = true)]
async fn d06_a_dead_letter_store_that_fails_ends_the_run_and_its_events_are_refused() {
    let bench = Bench::with(MemorySink::default(), MemoryLetters::new(failing(10)));
    let reject = answer(|_, _| Err(greenroom_bus::handler::Failure::reject("no")));
    let bench = bench.set(|engine| {
        let engine = engine.input(Box::new(Script::of(events(200)).then(Step::Never)));
        engine.pool("default", pool(4, 20)).handler("h", on(&["t"], reject))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!(report.errors, ["letters: it is full for good"]);
    assert_eq!((report.dead_lettered, letters.stored().len()), (10, 10));
    assert_eq!(report.refused, report.taken - 10);
    assert_eq!(report.dead_letters_by_reason["rejected"], 10, "only what was stored is counted");
}

#[tokio::test(start_paused = true)]
async fn an_output_that_fails_at_the_very_end_is_an_error_as_well() {
    let late = Behaviour { room: 200, fails_after: Some(99), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(late), MemoryLetters::default()).set(|engine| {
        let engine = engine.input(Box::new(Script::of(events(100))));
        engine.handler("h", on(&["t"], pass()))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused), (99, 1));
    assert_eq!(report.errors, ["memory: it is full for good"]);
}
