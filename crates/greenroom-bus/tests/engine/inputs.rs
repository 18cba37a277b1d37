//! Sources: empty, broken, several at once; and what one may do to the memory.

use greenroom_bus::{dead_letter::Reason, engine::InputConfig, event::Event};
use serde_json::value::RawValue;

use crate::engine::support::{
    Bench, event,
    handlers::{pass, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    source::{Script, Step},
};

fn numbered(prefix: &str, count: usize, key: &str) -> Vec<greenroom_bus::event::Event> {
    (0..count).map(|n| event(format!("{prefix}-{n}"), "t", Some(key))).collect()
}

#[tokio::test(start_paused = true)]
async fn g06_an_empty_source_ends_the_run_with_an_empty_report() {
    let bench = Bench::new().set(|engine| engine.input(Box::new(Script::of([]))));
    let report = bench.run().await;
    assert_eq!(report.taken, 0);
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_midway_is_an_error_and_what_it_gave_is_handled() {
    let broken = Script::of(numbered("a", 20, "k")).then(Step::Fail).named("broken");
    let whole = Script::of(numbered("b", 20, "k"));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(broken)).input(Box::new(whole));
        engine.handler("pass", on(&["t"], pass()))
    });
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled), (40, 40));
    assert_eq!(report.errors, ["broken: it broke"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_named_and_ends_alone() {
    let broken = Script::of(numbered("a", 20, "k")).then(Step::Panic).named("broken");
    let whole = Script::of(numbered("b", 20, "k"));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(broken)).input(Box::new(whole));
        engine.handler("pass", on(&["t"], pass()))
    });
    let report = bench.run().await;
    assert_eq!(report.handled, 40);
    assert!(report.errors[0].contains("broken: the input failed"), "{:?}", report.errors);
}

#[tokio::test(start_paused = true)]
async fn two_inputs_share_the_last_place_of_a_full_pool() {
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(numbered("a", 100, "k"))));
        let engine = engine.input(Box::new(Script::of(numbered("b", 100, "k"))));
        engine.pool("default", pool(1, 1)).handler("slow", on(&["t"], slow(ms(1))))
    });
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused), (200, 0));
}

#[tokio::test(start_paused = true)]
async fn d02_one_key_in_two_inputs_is_two_lines_each_in_order() {
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::of(numbered("a", 100, "k"))));
        let engine = engine.input(Box::new(Script::of(numbered("b", 100, "k"))));
        engine.pool("default", pool(8, 50)).handler("slow", on(&["t"], slow(ms(1))))
    });
    let sink = bench.sink.clone();
    let report = bench.run().await;
    for prefix in ["a", "b"] {
        let ids: Vec<String> = sink.ids().into_iter().filter(|id| id.starts_with(prefix)).collect();
        let expected: Vec<String> = (0..100).map(|n| format!("{prefix}-{n}")).collect();
        assert_eq!(ids, expected);
    }
    // Two lines at 1 ms an event, side by side.
    assert!(report.elapsed < ms(150), "{:?}", report.elapsed);
}

#[tokio::test(start_paused = true)]
async fn d03_malformed_lines_do_not_pile_up_before_a_slow_dead_letter_store() {
    let lines = (0..15).map(|_| Step::Batch((0..1_000).map(|_| Err(b"{".to_vec())).collect()));
    let letters = Behaviour { latency: ms(1), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::default(), MemoryLetters::new(letters))
        .set(|engine| engine.input(Box::new(Script::new("lines", lines))));
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!(report.dead_lettered, 15_000);
    // The bound and one batch.
    assert!(letters.most() <= 11_000, "{} letters were on their way", letters.most());
}

#[tokio::test(start_paused = true)]
async fn d04_a_malformed_item_is_a_dead_letter_with_its_bytes_and_the_source_goes_on() {
    let items = vec![Err(b"{ torn".to_vec()), Ok(event(1, "t", None))];
    let bench = Bench::new().set(|engine| {
        let engine = engine.input(Box::new(Script::new("lines", [Step::Batch(items)])));
        engine.handler("pass", on(&["t"], pass()))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (1, 1, 0));
    let letter = &letters.stored()[0];
    assert_eq!(letter.raw.as_deref(), Some(&b"{ torn"[..]));
    assert_eq!((&*letter.source, letter.position), ("lines", 1));
}

fn nested(id: &str, levels: usize) -> Event {
    let json = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let data = RawValue::from_string(json).unwrap();
    Event::builder(id, "/test", "t").data_raw(data).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn z12_data_that_is_nested_too_deeply_is_a_dead_letter_and_reaches_no_handler() {
    let items = || vec![Ok(nested("shallow", 128)), Ok(nested("deep", 129))];
    let bench = Bench::new().set(|engine| {
        let usual = Script::new("usual", [Step::Batch(items())]);
        let more = InputConfig { max_depth: 1_000, ..InputConfig::default() };
        let wide = Script::new("wide", [Step::Batch(items())]);
        let engine = engine.input(Box::new(usual)).input_named("more", more, Box::new(wide));
        engine.handler("pass", on(&["t"], pass()))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.refused), (3, 1, 0));
    let letter = &letters.stored()[0];
    assert_eq!((letter.reason, letter.position), (Reason::Malformed, 2));
    assert_eq!(Event::parse(letter.raw.as_deref().unwrap()).unwrap(), nested("deep", 129));
    assert!(letter.error.contains("128 levels"), "{}", letter.error);
}
