use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const FULL: &str = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","subject":"c-7","time":"2026-01-31T12:00:00Z","datacontenttype":"application/json","dataschema":"urn:s","text":"a\"b","flag":true,"number":-3,"data":{"b":1.0,"a":[1e3, "\u00e4"]}}"#;

fn parse(json: &str) -> Result<Event, EventError> {
    Event::parse(json.as_bytes())
}

fn with(member: &str) -> Result<Event, EventError> {
    parse(&format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t",{member}}}"#))
}

fn error(member: &str) -> String {
    with(member).unwrap_err().to_string()
}

fn written(event: &Event) -> String {
    let mut out = Vec::new();
    event.write_json(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn m01_an_event_is_written_as_it_was_read() {
    assert_eq!(written(&parse(FULL).unwrap()), FULL);
}

#[test]
fn m01_every_attribute_is_read() {
    let event = parse(FULL).unwrap();
    assert_eq!((event.id(), event.source(), event.ty()), ("1", "/shop", "order.placed"));
    assert_eq!(event.subject().map(|s| &**s), Some("c-7"));
    assert_eq!(event.time(), Some("2026-01-31T12:00:00Z"));
    assert_eq!(event.datacontenttype(), Some("application/json"));
    assert_eq!(event.dataschema(), Some("urn:s"));
    assert_eq!(event.extension("text"), Some(&ExtensionValue::from("a\"b")));
    assert_eq!(event.extension("flag"), Some(&ExtensionValue::Bool(true)));
    assert_eq!(event.extension("number"), Some(&ExtensionValue::Integer(-3)));
    assert_eq!(event.extensions().len(), 3);
}

#[test]
fn m01_each_required_attribute_is_required() {
    for name in ["specversion", "id", "source", "type"] {
        let json = FULL.replacen(&format!("\"{name}\":"), "\"other\":", 1);
        assert_eq!(parse(&json).unwrap_err(), EventError::Missing { name });
        let null = FULL.replacen(&format!("\"{name}\":"), &format!("\"{name}\":null,\"x\":"), 1);
        assert_eq!(parse(&null).unwrap_err(), EventError::Missing { name });
    }
}

#[test]
fn m01_an_error_is_short_however_long_the_text_in_place_of_an_event_is() {
    let text = parse(&format!("\"{}\"", "x".repeat(100_000))).unwrap_err().to_string();
    assert!(text.len() < 1_200 && text.contains("bytes more"), "{text}");
}

#[test]
fn m01_wrong_types_are_named_with_what_was_found() {
    assert_eq!(
        error(r#""subject":17"#),
        "attribute `subject` must be a non-empty string, found 17"
    );
    assert!(error(r#""subject":"""#).ends_with("found \"\""));
    assert!(error(r#""time":"yesterday""#).contains("found \"yesterday\""));
    assert!(
        error(r#""ext":[[1],{}]"#)
            .contains("`ext` must be a string, a boolean or a whole number, found an array")
    );
    assert!(error(r#""ext":{"a":{}}"#).ends_with("an object"));
    assert!(error(r#""ext":1.5"#).ends_with("found 1.5"));
    assert!(error(r#""data_base64":5"#).contains("base64, found 5"));
    assert!(error(r#""data_base64":"*""#).contains("found \"*\""));
    let version = parse(r#"{"specversion":"0.3","id":"1","source":"s","type":"t"}"#).unwrap_err();
    assert_eq!(version.to_string(), r#"attribute `specversion` must be "1.0", found "0.3""#);
}

#[test]
fn m01_bad_names_and_duplicates_are_errors() {
    assert!(matches!(with(r#""orderId":1"#), Err(EventError::Name { .. })));
    assert!(matches!(with(r#""":1"#), Err(EventError::Name { .. })));
    for twice in [
        r#""id":"2""#,
        r#""a":1,"b":2,"a":3"#,
        r#""data":1,"data":2"#,
        r#""subject":null,"subject":"s""#,
    ] {
        assert!(matches!(with(twice), Err(EventError::Duplicate { .. })), "{twice}");
    }
    assert_eq!(with(r#""data":1,"data_base64":"AA==""#), Err(EventError::TwoData));
}

#[test]
fn m01_what_is_no_json_object_is_an_error_with_its_column() {
    for (json, part) in [
        ("", "EOF while parsing a value at column 0"),
        ("17", "expected a CloudEvent (a JSON object) at column"),
        ("{\"id\":}", "expected value at column 7"),
        ("{} x", "trailing characters at column 4"),
        ("{\n]", "at line 2 column 1"),
    ] {
        let error = parse(json).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(
        Event::parse(b"{\"id\":\"\xff\"}").unwrap_err(),
        EventError::InvalidUtf8 { column: 8 }
    );
}

#[test]
fn m01_null_members_are_not_there() {
    let event = with(r#""subject":null,"ext":null,"data_base64":null"#).unwrap();
    assert!(event.subject().is_none() && event.extensions().len() == 0);
    assert_eq!(event.data(), &Data::None);
}

#[test]
fn m01_an_event_is_written_on_one_line_however_it_came() {
    let event = parse("{\n\"specversion\":\"1.0\",\"id\":\"a\\nb\",\"source\":\"s\",\"type\":\"t\",\n\"data\":{\n\"a\":\r\n1}\n}").unwrap();
    let line = written(&event);
    assert!(!line.contains('\n'), "{line}");
    assert_eq!(parse(&line).unwrap(), event);
}

#[test]
fn m01_batches_are_all_or_nothing() {
    let batch = format!("[{FULL},{FULL}]");
    assert_eq!(Event::parse_batch(batch.as_bytes()).unwrap().len(), 2);
    assert!(Event::parse_batch(b"[]").unwrap().is_empty());
    let bad = format!("[{FULL},{{\"specversion\":\"1.0\"}}]");
    let error = Event::parse_batch(bad.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "event 2 of the batch: required attribute `id` is missing");
}

#[test]
fn c12_added_extensions_take_the_place_of_the_events_own() {
    let event = with(r#""greenroompool":"old","kept":1,"data":null"#).unwrap();
    let mut out = Vec::new();
    let extra =
        [("greenroompool", ExtraValue::Text("erp")), ("greenroomattempt", ExtraValue::Integer(3))];
    event.write_json_with(&extra, &mut out);
    let read = Event::parse(&out).unwrap();
    assert_eq!(read.extension("greenroompool"), Some(&ExtensionValue::from("erp")));
    assert_eq!(read.extension("greenroomattempt"), Some(&ExtensionValue::Integer(3)));
    assert_eq!(read.extension("kept"), Some(&ExtensionValue::Integer(1)));
    assert!(matches!(read.data(), Data::Json(raw) if raw.get() == "null"));
}

#[test]
fn m02_data_is_decoded_on_demand_with_typed_errors() {
    let event = with(r#""data":{"n":5}"#).unwrap();
    let map: std::collections::HashMap<String, u8> = event.data_as().unwrap();
    assert_eq!(map["n"], 5);
    assert!(matches!(event.data_as::<u8>(), Err(DataError::Shape(_))));
    assert!(matches!(with(r#""a":1"#).unwrap().data_as::<u8>(), Err(DataError::Missing)));
    let binary = with(r#""datacontenttype":"image/png","data_base64":"Nw==""#).unwrap();
    assert!(matches!(binary.data_as::<u8>(), Err(DataError::NotJson { .. })));
    let json =
        with(r#""datacontenttype":"text/json; charset=utf-8","data_base64":"Nw==""#).unwrap();
    assert_eq!(json.data_as::<u8>().unwrap(), 7);
}

#[test]
fn builders_refuse_what_parsing_refuses() {
    assert!(Event::builder("", "s", "t").build().is_err());
    assert!(Event::builder("1", "s", "t").time("noon").build().is_err());
    assert!(Event::builder("1", "s", "t").extension("id", true).build().is_err());
    assert!(Event::builder("1", "s", "t").data_json(&1).data_binary("x").build().is_err());
    let no_json = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(matches!(
        Event::builder("1", "s", "t").data_json(&no_json).build(),
        Err(EventError::Data(_))
    ));
}

fn key(order_by: &str, event: &Event) -> Result<Option<Arc<str>>, KeyError> {
    order_by.parse::<OrderBy>().unwrap().key(event)
}

#[test]
fn order_keys_come_from_attributes_extensions_and_data() {
    let event =
        with(r#""subject":"s","ext":5,"data":{"a/b":{"~":[1,"x\ty",true,null,1.50]},"o":{}}"#)
            .unwrap();
    let text = |order_by| key(order_by, &event).unwrap().map(|key| key.to_string());
    assert_eq!(text("subject").as_deref(), Some("s"));
    assert!(Arc::ptr_eq(&key("subject", &event).unwrap().unwrap(), event.subject().unwrap()));
    assert_eq!(text("type").as_deref(), Some("t"));
    assert_eq!(text("ext").as_deref(), Some("5"));
    assert_eq!(text("/a~1b/~0/0").as_deref(), Some("1"));
    assert_eq!(text("/a~1b/~0/1").as_deref(), Some("x\ty"));
    assert_eq!(text("/a~1b/~0/2").as_deref(), Some("true"));
    assert_eq!(text("/a~1b/~0/4").as_deref(), Some("1.50"));
    for missing in
        ["time", "other", "/x", "/a~1b/~0/3", "/a~1b/~0/9", "/a~1b/~0/01", "/a~1b/~0/0/0", "/o/x"]
    {
        assert_eq!(text(missing), None, "{missing}");
    }
}

#[test]
fn order_keys_that_are_no_scalars_are_named() {
    let event = with(r#""data":{"o":{},"a":[],"half":"\ud83d","pair":"\ud83d\ude00"}"#).unwrap();
    assert_eq!(key("/pair", &event).unwrap().as_deref(), Some("😀"));
    assert_eq!(
        key("/half", &event).unwrap_err().to_string(),
        "the order key `/half` is a text with a lone surrogate, not a string, number or boolean"
    );
    assert_eq!(
        key("/o", &event).unwrap_err().to_string(),
        "the order key `/o` is an object, not a string, number or boolean"
    );
    assert!(matches!(key("/a", &event), Err(KeyError::NotScalar { found: "an array", .. })));
    let binary = with(r#""datacontenttype":"image/png","data_base64":"Nw==""#).unwrap();
    assert!(matches!(key("/a", &binary), Err(KeyError::NotJson { .. })));
}

#[test]
fn order_by_that_names_nothing_is_refused() {
    for bad in ["", "orderId", "a.b", "data", "specversion", "/a~2", "/~"] {
        assert!(bad.parse::<OrderBy>().is_err(), "{bad}");
    }
    assert_eq!("/a/b".parse::<OrderBy>().unwrap().to_string(), "/a/b");
    let none: OrderBy = "none".parse().unwrap();
    assert!(none == OrderBy::none() && !none.is_order() && none.to_string() == "none");
    assert!("subject".parse::<OrderBy>().unwrap().is_order());
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".*".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((".*", inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

fn extension() -> impl Strategy<Value = ExtensionValue> {
    prop_oneof![
        ".*".prop_map(ExtensionValue::from),
        any::<bool>().prop_map(ExtensionValue::from),
        any::<i64>().prop_map(ExtensionValue::from),
    ]
}

prop_compose! {
    pub(super) fn event()(
        id in ".+", source in ".+", ty in ".+", subject in prop::option::of(".+"), schema in prop::option::of("urn:[a-z]{1,9}"),
        extensions in prop::collection::btree_map("x[a-z0-9]{0,8}", extension(), 0..4),
        json in prop::option::of(json()), bytes in prop::collection::vec(any::<u8>(), 0..50), binary in any::<bool>(),
    ) -> Event {
        let mut builder = Event::builder(id, source, ty);
        if let Some(subject) = subject { builder = builder.subject(subject) }
        if let Some(schema) = schema { builder = builder.dataschema(schema) }
        for (name, value) in extensions { builder = builder.extension(&name, value) }
        match json {
            _ if binary => builder = builder.data_binary(bytes),
            Some(json) => builder = builder.data_json(&json),
            None => {}
        }
        builder.build().unwrap()
    }
}

proptest! {
    #[test]
    fn m01_events_survive_writing_and_reading(event in event()) {
        let line = written(&event);
        prop_assert!(!line.contains('\n'));
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
        prop_assert_eq!(parse(&line).unwrap(), event);
    }

    #[test]
    fn m01_damaged_events_never_panic(event in event(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut line = written(&event).into_bytes();
        let at = at.index(line.len());
        line[at] = byte;
        let _ = Event::parse(&line);
        let _ = Event::parse(&line[..at]);
    }
}

#[test]
fn m01_a_batch_is_written_as_it_is_read() {
    let events = [parse(FULL).unwrap(), with(r#""data_base64":"AAH/""#).unwrap()];
    for count in 0..=events.len() {
        let mut out = Vec::new();
        Event::write_batch(&events[..count], &mut out);
        assert_eq!(Event::parse_batch(&out).unwrap(), events[..count]);
        assert!(!out.contains(&b'\n'));
    }
}

#[derive(Debug, PartialEq)]
struct Received(u32);

#[test]
fn m04_local_values_travel_with_clones_and_are_not_written() {
    let plain = parse(FULL).unwrap();
    let event = plain.clone().with_local(Received(1)).with_local("text");
    let clone = event.clone();
    assert_eq!((clone.local(), clone.local()), (Some(&Received(1)), Some(&"text")));
    assert_eq!(clone.local::<u64>(), None);
    assert_eq!(plain.local::<Received>(), None, "a clone made before");
    assert_eq!(event, plain);
    assert_eq!(written(&event), written(&plain));
    assert_eq!(parse(&written(&event)).unwrap().local::<Received>(), None);
}

#[test]
fn m04_of_each_type_there_is_one_local_value() {
    let event = parse(FULL).unwrap().with_local(Received(1));
    let newer = event.clone().with_local(Received(2));
    assert_eq!((event.local(), newer.local()), (Some(&Received(1)), Some(&Received(2))));
}

fn extensions(event: &Event) -> Vec<(&str, &ExtensionValue)> {
    let mut extensions: Vec<_> = event.extensions().collect();
    extensions.sort_by_key(|(name, _)| *name);
    extensions
}

#[test]
fn m04_what_is_made_for_an_event_has_its_correlation_cause_and_trace() {
    let cause = Event::builder("7", "/shop", "order")
        .extension(CORRELATION_ID, "visit")
        .extension(TRACEPARENT, "00-ab-cd-01")
        .extension(TRACESTATE, "k=v")
        .extension("other", 1)
        .build()
        .unwrap();
    let made = Event::builder("8", "/bills", "bill").data_json("kept").build().unwrap();
    let caused = made.clone().caused_by(&cause);
    let (visit, seven) = (ExtensionValue::from("visit"), ExtensionValue::from("7"));
    let (parent, state) = (ExtensionValue::from("00-ab-cd-01"), ExtensionValue::from("k=v"));
    let expected = [
        (CAUSATION_ID, &seven),
        (CORRELATION_ID, &visit),
        (TRACEPARENT, &parent),
        (TRACESTATE, &state),
    ];
    assert_eq!(extensions(&caused), expected);
    assert_eq!((caused.id(), caused.data()), ("8", made.data()));
    assert_eq!(made.extensions().len(), 0, "a clone made before");
    assert_eq!(parse(&written(&caused)).unwrap(), caused);
}

#[test]
fn m04_what_an_event_says_itself_stays() {
    let cause = Event::builder("7", "/shop", "order")
        .extension(CORRELATION_ID, "visit")
        .extension(TRACEPARENT, "00-ab-cd-01")
        .extension(TRACESTATE, "k=v")
        .build()
        .unwrap();
    let own = Event::builder("8", "/bills", "bill")
        .extension(CORRELATION_ID, "mine")
        .extension(CAUSATION_ID, "6")
        .extension(TRACEPARENT, "00-mine")
        .build()
        .unwrap();
    assert_eq!(own.clone().caused_by(&cause), own, "its trace is not given another's state");
    assert_eq!(cause.clone().caused_by(&cause), cause, "it is passed on");
    let plain = Event::builder("9", "/x", "y").build().unwrap();
    let uncorrelated = Event::builder("8", "/bills", "bill").build().unwrap().caused_by(&plain);
    assert_eq!(extensions(&uncorrelated), [(CAUSATION_ID, &ExtensionValue::from("9"))]);
}

#[test]
fn m04_an_event_without_a_flow_begins_one() {
    let event = Event::builder("8", "/bills", "bill").build().unwrap().correlated();
    assert_eq!(event.extension(CORRELATION_ID), Some(&ExtensionValue::from("8")));
    let made = Event::builder("9", "/x", "y").build().unwrap().caused_by(&event).correlated();
    assert_eq!(made.extension(CORRELATION_ID), Some(&ExtensionValue::from("8")));
}

#[test]
fn m05_white_space_around_a_record_of_json_is_no_part_of_its_data() {
    let event = Event::builder("1", "s", "t").data_payload(" {\n\"n\": 1}\r\n").build().unwrap();
    let mut line = Vec::new();
    event.write_json(&mut line);
    assert!(line.ends_with(b",\"data\":{ \"n\": 1}}"), "{}", String::from_utf8_lossy(&line));
    let mut again = Vec::new();
    Event::parse(&line).unwrap().write_json(&mut again);
    assert_eq!(again, line, "what is written is read and written the same");
}

#[test]
fn an_error_does_not_repeat_a_name_of_any_length() {
    let name = "x".repeat(100_000);
    let member = |value: &str| {
        let head = r#"{"specversion":"1.0","id":"1","source":"s","type":"t""#;
        format!("{head},\"{name}\":{value},\"{name}\":1}}")
    };
    for json in [member("1"), member("1.5"), member("[]")] {
        let error = Event::parse(json.as_bytes()).unwrap_err().to_string();
        assert!(error.len() < 200 && error.contains("xxx..."), "{} bytes", error.len());
    }
    let header = format!("ce-{name}");
    let headers: [(&str, &[u8]); 1] = [(&header, b"%FF")];
    let error = super::http::read_binary(&headers, &Bytes::new()).unwrap_err().to_string();
    assert!(error.len() < 200, "{} bytes", error.len());
}

#[test]
fn m01_a_byte_order_mark_is_skipped_wherever_json_is_read() {
    let marked = |json: &str| Bytes::from(format!("\u{feff}{json}"));
    let batch = format!("[{FULL}]");
    let structured: [(&str, &[u8]); 1] = [("content-type", super::http::STRUCTURED.as_bytes())];
    for read in [
        Event::parse(&marked(FULL)).map(|event| vec![event]),
        Event::parse_batch(&marked(&batch)),
        super::http::read(&structured, &marked(FULL)),
    ] {
        assert_eq!(written(&read.unwrap()[0]), FULL);
    }

    let attributes: [(&str, &[u8]); 4] =
        [("ce-specversion", b"1.0"), ("ce-id", b"1"), ("ce-source", b"s"), ("ce-type", b"t")];
    let json = [("content-type", &b"application/json"[..])];
    for headers in [&attributes[..], &[&attributes[..], &json].concat()] {
        let event = super::http::read_binary(headers, &marked("{\"n\":1}")).unwrap();
        assert!(written(&event).contains("\"data\":{\"n\":1}"), "{}", written(&event));
    }

    let record = Event::builder("1", "s", "t").data_payload(marked("{\"n\":1}")).build().unwrap();
    let number = serde_json::json!({ "n": 1 });
    assert_eq!(record.data_as::<serde_json::Value>().unwrap(), number);
    let decoded: serde_json::Value = super::codec::Decoders::json().decode(&record).unwrap();
    assert_eq!((decoded, record.json()), (number, Ok(Some("{\"n\":1}"))));
    assert!(written(&record).ends_with(",\"data\":{\"n\":1}}"), "{}", written(&record));
    let sent = super::http::write_binary(&record);
    assert!(sent.headers.iter().any(|(_, value)| value == "application/json"), "it is JSON");

    assert!(Event::parse(&marked(&format!("\u{feff}{FULL}"))).is_err(), "one is no text");
}
