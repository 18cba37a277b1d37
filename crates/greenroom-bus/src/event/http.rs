//! CloudEvents over HTTP: events to and from headers and a body, apart from any client or server.
//!
//! In *binary* mode the attributes are `ce-*` headers and the data is the body; in *structured*
//! mode the whole event is a JSON body; in *batch* mode the body is a JSON array of events. Source:
//! the CloudEvents HTTP protocol binding 1.0.2. Headers are pairs of a name and a value here, so
//! that a client's response and a server's request are read by the same code.

use std::borrow::Cow;

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};
use serde::de::IgnoredAny;

use super::{
    draft::{Draft, FoundValue},
    error::{EventError, named},
    media_type,
    model::{Data, Event, ExtensionValue},
};
use crate::byte_order_mark::skip_byte_order_mark;

/// The media type of one event in structured mode.
pub const STRUCTURED: &str = "application/cloudevents+json";

/// The media type of an array of events.
pub const BATCH: &str = "application/cloudevents-batch+json";

/// The ASCII characters to encode. All others are encoded too.
const NOT_PLAIN: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// An event in binary mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryMessage<'a> {
    /// Lower-case names and encoded values, including `content-type` if there is one.
    pub headers: Vec<(Cow<'static, str>, Cow<'a, str>)>,
    /// The data; empty where the event has none.
    pub body: Bytes,
}

/// Which of the three modes a message is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentMode {
    Binary,
    Structured,
    Batch,
}

/// Writes an event in binary mode.
pub fn write_binary(event: &Event) -> BinaryMessage<'_> {
    let body = body(event);
    let known = [
        ("ce-id", Some(event.id())),
        ("ce-source", Some(event.source())),
        ("ce-type", Some(event.ty())),
        ("ce-subject", event.subject().map(|subject| &**subject)),
        ("ce-time", event.time()),
        ("ce-dataschema", event.dataschema()),
    ];
    let mut headers = Vec::with_capacity(known.len() + 2 + event.extensions().len());
    headers.push((Cow::Borrowed("ce-specversion"), Cow::Borrowed("1.0")));
    for (name, value) in known {
        headers.extend(value.map(|value| (Cow::Borrowed(name), encode(value))));
    }
    for (name, value) in event.extensions() {
        headers.push((Cow::Owned(format!("ce-{name}")), extension(value)));
    }
    let default = is_json(event.data()).then_some(media_type::JSON);
    if let Some(media_type) = event.datacontenttype().or(default) {
        headers.push((Cow::Borrowed("content-type"), Cow::Borrowed(media_type)));
    }
    BinaryMessage { headers, body }
}

/// Reads the events that a message carries, in any mode; none if it is no
/// CloudEvents message at all.
///
/// Header names may be in any case. A header value is percent-decoded, and quotes
/// around it are taken off.
///
/// # Errors
/// The message says that it carries events, and does not. Both a bad attribute and a body that does
/// not fit its content type count.
pub fn read(headers: &[(&str, &[u8])], body: &Bytes) -> Result<Vec<Event>, EventError> {
    match mode(headers) {
        None => Ok(Vec::new()),
        Some(ContentMode::Binary) => Ok(vec![read_binary(headers, body)?]),
        Some(ContentMode::Structured) => Ok(vec![Event::parse(body)?]),
        Some(ContentMode::Batch) => Event::parse_batch(body),
    }
}

/// Reads the event that a message of a broker carries: by its headers, or as JSON if they announce
/// none. `what` is the message in words, for the reason.
///
/// # Errors
/// It carries none, or several.
pub fn read_one(headers: &[(&str, &[u8])], body: &Bytes, what: &str) -> Result<Event, String> {
    if !announces_events(headers) {
        return Event::parse(body).map_err(|error| error.to_string());
    }
    let mut events = read(headers, body).map_err(|error| error.to_string())?;
    match (events.pop(), events.is_empty()) {
        (Some(event), true) => Ok(event),
        _ => Err(format!("{what} is one event, and this one is a batch of another number")),
    }
}

/// Whether the headers announce events, in any mode: only then is a body of interest to [`read`].
pub fn announces_events(headers: &[(&str, &[u8])]) -> bool {
    mode(headers).is_some()
}

