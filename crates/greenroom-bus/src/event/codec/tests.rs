use bytes::Bytes;

use super::*;
use crate::{
    event::{Data, DataError, Event, EventError},
    handler::{Failure, FailureKind},
};

/// One byte, plus one.
struct Shifted;

impl Decode<u8> for Shifted {
    fn decode(&self, bytes: &[u8]) -> Result<u8, CodecError> {
        match *bytes {
            [byte] => Ok(byte.wrapping_sub(1)),
            _ => Err(format!("{} bytes instead of 1", bytes.len()).into()),
        }
    }
}

impl Encode<u8> for Shifted {
    fn encode(&self, value: &u8) -> Result<Vec<u8>, CodecError> {
        value.checked_add(1).map(|byte| vec![byte]).ok_or_else(|| "255 is too large".into())
    }
}

fn decoders() -> Decoders<u8> {
    Decoders::json().with("application/x-shifted", Shifted)
}

fn encoders() -> Encoders<u8> {
    Encoders::json().with("application/x-shifted", Shifted)
}

fn written(content_type: &str, value: u8) -> Event {
    Event::builder("1", "s", "t").data_as(content_type, &value, &encoders()).build().unwrap()
}

#[test]
fn g02_json_is_the_default_and_plus_json_is_json() {
    let plain = Event::builder("1", "s", "t").data_json(&7).build().unwrap();
    assert_eq!(decoders().decode(&plain).unwrap(), 7);
    for content_type in ["application/json", "Application/JSON; charset=utf-8", "x/y+json"] {
        let event = written(content_type, 7);
        assert!(matches!(event.data(), Data::Json(_)));
        assert_eq!(event.datacontenttype(), Some(content_type));
        assert_eq!(decoders().decode(&event).unwrap(), 7);
    }
}

#[test]
fn g02_a_content_type_of_its_own_goes_to_its_codec_both_ways() {
    let event = written("application/x-SHIFTED; v=1", 7);
    assert_eq!(event.data(), &Data::Binary(Bytes::from_static(&[8])));
    assert_eq!(decoders().decode(&event).unwrap(), 7);
}

#[test]
fn g02_raw_takes_the_bytes_of_any_content_type() {
    let raw = Decoders::raw();
    assert_eq!(raw.decode(&written("application/x-shifted", 7)).unwrap(), [8][..]);
    assert_eq!(raw.decode(&written("application/json", 7)).unwrap(), "7");
    let text = Event::builder("1", "s", "t").datacontenttype("text/plain").data_json("a\nb");
    assert_eq!(raw.decode(&text.build().unwrap()).unwrap(), "a\nb");
    let bytes = Bytes::from_static(b"\xff\0");
    let event = Event::builder("1", "s", "t").data_as("a/b", &bytes, &Encoders::raw());
    assert_eq!(raw.decode(&event.build().unwrap()).unwrap(), bytes);
}

#[test]
fn g02_a_content_type_that_nobody_reads_is_a_typed_error_that_names_those_that_are() {
    let event = Event::builder("1", "s", "t").datacontenttype("a/b").data_binary(&b"x"[..]);
    let error = decoders().decode(&event.build().unwrap()).unwrap_err();
    let DataError::NoCodec { content_type, known } = &error else { panic!("{error}") };
    assert_eq!(content_type, "a/b");
    assert_eq!(*known, ["application/json", "application/x-shifted"]);
    assert!(error.to_string().contains("application/x-shifted"), "{error}");
    let unwritable = encoders().encode("a/b", &1).unwrap_err();
    assert!(matches!(unwritable, DataError::NoCodec { .. }), "{unwritable}");
}

#[test]
fn m02_what_cannot_be_read_is_a_typed_error_and_a_reject() {
    let bad = Event::builder("1", "s", "t")
        .datacontenttype("application/x-shifted")
        .data_binary(&b"too long"[..])
        .build()
        .unwrap();
    let error = decoders().decode(&bad).unwrap_err();
    assert!(matches!(error, DataError::Unreadable { .. }), "{error}");
    let failure = Failure::from(error);
    assert_eq!(failure.kind, FailureKind::Reject);
    assert!(failure.error.contains("8 bytes instead of 1"), "{failure}");
    assert_eq!(bad.data_bytes().as_deref(), Some(&b"too long"[..]));
    let none = Event::builder("1", "s", "t").build().unwrap();
    assert!(matches!(decoders().decode(&none), Err(DataError::Missing)));
}

#[test]
fn g02_a_value_that_cannot_be_written_is_told_when_the_event_is_built() {
    let event = Event::builder("1", "s", "t").data_as("application/x-shifted", &255, &encoders());
    let error = event.build().unwrap_err();
    assert!(matches!(&error, EventError::Data(why) if why.contains("255 is too large")), "{error}");
}

#[test]
fn g02_an_encoder_that_writes_no_json_as_json_is_told_when_the_event_is_built() {
    let encoders = Encoders::none().with("application/json", Shifted);
    let event = Event::builder("1", "s", "t").data_as("application/json", &b'{', &encoders);
    assert!(matches!(event.build(), Err(EventError::Json { .. })));
}
