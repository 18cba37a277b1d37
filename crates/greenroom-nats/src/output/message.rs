//! Messages from events.

use async_nats::{HeaderMap, HeaderName, HeaderValue, header::NATS_MESSAGE_ID};
use bytes::Bytes;
use greenroom_bus::event::{Event, http};

use crate::options::{NatsOutput, NatsSinkMode};

pub(super) const CONTENT_TYPE: &str = "content-type";
const STRUCTURED: &str = "application/cloudevents+json";

/// The published message, kept until it is stored.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

impl Message {
    /// # Errors
    /// Why none can be made of this event.
    pub(super) fn new(event: &Event, output: &NatsOutput) -> Result<Self, String> {
        let subject = output.subject.fill(event).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        let payload = match output.mode {
            NatsSinkMode::Binary => {
                let message = http::write_binary(event);
                for (name, text) in &message.headers {
                    insert(&mut headers, name, text)?;
                }
                message.body
            }
            NatsSinkMode::Structured => {
                let mut json = Vec::new();
                event.write_json(&mut json);
                insert(&mut headers, CONTENT_TYPE, STRUCTURED)?;
                json.into()
            }
        };
        headers.insert(NATS_MESSAGE_ID, value("the message id", &message_id(event, &subject))?);
        Ok(Self { subject, headers, payload })
    }
}

/// The id by which a stream recognizes a repetition. The subject is part of it, as a stream may be
/// given the same event under two of them. None of the three contains a space.
fn message_id(event: &Event, subject: &str) -> String {
    format!("{} {} {subject}", http::encode(event.source()), http::encode(event.id()))
}

pub(super) fn insert(headers: &mut HeaderMap, name: &str, text: &str) -> Result<(), String> {
    let key: HeaderName = name.parse().map_err(|_| format!("{name:?} is no name of a header"))?;
    headers.insert(key, value(name, text)?);
    Ok(())
}

fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    text.parse().map_err(|_| format!("{name} has a line break, which no header may have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(source: &str) -> Event {
        let event =
            Event::builder("a b", source, "placed").subject("7").extension("tenant", "blau");
        event.data_json(&1).build().unwrap()
    }

    fn message(event: &Event, mode: NatsSinkMode) -> Message {
        let output = NatsOutput::new("server", "orders.{subject}".parse().unwrap());
        Message::new(event, &NatsOutput { mode, ..output }).unwrap()
    }

    fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
        message.headers.get(name).map(HeaderValue::as_str)
    }

    #[test]
    fn n04_the_message_id_is_the_same_for_a_repetition_only() {
        let id = |source| {
            let message = message(&event(source), NatsSinkMode::Binary);
            header(&message, "Nats-Msg-Id").unwrap().to_owned()
        };
        assert_eq!(id("/shop"), "/shop a%20b orders.7");
        assert_eq!(id("/shop"), id("/shop"));
        assert_ne!(id("/shop"), id("/shop a"));
    }

    #[test]
    fn n04_attributes_are_headers_or_all_is_json() {
        let binary = message(&event("/shop"), NatsSinkMode::Binary);
        let of = |name| header(&binary, name).unwrap();
        let known = ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-subject", "ce-tenant"];
        assert_eq!(known.map(of), ["1.0", "a%20b", "/shop", "placed", "7", "blau"]);
        assert_eq!((of("content-type"), &*binary.payload), ("application/json", &b"1"[..]));
        let structured = message(&event("/shop"), NatsSinkMode::Structured);
        assert_eq!(header(&structured, "content-type"), Some(STRUCTURED));
        assert_eq!(header(&structured, "ce-id"), None);
        assert_eq!(Event::parse(&structured.payload).unwrap().id(), "a b");
    }
}
