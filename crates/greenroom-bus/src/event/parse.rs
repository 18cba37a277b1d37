//! Events from JSON: structured mode and batches.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    draft::{Draft, FoundValue},
    error::EventError,
    model::Event,
};
use crate::byte_order_mark::skip_byte_order_mark;

impl Event {
    /// Reads one event from the CloudEvents JSON format. White space around it
    /// is allowed, and a byte order mark before it; more is not.
    ///
    /// # Errors
    /// The bytes are not UTF-8, not JSON, or not an event; the error names
    /// the place or the attribute.
    pub fn parse(json: &[u8]) -> Result<Self, EventError> {
        serde_json::from_str::<Draft<'_>>(text(json)?)?.finish()
    }

    /// Reads a JSON array of events.
    ///
    /// # Errors
    /// Like [`parse`](Self::parse), for the first event that is wrong: a batch is all or nothing.
    pub fn parse_batch(json: &[u8]) -> Result<Vec<Self>, EventError> {
        Self::parse_batch_within(json, usize::MAX)
    }

    /// Reads a JSON array of at most this many events; stops at the first that is wrong or one too
    /// many.
    ///
    /// # Errors
    /// Like [`parse_batch`](Self::parse_batch), or there are more.
    pub fn parse_batch_within(json: &[u8], most: usize) -> Result<Vec<Self>, EventError> {
        let mut json = serde_json::Deserializer::from_str(text(json)?);
        let mut problem = None;
        let batch = BatchVisitor { most, problem: &mut problem };
        let events = json.deserialize_seq(batch).and_then(|events| json.end().map(|()| events));
        match problem {
            Some(problem) => Err(problem),
            None => Ok(events?),
        }
    }
}

/// Checked once here, so that the parser need not check text by text.
fn text(json: &[u8]) -> Result<&str, EventError> {
    std::str::from_utf8(skip_byte_order_mark(json))
        .map_err(|error| EventError::InvalidUtf8 { column: error.valid_up_to() + 1 })
}

impl<'de> Deserialize<'de> for Draft<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DraftVisitor)
    }
}

/// Makes an event of each draft as it comes: a body may have many more drafts than events, and they
/// take more memory than it.
struct BatchVisitor<'p> {
    most: usize,
    /// Why it stopped, if the reason is not a JSON error.
    problem: &'p mut Option<EventError>,
}

impl<'de> Visitor<'de> for BatchVisitor<'_> {
    type Value = Vec<Event>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of CloudEvents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut events = Vec::new();
        while let Some(draft) = seq.next_element::<Draft<'de>>()? {
            let index = events.len() + 1;
            let event = match draft.finish() {
                _ if index > self.most => Err(EventError::TooMany { most: self.most }),
                Ok(event) => Ok(event),
                Err(error) => Err(EventError::InBatch { index, error: error.into() }),
            };
            match event {
                Ok(event) => events.push(event),
                Err(problem) => {
                    *self.problem = Some(problem);
                    return Err(A::Error::custom("not read further"));
                }
            }
        }
        Ok(events)
    }
}

struct DraftVisitor;

impl<'de> Visitor<'de> for DraftVisitor {
    type Value = Draft<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a CloudEvent (a JSON object)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut draft = Draft::default();
        while let Some(MemberName(name)) = map.next_key()? {
            match &*name {
                "data" => draft.set_json(Cow::Borrowed(map.next_value::<&RawValue>()?)),
                "data_base64" => draft.set_base64(map.next_value()?),
                name => draft.set(name, map.next_value()?),
            }
        }
        Ok(draft)
    }
}

/// A member's name: borrowed from the input unless it holds escapes.
struct MemberName<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(FoundVisitor)? {
            FoundValue::Text(name) => Ok(Self(name)),
            _ => Err(D::Error::custom("expected a member name")),
        }
    }
}

impl<'de> Deserialize<'de> for FoundValue<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct FoundVisitor;

impl<'de> Visitor<'de> for FoundVisitor {
    type Value = FoundValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an attribute")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FoundValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FoundValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(FoundValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(FoundValue::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value)
            .map_or_else(|_| FoundValue::Other(value.to_string()), FoundValue::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(FoundValue::Other(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(FoundValue::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FoundValue::Other("an array".to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(FoundValue::Other("an object".to_owned()))
    }
}
