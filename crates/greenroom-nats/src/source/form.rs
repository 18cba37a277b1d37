//! The form of a message: CloudEvents, or a record that a rule maps to one (M05).

use std::{fmt, sync::Arc};

use async_nats::Message;
use bytes::Bytes;
use greenroom_bus::{
    event::{Event, TraceHeaders, http},
    record::{Mapping, Record},
    source::{Malformed, Taken},
};

use super::delivery::Delivery;
use crate::{key::NatsKey, options::NatsInput};

/// The header in which a redrive names a message's first place: `STREAM-NUMBER`. Ids derived from
/// the position use it.
pub(crate) const ORIGIN: &str = "greenroom-origin";

/// How messages of one consumer are read.
#[derive(Clone)]
pub(super) struct Form {
    /// The identity of the stream: the beginning of derived ids.
    pub(super) stream: String,
    pub(super) records: Option<Arc<Mapping>>,
    pub(super) key: Option<NatsKey>,
}

/// The position of a message: the same for a repetition.
pub(crate) struct Position<'a>(pub(crate) &'a str, pub(crate) u64);

impl fmt::Display for Position<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

impl Form {
    pub(super) fn new(input: &NatsInput, records: Option<Mapping>) -> Self {
        let (stream, key) = (input.stream.clone(), input.key.clone());
        Self { stream, records: records.map(Arc::new), key }
    }

    pub(super) fn read(&self, message: &Message, delivery: &Delivery) -> Taken {
        // A copy: the network buffer contains many messages, and would stay as long as any of them.
        let value = Bytes::copy_from_slice(&message.payload);
        let headers = headers(message);
        let event = self.event(message, &headers, &value, delivery);
        // In the format of instrumented clients, unless the event has a trace itself.
        let trace = TraceHeaders::find(&headers);
        let event = event.map(|event| trace.into_iter().fold(event, Event::with_trace));
        let event = event.map_err(|why| Malformed::new(value.to_vec(), why));
        Taken { position: delivery.position, event }
    }

    fn event(
        &self,
        message: &Message,
        headers: &[(&str, &[u8])],
        value: &Bytes,
        delivery: &Delivery,
    ) -> Result<Event, String> {
        let subject = message.subject.as_str();
        let key = self.key.as_ref().and_then(|key| key.find(subject, headers));
        let key = key.as_deref().map(str::as_bytes).filter(|key| !key.is_empty());
        match &self.records {
            None => {
                // The binding of CloudEvents to NATS is that to HTTP.
                let event = http::read_one(headers, value, "a message")?;
                Ok(key.into_iter().fold(event, Event::with_partition_key))
            }
            Some(mapping) => {
                let own = Position(&self.stream, delivery.position);
                // A redrive names its first place, so that its id stays the same.
                let origin = origin(headers);
                let position = origin.as_ref().map_or(&own as &dyn fmt::Display, |text| text);
                let content_type = headers.iter().rev().find_map(|(name, value)| {
                    let is_it = name.eq_ignore_ascii_case("content-type");
                    std::str::from_utf8(value).ok().filter(|_| is_it)
                });
                let record = Record {
                    key,
                    headers,
                    topic: Some(subject),
                    content_type,
                    time: Some(delivery.stored),
                    ..Record::new(Some(value.clone()).filter(|value| !value.is_empty()), position)
                };
                mapping.event(&record).map_err(|error| error.to_string())
            }
        }
    }
}

/// The place at which a redrive has found the message.
fn origin<'h>(headers: &[(&str, &'h [u8])]) -> Option<&'h str> {
    let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(ORIGIN))?;
    std::str::from_utf8(value).ok().filter(|text| !text.is_empty())
}

