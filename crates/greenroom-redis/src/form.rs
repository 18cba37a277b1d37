//! From an entry to an event: a CloudEvent, or a record that is mapped to one (M05).

use std::{fmt, str};

use bytes::Bytes;
use greenroom_bus::{
    event::{Event, TraceHeaders, http},
    record::{Mapping, Record},
    source::Malformed,
};

use crate::{
    entry::{Field, Id},
    options::{RedisInput, RedisKey},
};

/// The default field for the data of an event.
const DATA: &str = "data";

/// How entries are read.
pub(crate) struct Form {
    pub(crate) records: Option<Mapping>,
    value: Option<String>,
    key: Option<RedisKey>,
}

/// Stream and id: the same for each delivery of an entry.
struct Position<'a>(&'a str, Id);

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl Form {
    pub(crate) fn new(input: &RedisInput, records: Option<Mapping>) -> Self {
        Self { records, value: input.value.clone(), key: input.key.clone() }
    }

    pub(crate) fn read(
        &self,
        stream: &str,
        id: Id,
        mut fields: Vec<Field>,
    ) -> Result<Event, Malformed> {
        let named = self.value.as_deref().or(self.records.is_none().then_some(DATA));
        let at = named.and_then(|named| {
            fields.iter().position(|(name, _)| name.as_slice() == named.as_bytes())
        });
        let value = match at {
            Some(at) => Some(Bytes::from(fields.remove(at).1)),
            None if named.is_none() => Some(Bytes::from(json(&fields))),
            None => None,
        };
        let event = self.event(stream, id, &fields, value.clone());
        event.map_err(|why| {
            Malformed::new(value.map_or_else(|| json(&fields), |value| value.to_vec()), why)
        })
    }

    fn event(
        &self,
        stream: &str,
        id: Id,
        fields: &[Field],
        value: Option<Bytes>,
    ) -> Result<Event, String> {
        let text = |bytes| str::from_utf8(bytes).map_err(|_| "a field has a name that is no UTF-8");
        let headers = fields.iter().map(|(name, value)| Ok((text(name)?, value.as_slice())));
        let headers: Vec<_> = headers.collect::<Result<_, &str>>()?;
        let find =
            |wanted: &str| headers.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let key = match &self.key {
            None => None,
            Some(RedisKey::Stream) => Some(stream.as_bytes()),
            Some(RedisKey::Field(name)) => find(name).map(|(_, value)| *value),
        };
        let key = key.filter(|key| !key.is_empty());
        let event = match &self.records {
            None => {
                let value = value.unwrap_or_default();
                let event = http::read_one(&headers, &value, "an entry")?;
                key.into_iter().fold(event, Event::with_partition_key)
            }
            Some(mapping) => {
                let content_type = find("content-type").and_then(|of| str::from_utf8(of.1).ok());
                let position = Position(stream, id);
                let record = Record {
                    key,
                    headers: &headers,
                    topic: Some(stream),
                    content_type,
                    time: id.time(),
                    ..Record::new(value, &position)
                };
                mapping.event(&record).map_err(|error| error.to_string())?
            }
        };
        // Instrumented clients write these fields, in addition to those of the event.
        let trace = TraceHeaders::find(&headers);
        Ok(trace.into_iter().fold(event, Event::with_trace))
    }
}

/// Fields as a JSON object of strings. Invalid UTF-8 is replaced.
fn json(fields: &[Field]) -> Vec<u8> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let object = fields.iter().map(|(name, value)| (text(name), text(value).into()));
    serde_json::Value::Object(object.collect()).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use greenroom_bus::record::{Pick, RecordPart};

    use super::*;

    const ID: Id = Id(1_700_000_000_001, 5);

    fn read(
        input: RedisInput,
        records: Option<Mapping>,
        fields: &[(&str, &[u8])],
    ) -> Result<Event, Malformed> {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec()));
        Form::new(&input, records).read("shop", ID, fields.collect())
    }

    fn input() -> RedisInput {
        RedisInput::new("redis://localhost", ["shop"], "g", "c")
    }

    fn keyed(key: RedisKey) -> RedisInput {
        RedisInput { key: Some(key), ..input() }
    }

    #[test]
    fn n03_events_have_the_key_in_every_mode() {
        let event = br#"{"specversion":"1.0","id":"1","source":"/shop","type":"placed"}"#;
        let whole: &[(&str, &[u8])] = &[("data", event), ("order", b"7")];
        let binary: &[(&str, &[u8])] = &[
            ("ce-specversion", b"1.0"),
            ("ce-id", b"1"),
            ("ce-source", b"/shop"),
            ("ce-type", b"placed"),
            ("order", b"7"),
            ("data", b"{}"),
        ];
        for fields in [whole, binary] {
            let event = read(keyed(RedisKey::Field("order".into())), None, fields).unwrap();
            assert_eq!((event.id(), event.ty()), ("1", "placed"));
            assert_eq!(event.extension("partitionkey"), Some(&"7".into()));
            let event = read(keyed(RedisKey::Stream), None, fields).unwrap();
            assert_eq!(event.extension("partitionkey"), Some(&"shop".into()));
        }
    }

    #[test]
    fn m05_an_entry_becomes_an_event_of_a_field_or_of_all_of_them() {
        let mapping = Mapping::new(Pick::literal("order"), Pick::part(RecordPart::Topic))
            .subject(Pick::part(RecordPart::Header("order".into())))
            .time(Pick::part(RecordPart::Time));
        let fields: &[(&str, &[u8])] = &[("order", b"7"), ("body", b"\xff hello")];
        let value = Some("body".to_owned());
        let event = read(RedisInput { value, ..input() }, Some(mapping.clone()), fields).unwrap();
        assert_eq!((event.id(), event.source()), ("shop-1700000000001-5", "shop"));
        assert_eq!(event.subject().unwrap().as_ref(), "7");
        assert_eq!(event.data_bytes().as_deref(), Some(&b"\xff hello"[..]));
        let event = read(input(), Some(mapping.clone()), &fields[..1]).unwrap();
        assert_eq!(event.data_bytes().as_deref(), Some(&br#"{"order":"7"}"#[..]));
        let value = Some("body".to_owned());
        let event = read(RedisInput { value, ..input() }, Some(mapping), &fields[..1]).unwrap();
        assert!(event.data_bytes().is_none(), "without its field there is no data");
    }

    #[test]
    fn z12_what_is_no_event_keeps_its_bytes() {
        for (fields, raw) in [
            (&[("data", &b"{ no"[..]), ("a", &b"b"[..])][..], "{ no"),
            (&[("a", &b"b"[..])][..], r#"{"a":"b"}"#),
            (&[("ce-specversion", &b"1.0"[..]), ("data", &b"text"[..])][..], "text"),
        ] {
            let malformed = read(input(), None, fields).unwrap_err();
            assert_eq!(String::from_utf8_lossy(&malformed.raw), raw);
            assert!(!malformed.reason.is_empty());
        }
    }
}
