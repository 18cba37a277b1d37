//! Records that are no CloudEvents, and JSON pointers into them.

use bytes::Bytes;
use fuzz::fuzz;
use greenroom_bus::{
    event::{ExtensionValue, Pointer},
    record::{Mapping, Pick, Record, RecordPart},
};
use serde_json::Value;

use crate::{events::assert_it_survives, seeds::JSON};

const VALUES: &[&[u8]] = &[
    br#"{"kind":"login","user":{"id":7},"at":"2026-01-31T12:00:00Z","list":[{"a/b":1},{"m~n":true}]}"#,
    br#"{"kind":"","user":{"id":"x\ud83d\ude00"},"":{"":0},"list":[[],[[1.50]]]}"#,
    b"no json at all",
    b"\xff\xfe{}",
    b"[1,2,3]",
];

/// Where the targets look. Pointers are kept for the life of a process, so they are few.
const POINTERS: &[&str] = &[
    "/kind",
    "/user/id",
    "/user",
    "/list/0/a~1b",
    "/list/1/m~0n",
    "/list/1/0/0",
    "/list/00",
    "/list/-",
    "/",
    "//",
    "/0",
    "/list/18446744073709551616",
];

fn pick(pointer: &str) -> Pick {
    Pick::part(RecordPart::Pointer(pointer.parse().expect("a pointer")))
}

fn mapping() -> Mapping {
    let header = Pick::part(RecordPart::Header("X-Tenant".into())).optional();
    Mapping::new(pick("/kind").or("line"), Pick::part(RecordPart::Path).or("/app"))
        .subject(pick("/user/id").optional())
        .time(pick("/at").optional())
        .content_type(pick("/type").optional())
        .extension("tenant", header)
        .and_then(|mapping| mapping.extension("size", pick("/user/size").optional()))
        .expect("a rule")
}

#[test]
fn records_by_rule() {
    let mapping = mapping();
    fuzz!(VALUES, JSON, |input| {
        let value = Bytes::copy_from_slice(input);
        let headers: [(&str, &[u8]); 1] = [("x-tenant", &input[..input.len().min(9)])];
        let record = Record { headers: &headers, ..Record::new(value.clone(), &"place") };
        match mapping.event(&record) {
            Ok(event) => {
                assert_eq!(event.data_bytes().as_deref(), Some(&*value), "its bytes are untouched");
                assert_it_survives(&event);
            }
            Err(error) => assert!(error.to_string().contains('`'), "no attribute: {error}"),
        }
    });
}

/// What `serde_json` finds at the same pointer; `None` where the text has a key twice, of which
/// either may be meant, or is no JSON.
fn expected(text: &str, pointer: &str) -> Option<Option<ExtensionValue>> {
    let value: Value = serde_json::from_str(text).ok()?;
    let written_once = |key: &str| text.matches(&format!("\"{key}\"")).count() <= 1;
    let keys = pointer.split('/').map(|key| key.replace("~1", "/").replace("~0", "~"));
    if text.contains("\\u") || !keys.into_iter().all(|key| written_once(&key)) {
        return None;
    }
    Some(match value.pointer(pointer) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.as_str().into()),
        Some(Value::Bool(value)) => Some((*value).into()),
        Some(Value::Number(number)) => Some(number.as_i64()?.into()),
        Some(Value::Array(_) | Value::Object(_)) => return None,
        _ => None,
    })
}

#[test]
fn pointers() {
    let mappings: Vec<(&str, Mapping)> = POINTERS
        .iter()
        .map(|pointer| {
            let mapping = Mapping::new(Pick::literal("t"), Pick::literal("s"));
            (*pointer, mapping.extension("x", pick(pointer).optional()).expect("a rule"))
        })
        .collect();
    fuzz!(VALUES, JSON, |input| {
        for (pointer, mapping) in &mappings {
            let found = mapping.event(&Record::new(Bytes::copy_from_slice(input), &"place"));
            let text = std::str::from_utf8(input).unwrap_or("");
            if let Some(expected) = expected(text, pointer) {
                let event = found.expect("a record of JSON");
                assert_eq!(event.extension("x"), expected.as_ref(), "{pointer}");
            }
        }
    });
}

#[test]
fn pointers_as_written() {
    const WRITTEN: &[&[u8]] = &[b"/a/b", b"/a~0b~1c/0", b"/"];
    // One letter, so that not every input is a new one that is kept.
    fuzz!(WRITTEN, &["/", "~", "~0", "~1", "a"], |input| {
        let text: String =
            input.iter().take(8).map(|byte| char::from(b"/~01a"[*byte as usize % 5])).collect();
        if let Ok(pointer) = text.parse::<Pointer>() {
            assert_eq!(pointer.to_string(), text);
        }
    });
}
