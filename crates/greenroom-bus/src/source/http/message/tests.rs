use proptest::prelude::*;

use super::*;
use crate::record::{Pick, RecordPart};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;

fn reading(records: Option<&Mapping>) -> Reading<'_> {
    Reading { records, max_event: 1_000, max_batch: 3 }
}

fn posted(headers: &[(&str, &str)], body: &str) -> Result<Vec<Event>, BadMessage> {
    posted_by(headers, body, None)
}

fn posted_by(
    headers: &[(&str, &str)],
    body: &str,
    records: Option<&Mapping>,
) -> Result<Vec<Event>, BadMessage> {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let body = Bytes::copy_from_slice(body.as_bytes());
    read(&Message { path: "/hooks/shop", headers: &headers, body: &body }, &reading(records))
}

fn batch(events: &[&str]) -> Result<Vec<Event>, BadMessage> {
    posted(&[("content-type", BATCH)], &format!("[{}]", events.join(",")))
}

fn webhooks() -> Mapping {
    let kind = Pick::part(RecordPart::Header("X-Event".into())).or("hook");
    Mapping::new(kind, Pick::part(RecordPart::Path))
}

#[test]
fn b02_events_come_structured_binary_and_in_batches() {
    let structured =
        posted(&[("Content-Type", "application/cloudevents+json; charset=utf-8")], EVENT);
    assert_eq!(structured.unwrap().len(), 1);
    let required =
        [("ce-specversion", "1.0"), ("Ce-Id", "1"), ("ce-source", "s"), ("ce-type", "t")];
    let binary = posted(&[&required[..], &[("content-type", "text/plain")]].concat(), "text");
    assert_eq!(binary.unwrap()[0].data_bytes().as_deref(), Some(&b"text"[..]));
    assert_eq!(batch(&[EVENT, EVENT]).unwrap().len(), 2);
    assert_eq!(batch(&[]).unwrap(), []);
}

#[test]
fn b02_a_bad_event_is_named_by_its_place_and_field() {
    let bad = |index, field: &str, found: Result<Vec<Event>, BadMessage>| match found {
        Err(BadMessage::Event { index: at, field: name, .. }) => {
            assert_eq!((at, name.as_deref()), (index, Some(field)));
        }
        other => panic!("{other:?}"),
    };
    bad(Some(1), "source", batch(&[EVENT, r#"{"specversion":"1.0","id":"1","type":"t"}"#]));
    bad(None, "specversion", posted(&[("ce-id", "1"), ("ce-type", "t")], ""));
    let time = r#"{"specversion":"1.0","id":"1","source":"s","type":"t","time":"noon"}"#;
    bad(None, "time", posted(&[("content-type", STRUCTURED)], time));
    let twice = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-id", "2")];
    bad(None, "id", posted(&twice, ""));
}

#[test]
fn b02_what_is_no_message_of_events_is_unsupported() {
    for headers in [
        &[][..],
        &[("content-type", "application/json")],
        &[("content-type", "application/cloudevents+xml"), ("ce-id", "1")],
        &[("content-type", STRUCTURED), ("content-encoding", "gzip")],
    ] {
        let refused = posted(headers, EVENT).unwrap_err();
        assert!(matches!(refused, BadMessage::Unsupported(_)), "{headers:?}: {refused:?}");
    }
}

#[test]
fn b02_events_and_batches_have_their_bounds() {
    let large = EVENT.replace("\"s\"", &format!("\"{}\"", "s".repeat(1_000)));
    let refused = batch(&[EVENT, &large]).unwrap_err();
    assert!(
        matches!(refused, BadMessage::EventTooLarge { index: Some(1), limit: 1_000, .. }),
        "{refused:?}"
    );
    assert_eq!(batch(&[EVENT; 3]).unwrap().len(), 3);
    assert_eq!(batch(&[EVENT; 4]), Err(BadMessage::TooMany { limit: 3 }));
}

#[test]
fn b02_nothing_is_read_behind_what_refuses_a_batch() {
    let many = batch(&[EVENT, EVENT, EVENT, EVENT, "no JSON"]);
    assert_eq!(many, Err(BadMessage::TooMany { limit: 3 }));
    let wrong = batch(&[EVENT, "{}", "no JSON"]).unwrap_err();
    assert!(matches!(wrong, BadMessage::Event { index: Some(1), .. }), "{wrong:?}");
    let behind = posted(&[("content-type", BATCH)], &format!("[{EVENT}] []")).unwrap_err();
    assert!(matches!(behind, BadMessage::Event { index: None, .. }), "{behind:?}");
}

#[test]
fn m05_a_webhook_becomes_an_event_by_its_headers_and_path() {
    let mapping = webhooks();
    let headers = [("content-type", "application/json"), ("x-event", "order.paid")];
    let events = posted_by(&headers, r#"{"n":1.0}"#, Some(&mapping)).unwrap();
    let event = &events[0];
    assert_eq!((event.ty(), event.source()), ("order.paid", "/hooks/shop"));
    assert_eq!(event.datacontenttype(), Some("application/json"));
    assert_eq!(event.data_bytes().as_deref(), Some(&br#"{"n":1.0}"#[..]));
    // An event stays one.
    let event = posted_by(&[("content-type", STRUCTURED)], EVENT, Some(&mapping)).unwrap();
    assert_eq!(event[0].ty(), "t");
}

#[test]
fn m05_a_webhook_that_is_posted_again_has_the_same_id() {
    let mapping = webhooks();
    let id = |body: &str| posted_by(&[], body, Some(&mapping)).unwrap()[0].id().to_owned();
    assert_eq!(id("one"), id("one"));
    assert_ne!(id("one"), id("two"));
    assert_eq!(id("one").len(), 2 * DIGEST);
}

proptest! {
    /// Whatever is posted is events or refused, and what is taken is within its bounds.
    #[test]
    fn b02_no_message_makes_it_panic(
        kind in prop::sample::select(vec![STRUCTURED, BATCH, "text/plain", ""]),
        name in "(ce-[a-z]{0,12}|[a-z-]{1,12})",
        value in "\\PC{0,20}",
        body in prop::collection::vec(any::<u8>(), 0..200),
        by_rule: bool,
    ) {
        let mapping = webhooks();
        let headers = [("content-type", kind.as_bytes()), (&*name, value.as_bytes())];
        let body = Bytes::from(body);
        let message = Message { path: "/", headers: &headers, body: &body };
        if let Ok(events) = read(&message, &reading(by_rule.then_some(&mapping))) {
            prop_assert!(events.len() <= 3);
        }
    }
}