/// The mode that the headers announce, `None` for a message that carries no event.
fn mode(headers: &[(&str, &[u8])]) -> Option<ContentMode> {
    let mut mode = None;
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("content-type") {
            match &*media_type::normal(&String::from_utf8_lossy(value)) {
                STRUCTURED => return Some(ContentMode::Structured),
                BATCH => return Some(ContentMode::Batch),
                _ => {}
            }
        } else if name.eq_ignore_ascii_case("ce-specversion") {
            mode = Some(ContentMode::Binary);
        }
    }
    mode
}

/// Reads one event in binary mode.
///
/// # Errors
/// An attribute is missing or has a form that CloudEvents does not allow, or the body does
/// not fit its content type.
pub fn read_binary(headers: &[(&str, &[u8])], body: &Bytes) -> Result<Event, EventError> {
    let mut draft = Draft::default();
    let mut content_type = None;
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        if let Some(attribute) = name.strip_prefix("ce-") {
            draft.set(attribute, FoundValue::Text(decode(attribute, value)?.into()));
        } else if name == "content-type" {
            content_type = Some(text("datacontenttype", value.to_vec())?);
        }
    }
    if !body.is_empty() {
        draft.set_bytes(content_type.as_deref(), body)?;
    }
    if let Some(content_type) = content_type {
        draft.set("datacontenttype", FoundValue::Text(content_type.into()));
    }
    draft.finish()
}

/// Whether data without a content type may be called JSON: a receiver would refuse other bytes
/// under that name.
fn is_json(data: &Data) -> bool {
    match data {
        Data::Json(_) => true,
        Data::Payload(bytes) => {
            serde_json::from_slice::<IgnoredAny>(skip_byte_order_mark(bytes)).is_ok()
        }
        Data::None | Data::Binary(_) => false,
    }
}

/// The data as a body: JSON data of another declared type is a string whose content is meant.
fn body(event: &Event) -> Bytes {
    match event.data() {
        Data::Binary(bytes) | Data::Payload(bytes) => bytes.clone(),
        _ => Bytes::copy_from_slice(&event.data_bytes().unwrap_or_default()),
    }
}

fn extension(value: &ExtensionValue) -> Cow<'_, str> {
    match value {
        ExtensionValue::Text(text) => encode(text),
        ExtensionValue::Bool(true) => Cow::Borrowed("true"),
        ExtensionValue::Bool(false) => Cow::Borrowed("false"),
        ExtensionValue::Integer(number) => Cow::Owned(number.to_string()),
    }
}

/// Percent-encodes the characters that a header value must not contain: everything outside
/// printable ASCII, space, quote and percent (HTTP binding, 3.1.3.2).
pub fn encode(text: &str) -> Cow<'_, str> {
    utf8_percent_encode(text, NOT_PLAIN).into()
}

/// The decoded text of a header value. A percent sign that begins no code is literal.
fn decode(attribute: &str, value: &[u8]) -> Result<String, EventError> {
    text(attribute, percent_decode(&unquote(value.trim_ascii())).collect())
}

/// Takes the quotes off a quoted string, and the backslashes within it.
fn unquote(value: &[u8]) -> Cow<'_, [u8]> {
    let [b'"', inner @ .., b'"'] = value else { return Cow::Borrowed(value) };
    let mut escaped = false;
    let mut unquoted = Vec::with_capacity(inner.len());
    for byte in inner {
        escaped = *byte == b'\\' && !escaped;
        if !escaped {
            unquoted.push(*byte);
        }
    }
    Cow::Owned(unquoted)
}

