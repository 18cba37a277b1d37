//! What worker processes answer, and what they are given.

use fuzz::fuzz;
use greenroom_bus::{
    event::Event,
    handler::{
        Outputs,
        exec::fuzzed::{answer, request},
    },
};
use serde_json::value::RawValue;

use crate::{
    events::{assert_it_survives, written},
    seeds::{EVENTS, JSON},
};

const ANSWERS: &[&[u8]] = &[
    br#"{"token":"17","outcome":"success","events":[{"specversion":"1.0","id":"b1","source":"/p","type":"price.set"}]}"#,
    br#"{"token":"17","outcome":"success","events":[{"id":"b1"},{}]}"#,
    br#"{"token":"17","outcome":"pass"}"#,
    br#"{"outcome":"failure","token":"17","error":"two\nlines","retry_after_ms":5}"#,
    br#"{"token":"17","outcome":"reject","error":"\u001b[31m"}"#,
    br#"{"heartbeat":true}"#,
];

const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\ud800",
    "null",
    "true",
    "-1",
    "18446744073709551616",
    "1e3",
    "\"token\":\"17\",",
    "\"token\":\"017\",",
    "\"token\":17,",
    "\"outcome\":\"released\",",
    "\"events\":null,",
    "\"error\":null,",
    "\"retry_after_ms\":18446744073709551615,",
    "\"heartbeat\":false,",
    "\u{fc}",
    "\u{0}",
];

/// An error text is kept so far, in bytes, and every control character takes some more.
const LONGEST_ERROR: usize = 4096 + 8;

#[test]
fn answers() {
    fuzz!(ANSWERS, TOKENS, |input| match answer(input, 17) {
        Ok(Some(Ok(Outputs::Events(events)))) => events.iter().for_each(assert_it_survives),
        Ok(Some(Err(failure))) => {
            let control = |text: &str| text.contains(|c: char| c.is_control() && c != '\n');
            assert!(!control(&failure.error), "{:?}", failure.error);
            assert!(failure.error.len() <= LONGEST_ERROR || failure.error.contains("CloudEvent"));
        }
        Ok(_) => {}
        Err(why) => assert!(!why.is_empty()),
    });
}

#[test]
fn requests() {
    #[derive(Debug)]
    struct Given<'a>(&'a str);
    fuzz!(EVENTS, JSON, |input| {
        let Ok(event) = Event::parse(input) else { return };
        let line = request(17, 2, &event);
        let text = std::str::from_utf8(&line).expect("UTF-8");
        let head = r#"{"token":"17","attempt":2,"event":"#;
        assert!(text.starts_with(head) && text.ends_with("}\n"), "{text}");
        let ends = |c: &char| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        assert_eq!(text.chars().filter(ends).count(), 1, "one line for every language: {text}");
        serde_json::from_str::<&RawValue>(text).expect("JSON");
        let given = Given(&text[head.len()..text.len() - 2]);
        let again = Event::parse(given.0.as_bytes()).expect("an event");
        assert_eq!((again.id(), again.ty()), (event.id(), event.ty()));
        assert_it_survives(&again);
        let plain = |text: &[u8]| !text.iter().any(|byte| *byte == b'\r' || *byte == 0xe2);
        if plain(&written(&event)) {
            assert_eq!(written(&again), written(&event));
        }
    });
}
