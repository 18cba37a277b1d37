//! Records and the events that they become (M05).

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::event::{Data, Event, ExtensionValue};

fn at(pointer: &str) -> Pick {
    Pick::part(RecordPart::Pointer(pointer.parse().unwrap()))
}

fn plain() -> Mapping {
    Mapping::new(Pick::literal("line"), Pick::literal("/app"))
}

fn value(text: &'static str) -> Record<'static> {
    Record::new(Bytes::from_static(text.as_bytes()), &"p-1")
}

fn why(mapping: &Mapping, record: &Record<'_>) -> String {
    mapping.event(record).unwrap_err().to_string()
}

fn written(event: &Event) -> Value {
    let mut line = Vec::new();
    event.write_json(&mut line);
    assert!(!line.contains(&b'\n'));
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn m05_every_part_of_a_record_can_be_an_attribute() {
    let headers: [(&str, &[u8]); 2] = [("kind", b"first"), ("Kind", b"login")];
    let record = Record {
        key: Some(b"c-7"),
        headers: &headers,
        topic: Some("logins"),
        path: Some("/hooks/logins"),
        time: Some(UNIX_EPOCH + Duration::from_millis(1_500)),
        ..value(r#"{"n":3,"ok":true,"id":"\u0061","half":0.5}"#)
    };
    let part = |part| Pick::part(part);
    let mapping = Mapping::new(part(RecordPart::Header("kind".into())), part(RecordPart::Path))
        .subject(part(RecordPart::Key))
        .id(at("/id"))
        .time(part(RecordPart::Time))
        .content_type(Pick::literal("application/json"))
        .extension("topic", part(RecordPart::Topic))
        .and_then(|mapping| mapping.extension("n", at("/n")))
        .and_then(|mapping| mapping.extension("ok", at("/ok")))
        .and_then(|mapping| mapping.extension("half", at("/half")))
        .unwrap();
    let event = mapping.event(&record).unwrap();
    assert_eq!((event.ty(), event.source(), event.id()), ("login", "/hooks/logins", "a"));
    assert_eq!(event.subject().map(|of| &**of), Some("c-7"));
    assert_eq!(event.time(), Some("1970-01-01T00:00:01.500Z"));
    assert_eq!(event.datacontenttype(), Some("application/json"));
    let extensions =
        ["topic", "n", "ok", "half"].map(|name| event.extension(name).unwrap().clone());
    let expected = ["logins".into(), ExtensionValue::Integer(3), true.into(), "0.5".into()];
    assert_eq!(extensions, expected);
}

#[test]
fn m05_without_an_id_the_position_is_one_and_nothing_else_is_stamped() {
    let (one, again) = (plain().event(&value("x")), plain().event(&value("x")));
    let event = one.unwrap();
    assert_eq!(event, again.unwrap());
    assert_eq!(
        (event.id(), event.time(), event.subject(), event.datacontenttype()),
        ("p-1", None, None, None)
    );
    let optional = plain().id(at("/id").optional());
    assert_eq!(optional.event(&value(r#"{"id":""}"#)).unwrap().id(), "p-1");
    assert_eq!(optional.event(&value(r#"{"id":9}"#)).unwrap().id(), "9");
}

#[test]
fn m05_bytes_and_content_type_stay_as_they_are() {
    let bytes = Bytes::from_static(b"{\n \"n\" : 1.0 }");
    let record =
        Record { content_type: Some("application/json"), ..Record::new(bytes.clone(), &1) };
    let event = plain().event(&record).unwrap();
    let Data::Payload(kept) = event.data() else { panic!("{event:?}") };
    assert_eq!(kept.as_ptr(), bytes.as_ptr(), "nothing is copied");
    assert_eq!(event.data_bytes().unwrap(), &*bytes);
    assert_eq!(written(&event)["data"], serde_json::json!({ "n": 1.0 }));
    for (content_type, bytes, member, expected) in [
        (Some("text/plain"), &b"a \"line\""[..], "data", "a \"line\""),
        (Some("text/plain"), b"\xff", "data_base64", "/w=="),
        (Some("application/json"), b"no json", "data_base64", "bm8ganNvbg=="),
        (Some("application/x"), b"1", "data_base64", "MQ=="),
        (None, b"\"json\"", "data", "json"),
        (None, b"plain", "data_base64", "cGxhaW4="),
    ] {
        let record = Record { content_type, ..Record::new(Bytes::from_static(bytes), &1) };
        let event = plain().event(&record).unwrap();
        assert_eq!(written(&event)[member], expected, "{content_type:?}");
        assert_eq!(event.data_bytes().unwrap(), bytes);
    }
}

/// Dead letters once, `optional` or not.
#[test]
fn f06_a_key_that_is_not_utf8_is_a_subject_and_the_key_of_the_event() {
    let mapping = plain().subject(Pick::part(RecordPart::Key).optional());
    for (key, subject, partition_key) in [
        (&b"\xff"[..], Some("base64:/w=="), "base64:/w=="),
        (b"c-7", Some("c-7"), "c-7"),
        // As good as none where text is asked for.
        (b"", None, "base64:"),
    ] {
        let event = mapping.event(&Record { key: Some(key), ..value("x") }).unwrap();
        assert_eq!(event.subject().map(|of| &**of), subject);
        assert_eq!(event.extension("partitionkey"), Some(&partition_key.into()));
        assert_eq!(event.partition_key().as_deref(), Some(key));
    }
    assert_eq!(mapping.event(&value("x")).unwrap().partition_key(), None);
    let other = plain().extension("partitionkey", at("/n")).unwrap();
    let event = other.event(&Record { key: Some(b"c-7"), ..value(r#"{"n":3}"#) }).unwrap();
    assert_eq!(event.extension("partitionkey"), Some(&3.into()), "the rule says otherwise");
}

#[test]
fn m05_a_record_without_a_value_is_an_event_without_data() {
    let tombstone = Record { key: Some(b"k"), ..Record::new(None, &"p-2") };
    let mapping = plain().subject(Pick::part(RecordPart::Key));
    let event = mapping.event(&tombstone).unwrap();
    assert_eq!((event.data(), event.id()), (&Data::None, "p-2"));
    let pointed = Mapping::new(at("/kind").or("gone"), Pick::literal("/app"));
    assert_eq!(pointed.event(&tombstone).unwrap().ty(), "gone");
}

#[test]
fn m05_what_cannot_be_mapped_names_the_attribute_and_what_was_looked_for() {
    let kind = Mapping::new(at("/kind"), Pick::literal("/app"));
    let nothing =
        "attribute `type`: nothing stands at the JSON pointer `/kind`, and there is no default";
    for text in ["{}", r#"{"kind":null}"#, r#"{"kind":""}"#, "[]", "7"] {
        assert_eq!(why(&kind, &value(text)), nothing, "{text}");
    }
    let compound = why(&kind, &value(r#"{"kind":{}}"#));
    assert!(compound.contains("`/kind` stands an object"), "{compound}");
    let defaulted = Mapping::new(at("/kind").or("line"), Pick::literal("/app"));
    for text in ["plain", r#"{"kind":"a"} and more"#, ""] {
        let why = why(&defaulted, &value(text));
        let expected =
            "attribute `type`: the JSON pointer `/kind` needs JSON, which the record is not";
        assert!(why.starts_with(expected), "{why}");
    }
    assert_eq!(defaulted.event(&value("{}")).unwrap().ty(), "line");
    let key = plain().subject(Pick::part(RecordPart::Key));
    assert_eq!(
        why(&key, &value("x")),
        "attribute `subject`: the key is missing or empty, and there is no default"
    );
    let header = plain().extension("tenant", Pick::part(RecordPart::Header("x".into()))).unwrap();
    assert!(why(&header, &value("x")).starts_with("attribute `tenant`: the header `x` is missing"));
    let time = plain().time(at("/at"));
    assert!(
        why(&time, &value(r#"{"at":"noon"}"#))
            .contains("attribute `time` must be an RFC 3339 time")
    );
}

#[test]
fn m05_names_that_no_extension_can_have_are_refused() {
    for name in ["Tenant", "", "id", "data", "a-b"] {
        assert!(plain().extension(name, Pick::literal("x")).is_err(), "{name}");
    }
    let twice =
        plain().extension("a", Pick::literal("x")).unwrap().extension("a", Pick::literal("y"));
    assert!(twice.is_err());
}

proptest! {
    /// Whatever the bytes are: no rule without pointers looks at them, and what is written holds
    /// all of them.
    #[test]
    fn m05_no_byte_is_lost(bytes in prop::collection::vec(any::<u8>(), 0..40), media in 0_usize..4) {
        let content_type = [None, Some("application/json"), Some("text/plain"), Some("image/png")][media];
        let record = Record { content_type, ..Record::new(Bytes::from(bytes.clone()), &1) };
        let event = plain().event(&record).unwrap();
        prop_assert_eq!(&*event.data_bytes().unwrap(), &*bytes);
        let mut line = Vec::new();
        event.write_json(&mut line);
        let read = Event::parse(&line).unwrap();
        let (kept, same) = (read.data_bytes().unwrap().into_owned(), |b: &[u8]| serde_json::from_slice::<Value>(b).ok());
        prop_assert!(kept == bytes || (same(&kept).is_some() && same(&kept) == same(&bytes)), "{:?}", kept);
    }
}