fn headers(message: &Message) -> Vec<(&str, &[u8])> {
    let Some(headers) = &message.headers else { return Vec::new() };
    let each = |(name, values)| {
        let name: &async_nats::HeaderName = name;
        let values: &Vec<async_nats::HeaderValue> = values;
        let name: &str = name.as_ref();
        values.iter().map(move |value| (name, value.as_str().as_bytes())).collect::<Vec<_>>()
    };
    headers.iter().flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use async_nats::HeaderMap;
    use greenroom_bus::record::{Pick, RecordPart};

    use super::*;

    fn message(headers: &[(&'static str, &'static str)], payload: &'static str) -> Message {
        let map = headers.iter().fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(*name, *value);
            map
        });
        Message {
            subject: "orders.7.placed".into(),
            reply: None,
            payload: payload.into(),
            headers: Some(map).filter(|map| !map.is_empty()),
            status: None,
            description: None,
            length: 0,
        }
    }

    fn read(form: &Form, message: &Message) -> Result<Event, Malformed> {
        let stored = SystemTime::UNIX_EPOCH;
        form.read(message, &Delivery { position: 5, number: 1, stored, pending: 0 }).event
    }

    fn form(records: Option<Mapping>) -> Form {
        Form { stream: "shop".into(), records: records.map(Arc::new), key: Some(NatsKey::Token(2)) }
    }

    #[test]
    fn n03_events_have_the_key_in_every_mode() {
        let event = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"placed"}"#;
        let binary = [
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "/shop"),
            ("ce-type", "placed"),
            ("content-type", "application/json"),
        ];
        for message in [
            message(&[], event),
            message(&[("Content-Type", "application/cloudevents+json")], event),
            message(&binary, r#"{"n":1}"#),
        ] {
            let event = read(&form(None), &message).unwrap();
            assert_eq!((event.id(), event.ty()), ("1", "placed"));
            assert_eq!(event.extension("partitionkey"), Some(&"7".into()));
        }
    }

    #[test]
    fn m05_a_record_becomes_an_event_with_its_bytes() {
        let mapping = Mapping::new(Pick::literal("order"), Pick::literal("/shop"))
            .subject(Pick::part(RecordPart::Key))
            .extension("on", Pick::part(RecordPart::Topic))
            .unwrap();
        let form = form(Some(mapping));
        let event = read(&form, &message(&[("content-type", "text/plain")], "hello")).unwrap();
        assert_eq!((event.id(), event.subject().unwrap().as_ref()), ("shop-5", "7"));
        assert_eq!(event.extension("on"), Some(&"orders.7.placed".into()));
        assert_eq!(event.datacontenttype(), Some("text/plain"));
        assert_eq!(event.data_bytes().as_deref(), Some(&b"hello"[..]));
        let tombstone = read(&form, &message(&[], "")).unwrap();
        assert!(tombstone.data_bytes().is_none(), "without a value there is no data");
    }

    #[test]
    fn m05_the_id_of_a_record_survives_a_redrive() {
        let form = form(Some(Mapping::new(Pick::literal("order"), Pick::literal("/shop"))));
        let event = read(&form, &message(&[("Greenroom-Origin", "shop-2")], "hello")).unwrap();
        assert_eq!(event.id(), "shop-2", "and not shop-5, where it is now");
    }

    #[test]
    fn o06_a_plain_traceparent_is_read() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let event = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"placed"}"#;
        let event = read(&form(None), &message(&[("traceparent", parent)], event)).unwrap();
        assert_eq!(event.extension("traceparent"), Some(&parent.into()));
    }

    #[test]
    fn z12_what_is_no_event_keeps_its_bytes() {
        let half = message(&[("ce-specversion", "1.0"), ("ce-id", "1")], "data");
        let batch = message(&[("content-type", "application/cloudevents-batch+json")], "[]");
        for (message, raw) in [
            (&half, "data"),
            (&batch, "[]"),
            (&message(&[], "{ no"), "{ no"),
            (&message(&[], ""), ""),
        ] {
            let malformed = read(&form(None), message).unwrap_err();
            assert_eq!(malformed.raw, raw.as_bytes());
            assert!(!malformed.reason.is_empty());
        }
    }
}
