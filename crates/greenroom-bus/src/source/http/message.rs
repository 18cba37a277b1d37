//! A request to events, as one pure function: no socket, no clock, nothing that is kept.

use std::fmt;

use bytes::Bytes;
use hyper::StatusCode;
use ring::digest::{Context, SHA256};

use crate::{
    event::{
        Event, EventError, TraceHeaders,
        http::{BATCH, STRUCTURED, read_binary},
        media_type,
    },
    excerpt::excerpt,
    record::{Mapping, Record, Unmapped},
};

/// The content types of event messages, for senders that have posted something else.
pub const MEDIA_TYPES: &str = "application/cloudevents+json, application/cloudevents-batch+json, or any type with ce- headers";

/// All media types of CloudEvents begin like this. Only the JSON format is read.
const CLOUD_EVENTS: &str = "application/cloudevents";

/// This many bytes of its digest identify a body: 128 bits.
const DIGEST: usize = 16;

/// A posted message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'m> {
    /// The path, without the query.
    pub path: &'m str,
    /// Names in any case, and values.
    pub headers: &'m [(&'m str, &'m [u8])],
    /// The whole body.
    pub body: &'m Bytes,
}

/// How messages are read.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'r> {
    /// The rule for messages that are no CloudEvents.
    pub records: Option<&'r Mapping>,
    /// The largest event, in bytes.
    pub max_event: usize,
    /// The most events of a batch.
    pub max_batch: usize,
}

/// The form of a message, by its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageForm {
    Structured,
    Batch,
    Binary,
    /// Not CloudEvents: the input of a mapping rule.
    Record,
}

/// Why a message is no events. Nothing of it is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMessage {
    /// Nothing that is read here.
    #[error("{0}")]
    Unsupported(String),
    /// An event, or the whole message, is invalid.
    #[error("{reason}")]
    Event {
        /// Its place in the batch, from 0.
        index: Option<usize>,
        /// The attribute that is wrong or missing.
        field: Option<String>,
        /// The problem.
        reason: String,
    },
    /// An event has too many bytes.
    #[error("an event of about {bytes} bytes is larger than {limit}")]
    EventTooLarge {
        /// Its place in the batch, from 0.
        index: Option<usize>,
        /// Its approximate size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A batch has too many events.
    #[error("a batch of more than {limit} events")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl BadMessage {
    /// The status of the answer to its sender.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unsupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Event { .. } => StatusCode::BAD_REQUEST,
            Self::EventTooLarge { .. } | Self::TooMany { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }
}

impl MessageForm {
    /// The form of a message with these headers.
    ///
    /// # Errors
    /// It is nothing that is read here.
    pub(super) fn from_headers(
        headers: &[(&str, &[u8])],
        records: bool,
    ) -> Result<Self, BadMessage> {
        let value = |name: &str| {
            let mut named = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.next().map(|(_, value)| String::from_utf8_lossy(value))
        };
        if let Some(coding) = value("content-encoding")
            && !coding.trim().eq_ignore_ascii_case("identity")
        {
            let coding = excerpt(coding.trim()).into_owned();
            let text = format!("a body in the coding `{coding}` is not read: send it plain");
            return Err(BadMessage::Unsupported(text));
        }
        let declared = value("content-type");
        let media = declared.as_deref().map(media_type::normal);
        match media.as_deref() {
            Some(STRUCTURED) => return Ok(Self::Structured),
            Some(BATCH) => return Ok(Self::Batch),
            Some(other) if other.starts_with(CLOUD_EVENTS) => {
                let text = format!("`{}` is not read: {MEDIA_TYPES}", excerpt(other));
                return Err(BadMessage::Unsupported(text));
            }
            _ => {}
        }
        let is_attribute = |(name, _): &(&str, &[u8])| {
            name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ce-"))
        };
        match records {
            _ if headers.iter().any(is_attribute) => Ok(Self::Binary),
            true => Ok(Self::Record),
            false => {
                let found = match media {
                    Some(media) => format!("`{}`", excerpt(&media)),
                    None => "a body without a content type".to_owned(),
                };
                let text = format!("{found} is no message of CloudEvents: send {MEDIA_TYPES}");
                Err(BadMessage::Unsupported(text))
            }
        }
    }
}

