//! What travels with an event, and what becomes of data that cannot be read.

use std::sync::Arc;

use greenroom_bus::{
    codec::Decoders,
    dead_letter::Reason,
    event::{CAUSATION_ID, CORRELATION_ID, Data, Event, ExtensionValue, TRACEPARENT},
    handler::{Failure, Outputs, typed::TypedFactory},
};

use crate::messages::support::{
    Bench,
    handlers::{answer, pass},
    on,
    source::Script,
};

#[tokio::test(start_paused = true)]
async fn m02_data_that_cannot_be_read_is_a_dead_letter_with_its_bytes() {
    let bytes = &b"\xff\x00 not what it says"[..];
    let broken = Event::builder("broken", "/test", "t")
        .datacontenttype("application/json")
        .data_binary(bytes)
        .build()
        .unwrap();
    let shape = Event::builder("shape", "/test", "t").data_json("text").build().unwrap();
    let good = Event::builder("good", "/test", "t").data_json(&[1, 2]).build().unwrap();
    let factory = TypedFactory::new(Decoders::json(), |numbers: Vec<u64>, _| async move {
        assert_eq!(numbers, [1, 2]);
        Ok(Outputs::Same)
    });
    let bench = Bench::new().set(|engine| {
        let events = [broken, shape.clone(), good];
        engine.input(Box::new(Script::of(events))).handler("h", on(&["t"], Arc::new(factory)))
    });
    let (letters, sink) = (bench.letters.clone(), bench.sink.clone());
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered, report.retried), (1, 2, 0));
    assert_eq!(sink.ids(), ["good"]);
    let mut letters = letters.stored();
    letters.sort_by_key(|letter| letter.position);
    assert!(letters.iter().all(|letter| letter.reason == Reason::Rejected));
    let kept: Vec<Event> = letters.iter().filter_map(|letter| letter.event.clone()).collect();
    assert!(matches!(kept[0].data(), Data::Binary(data) if data == bytes));
    assert_eq!(kept[1], shape);
    assert!(letters[1].error.contains("expected a sequence"), "{}", letters[1].error);
}

#[tokio::test(start_paused = true)]
async fn m02_a_handler_may_ask_for_a_type_by_itself() {
    let factory = answer(|event, _| {
        let number: u64 = event.data_as()?;
        match number {
            1 => Ok(Outputs::Same),
            _ => Err(Failure::reject("no")),
        }
    });
    let events = ["1", "\"one\""].map(|data| {
        let data = serde_json::value::RawValue::from_string(data.to_owned()).unwrap();
        Event::builder(data.get().to_owned(), "/test", "t").data_raw(data).build().unwrap()
    });
    let bench = Bench::new()
        .set(|engine| engine.input(Box::new(Script::of(events))).handler("h", on(&["t"], factory)));
    let letters = bench.letters.clone();
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (1, 1));
    let letter = &letters.stored()[0];
    assert!(letter.error.contains("not of the expected shape"), "{}", letter.error);
}

#[tokio::test(start_paused = true)]
async fn m04_what_a_handler_produces_has_the_flow_the_cause_and_the_trace_of_its_event() {
    let order = Event::builder("7", "/shop", "order")
        .extension(CORRELATION_ID, "visit")
        .extension(TRACEPARENT, "00-ab-cd-01")
        .build()
        .unwrap();
    let produce = answer(|event, _| {
        let made = |id: &str| Event::builder(format!("{}-{id}", event.id()), "/h", "made").build();
        Ok(Outputs::Events(vec![made("a")?, made("b")?]))
    });
    let bench = Bench::new().set(|engine| {
        engine.input(Box::new(Script::of([order]))).handler("h", on(&["order"], produce))
    });
    let sink = bench.sink.clone();
    assert_eq!(bench.run().await.handled, 1);
    assert_eq!(sink.ids(), ["7-a", "7-b"]);
    for stored in sink.stored() {
        let extension = |name| stored.event.extension(name).cloned();
        assert_eq!(extension(CORRELATION_ID), Some(ExtensionValue::from("visit")));
        assert_eq!(extension(CAUSATION_ID), Some(ExtensionValue::from("7")));
        assert_eq!(extension(TRACEPARENT), Some(ExtensionValue::from("00-ab-cd-01")));
    }
}

#[derive(Debug, PartialEq)]
struct Received(&'static str);

#[tokio::test(start_paused = true)]
async fn m04_local_values_travel_from_the_source_to_the_output_and_the_dead_letters() {
    let local = |id: &str, ty: &str| {
        Event::builder(id.to_owned(), "/test", ty.to_owned())
            .build()
            .unwrap()
            .with_local(Received("here"))
    };
    let handler = answer(|event, attempt| {
        assert_eq!(event.local(), Some(&Received("here")));
        match (event.ty(), attempt) {
            ("bad", _) => Err(Failure::reject("no")),
            (_, 1) => Err(Failure::retry("not yet")),
            _ => Ok(Outputs::Same),
        }
    });
    let bench = Bench::new().set(|engine| {
        engine
            .input(Box::new(Script::of([
                local("1", "good"),
                local("2", "bad"),
                local("3", "as is"),
            ])))
            .handler("h", on(&["good", "bad"], handler))
            .handler("p", on(&["as is"], pass()))
    });
    let (letters, sink) = (bench.letters.clone(), bench.sink.clone());
    let report = bench.run().await;
    assert_eq!((report.handled, report.dead_lettered), (2, 1));
    let letter = letters.stored()[0].event.clone().unwrap();
    assert_eq!(letter.local(), Some(&Received("here")));
    for stored in sink.stored() {
        assert_eq!(stored.event.local(), Some(&Received("here")), "{:?}", stored.event);
        assert!(!format!("{:?}", stored.event).contains("here"), "it is not written");
    }
}
