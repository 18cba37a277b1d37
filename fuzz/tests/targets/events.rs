//! CloudEvents in JSON: single ones and batches.

use fuzz::fuzz;
use greenroom_bus::event::{Event, EventError};

use crate::seeds::{EVENTS, JSON};

const BATCHES: &[&[u8]] = &[
    b"[]",
    br#"[{"specversion":"1.0","id":"a1","source":"/shop","type":"t","data":[1]},{"specversion":"1.0","id":"a2","source":"/shop","type":"t"}]"#,
    br#"[{"specversion":"1.0","id":"a1","source":"/shop","type":"t"},{"specversion":"1.0"}]"#,
];

/// The event as one line of JSON.
pub fn written(event: &Event) -> Vec<u8> {
    let mut line = Vec::new();
    event.write_json(&mut line);
    line
}

/// What is written stays on its line, and is read and written the same.
pub fn assert_it_survives(event: &Event) {
    let once = written(event);
    assert!(!once.contains(&b'\n'), "an event on two lines");
    let again = Event::parse(&once).expect("what was written is read");
    assert_eq!(written(&again), once);
    assert_eq!((again.id(), again.source(), again.ty()), (event.id(), event.source(), event.ty()));
    assert_eq!(again.subject(), event.subject());
    let extensions = |event: &Event| -> Vec<_> {
        event.extensions().map(|(name, value)| (name.to_owned(), value.clone())).collect()
    };
    assert_eq!(extensions(&again), extensions(event));
}

/// An error that names a place names one in the input.
pub fn assert_its_place_is_inside(error: &EventError, input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    match error {
        EventError::InvalidUtf8 { column } => {
            assert!((1..=input.len()).contains(column), "{error}")
        }
        EventError::Json { line, column, .. } => {
            // Behind the last byte of a line is where something is missing.
            let text = line.checked_sub(1).and_then(|line| lines.get(line));
            let width = text.unwrap_or_else(|| panic!("no such line: {error}")).len();
            assert!(*column <= width + 1, "{error}: the line has {width} bytes");
        }
        EventError::InBatch { error, .. } => assert_its_place_is_inside(error, input),
        _ => assert!(error.to_string().len() < 1_000, "as long as its input: {error}"),
    }
}

#[test]
fn single() {
    fuzz!(EVENTS, JSON, |input| match Event::parse(input) {
        Ok(event) => assert_it_survives(&event),
        Err(error) => assert_its_place_is_inside(&error, input),
    });
}

#[test]
fn batches() {
    fuzz!(BATCHES, JSON, |input| match Event::parse_batch(input) {
        Ok(events) => {
            events.iter().for_each(assert_it_survives);
            let mut once = Vec::new();
            Event::write_batch(&events, &mut once);
            let again = Event::parse_batch(&once).expect("what was written is read");
            let lines = |events: &[Event]| events.iter().map(written).collect::<Vec<_>>();
            assert_eq!(lines(&again), lines(&events));
        }
        Err(error) => assert_its_place_is_inside(&error, input),
    });
}