/// The events of a message. Empty for an empty batch.
///
/// A message that is no CloudEvents is one event by the rule of [`Reading::records`]: its path is
/// its topic as well, and where the rule names no id, one is made of path and body, so a message
/// that is posted again is the same event.
///
/// # Errors
/// It is no events, or too large ones; the error says which one, and why. A batch is all or
/// nothing.
pub fn read(message: &Message<'_>, reading: &Reading<'_>) -> Result<Vec<Event>, BadMessage> {
    let Message { headers, body, .. } = *message;
    let events = match MessageForm::from_headers(headers, reading.records.is_some())? {
        MessageForm::Structured => vec![Event::parse(body)?],
        MessageForm::Binary => vec![read_binary(headers, body)?],
        MessageForm::Batch => Event::parse_batch_within(body, reading.max_batch)?,
        MessageForm::Record => vec![record(message, reading)?],
    };
    let events = match TraceHeaders::find(headers) {
        Some(trace) => events.into_iter().map(|event| event.with_trace(trace)).collect(),
        None => events,
    };
    bounded(events, reading)
}

fn bounded(events: Vec<Event>, reading: &Reading<'_>) -> Result<Vec<Event>, BadMessage> {
    let limit = reading.max_event;
    match events.iter().position(|event| event.approximate_bytes() > limit) {
        None => Ok(events),
        Some(place) => Err(BadMessage::EventTooLarge {
            index: (events.len() > 1).then_some(place),
            bytes: events[place].approximate_bytes(),
            limit,
        }),
    }
}

fn record(message: &Message<'_>, reading: &Reading<'_>) -> Result<Event, BadMessage> {
    let Message { path, headers, body } = *message;
    let Some(mapping) = reading.records else {
        return Err(BadMessage::Unsupported("there is no rule for records".to_owned()));
    };
    let mut declared = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = declared.next().and_then(|(_, value)| str::from_utf8(value).ok());
    let digest = Digest { path, body };
    let value = (!body.is_empty()).then(|| body.clone());
    let record = Record {
        headers,
        topic: Some(path),
        path: Some(path),
        content_type: content_type.filter(|text| !text.is_empty()),
        ..Record::new(value, &digest)
    };
    Ok(mapping.event(&record)?)
}

/// The same for a repeated post, and computed only on demand.
struct Digest<'m> {
    path: &'m str,
    body: &'m [u8],
}

impl fmt::Display for Digest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digest = Context::new(&SHA256);
        digest.update(&self.path.len().to_le_bytes());
        digest.update(self.path.as_bytes());
        digest.update(self.body);
        let digest = digest.finish();
        digest.as_ref()[..DIGEST].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<EventError> for BadMessage {
    fn from(error: EventError) -> Self {
        let (index, error) = match error {
            EventError::TooMany { most } => return Self::TooMany { limit: most },
            EventError::InBatch { index, error } => (Some(index - 1), *error),
            other => (None, other),
        };
        let field = match &error {
            EventError::Missing { name } => Some((*name).to_owned()),
            EventError::Attribute { name, .. } | EventError::Duplicate { name } => {
                Some(excerpt(name).into_owned())
            }
            EventError::TwoData => Some("data".to_owned()),
            _ => None,
        };
        Self::Event { index, field, reason: excerpt(&error.to_string()).into_owned() }
    }
}

impl From<Unmapped> for BadMessage {
    fn from(unmapped: Unmapped) -> Self {
        let reason = excerpt(&unmapped.to_string()).into_owned();
        match unmapped {
            Unmapped::Event(error) => error.into(),
            Unmapped::Attribute { attribute, .. } => {
                Self::Event { index: None, field: Some(attribute), reason }
            }
        }
    }
}

#[cfg(test)]
mod tests;