fn text(attribute: &str, bytes: Vec<u8>) -> Result<String, EventError> {
    String::from_utf8(bytes).map_err(|error| EventError::Attribute {
        name: named(attribute),
        expected: "UTF-8 once it is percent-decoded",
        found: format!("{:?}", error.utf8_error().to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventBuilder;

    fn headers<'a>(message: &'a BinaryMessage<'_>) -> Vec<(&'a str, &'a [u8])> {
        message.headers.iter().map(|(name, value)| (&**name, value.as_bytes())).collect()
    }

    fn required<'a>() -> Vec<(&'a str, &'a [u8])> {
        vec![("ce-specversion", b"1.0"), ("CE-Id", b"1"), ("ce-source", b"/s"), ("ce-type", b"t")]
    }

    #[test]
    fn m01_binary_mode_has_the_headers_of_the_binding() {
        let event = Event::builder("a 1", "/shop", "order.placed")
            .subject("Zoë \"100%\"")
            .time("2026-01-31T12:00:00Z")
            .extension("priority", 3)
            .extension("hot", true)
            .data_json(&[1, 2])
            .build()
            .unwrap();
        let message = write_binary(&event);
        let expected: Vec<(&str, &[u8])> = vec![
            ("ce-specversion", b"1.0"),
            ("ce-id", b"a%201"),
            ("ce-source", b"/shop"),
            ("ce-type", b"order.placed"),
            ("ce-subject", b"Zo%C3%AB%20%22100%25%22"),
            ("ce-time", b"2026-01-31T12:00:00Z"),
            ("ce-priority", b"3"),
            ("ce-hot", b"true"),
            ("content-type", b"application/json"),
        ];
        assert_eq!(headers(&message), expected);
        assert_eq!(message.body, "[1,2]");
    }

    #[test]
    fn m01_binary_mode_there_and_back_keeps_the_event() {
        let event = Event::builder("ä%20", "urn:x", "t")
            .subject("a\tb")
            .datacontenttype("application/octet-stream")
            .extension("traceparent", "00-ab cd")
            .data_binary(&b"\x00\xff"[..])
            .build()
            .unwrap();
        let message = write_binary(&event);
        assert_eq!(read(&headers(&message), &message.body).unwrap(), [event]);
    }

    #[test]
    fn m01_text_travels_as_its_content() {
        let event = Event::builder("1", "s", "t")
            .datacontenttype("text/plain")
            .data_json("two\nlines")
            .build()
            .unwrap();
        let message = write_binary(&event);
        assert_eq!(message.body, "two\nlines");
        assert_eq!(read(&headers(&message), &message.body).unwrap(), [event]);
    }

    #[test]
    fn m01_header_names_have_no_case_and_values_may_be_quoted() {
        let mut headers = required();
        headers.push(("Ce-Subject", br#""a \"b\" %41%""#));
        let event = read_binary(&headers, &Bytes::new()).unwrap();
        assert_eq!(event.subject().map(|subject| &**subject), Some("a \"b\" A%"));
    }

    #[test]
    fn m01_structured_and_batch_are_known_by_content_type() {
        let one = r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#;
        let structured: Vec<(&str, &[u8])> =
            vec![("Content-Type", b"application/cloudevents+json; charset=utf-8")];
        assert_eq!(read(&structured, &Bytes::from(one)).unwrap().len(), 1);
        let batch: Vec<(&str, &[u8])> = vec![("content-type", BATCH.as_bytes())];
        assert_eq!(read(&batch, &Bytes::from(format!("[{one},{one}]"))).unwrap().len(), 2);
        let plain: Vec<(&str, &[u8])> = vec![("content-type", b"text/plain")];
        assert_eq!(read(&plain, &Bytes::from("ok")).unwrap(), []);
    }

    #[test]
    fn m01_a_message_that_is_no_event_says_why() {
        let missing = read(&[("ce-specversion", b"1.0")], &Bytes::new()).unwrap_err();
        assert_eq!(missing, EventError::Missing { name: "id" });
        let mut headers = required();
        headers.push(("content-type", b"application/json"));
        let broken = read_binary(&headers, &Bytes::from("{")).unwrap_err();
        assert!(matches!(broken, EventError::Json { .. }), "{broken}");
        let mut headers = required();
        headers.push(("ce-subject", b"%FF"));
        let broken = read_binary(&headers, &Bytes::new()).unwrap_err();
        assert!(matches!(broken, EventError::Attribute { .. }), "{broken}");
    }

    #[test]
    fn m01_bytes_that_are_not_json_are_not_called_json() {
        let event = |builder: EventBuilder<'static>| builder.build().unwrap();
        let bytes = event(Event::builder("1", "s", "t").data_binary("two\nlines"));
        let record = event(Event::builder("1", "s", "t").data_payload("two\nlines"));
        for event in [bytes, record] {
            let message = write_binary(&event);
            assert!(message.headers.iter().all(|(name, _)| name != "content-type"));
            let read = read_binary(&headers(&message), &message.body).unwrap();
            assert_eq!(read.data_bytes(), event.data_bytes());
        }
        let record = event(Event::builder("1", "s", "t").data_payload("{}"));
        assert!(
            headers(&write_binary(&record)).contains(&("content-type", &b"application/json"[..]))
        );
    }

    #[test]
    fn m01_a_body_without_a_type_is_json_where_it_can_be() {
        let event = read_binary(&required(), &Bytes::from("{\"n\":1}")).unwrap();
        assert!(matches!(event.data(), Data::Json(_)));
        let event = read_binary(&required(), &Bytes::from("not json")).unwrap();
        assert!(matches!(event.data(), Data::Binary(_)));
    }
}
