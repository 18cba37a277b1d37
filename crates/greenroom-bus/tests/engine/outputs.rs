//! Which events inputs give and outputs get (G01).

use std::sync::Arc;

use greenroom_bus::{
    dead_letter::Reason,
    engine::HandlerConfig,
    event::Event,
    handler::discard::DiscardFactory,
    router::{Condition, Matcher},
};

use crate::engine::support::{Bench, event, handlers::pass, on, sink::MemorySink, source::Script};

fn subject(like: &str) -> Matcher {
    Matcher::any().subject(like.parse().unwrap())
}

/// `eu-0`, `us-1`, `eu-2` and so on.
fn events(count: usize) -> Vec<Event> {
    let of = |n: usize| event(n, "t", Some(&format!("{}-{n}", ["eu", "us"][n % 2])));
    (0..count).map(of).collect()
}

/// An output for the subjects in the EU before one for everything.
fn bench(eu: Matcher) -> (Bench, Arc<MemorySink>) {
    let first = Arc::new(MemorySink::default());
    let rest = Bench::new();
    let mut bench = Bench::new();
    let (sink, all) = (first.clone(), vec!["**".parse().unwrap()]);
    bench.engine = greenroom_bus::engine::Engine::builder()
        .output_where("eu", all.clone(), eu, sink)
        .output("rest", all, rest.sink.clone())
        .dead_letters(bench.letters.clone())
        .input(Box::new(Script::of(events(10))))
        .handler("h", on(&["t"], pass()));
    bench.sink = rest.sink;
    (bench, first)
}

#[tokio::test(start_paused = true)]
async fn g01_the_first_output_that_takes_an_event_gets_it() {
    let (bench, eu) = bench(subject("eu-*"));
    let rest = bench.sink.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, eu.ids().len(), rest.ids().len()), (10, 5, 5));
    assert!(eu.stored().iter().all(|stored| stored.event.subject().unwrap().starts_with("eu-")));
    assert_eq!(report.outputs.iter().map(|output| output.events).collect::<Vec<_>>(), [5, 5]);
}

#[tokio::test(start_paused = true)]
async fn g01_all_outputs_that_take_an_event_get_it_where_that_is_asked_for() {
    let (bench, eu) = bench(subject("eu-*"));
    let rest = bench.sink.clone();
    let report = bench.set(|engine| engine.all_outputs(true)).run().await;
    assert_eq!((report.handled, eu.ids().len(), rest.ids().len()), (10, 5, 10));
}

#[tokio::test(start_paused = true)]
async fn g01_an_event_on_whose_output_a_matcher_panics_is_refused() {
    let (bench, eu) = bench(Matcher::any().when(|event| {
        assert_ne!(event.id(), "4", "no fours");
        true
    }));
    let report = bench.run().await;
    assert_eq!((report.handled, report.refused, eu.ids().len()), (9, 1, 9));
    assert_eq!(report.restarts, 0, "no worker dies of it");
}

#[tokio::test(start_paused = true)]
async fn g01_an_input_gives_what_its_matcher_takes_and_the_rest_is_ignored() {
    let source = || Box::new(Script::of(events(10)));
    let panics = Matcher::any().when(|event| event.id() != "3" || panic!("no threes"));
    let bench = Bench::new().set(|engine| {
        let engine = engine.input_where(source(), subject("eu-*")).input_where(source(), panics);
        engine.handler("h", on(&["t"], pass()))
    });
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.taken, report.handled, report.ignored), (20, 5 + 9, 5));
    let letters = letters.stored();
    assert_eq!((letters.len(), letters[0].reason), (1, Reason::Rejected));
    assert_eq!(letters[0].error, "the matcher of its input panicked: no threes");
}

#[tokio::test(start_paused = true)]
async fn c21_inputs_handlers_and_outputs_take_events_by_what_is_in_them() {
    let asks = |condition: Condition| Matcher::any().field("/0".parse().unwrap(), condition);
    let with = |n: u32| {
        let event = Event::builder(n.to_string(), "/s", "t").data_json(&[n]);
        event.build().unwrap()
    };
    let (mut bench, first) = (Bench::new(), Arc::new(MemorySink::default()));
    let rest = bench.sink.clone();
    let even = asks(Condition::In([0, 2, 4, 6, 8].map(Into::into).to_vec()));
    let large = asks(Condition::AtLeast(5.into()));
    bench.engine = greenroom_bus::engine::Engine::builder()
        .output_where("even", vec!["**".parse().unwrap()], even, first.clone())
        .output("rest", vec!["**".parse().unwrap()], rest.clone())
        .dead_letters(bench.letters.clone())
        .input_where(Box::new(Script::of((0..10).map(with))), asks(Condition::Less(9.into())))
        .handler("large", HandlerConfig { matcher: large, ..on(&["t"], pass()) })
        .handler("rest", on(&["t"], Arc::new(DiscardFactory)));
    let report = bench.run().await;
    assert_eq!((report.taken, report.ignored, report.handled), (10, 1, 9));
    let sorted = |sink: &MemorySink| {
        let mut ids = sink.ids();
        ids.sort();
        ids
    };
    assert_eq!((sorted(&first).join(" "), sorted(&rest).join(" ")), ("6 8".into(), "5 7".into()));
}
