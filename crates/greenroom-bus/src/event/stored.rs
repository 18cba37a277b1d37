//! An event as a log keeps it: its attributes and the bytes of its data, each with its length.
//!
//! ```text
//! form 1 | id | source | type | time | datacontenttype | dataschema | subject | extensions | data
//! ```
//!
//! The event read equals the event written, and no data is parsed on the way. The store that keeps
//! these bytes checks their integrity; damaged bytes are an error, never a panic.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, de::value::MapDeserializer};
use serde_json::value::RawValue;

use super::model::{Attributes, Data, Event, EventInner, ExtensionValue};

const FORM: u8 = 1;

/// A text that is not there.
const NONE: u32 = u32::MAX;

/// Bytes that are not those of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the stored form of an event: {0}")]
pub(crate) struct NotStored(&'static str);

impl Event {
    /// Appends the stored form.
    pub(crate) fn write_stored(&self, into: &mut Vec<u8>) {
        into.push(FORM);
        let optional = [self.time(), self.datacontenttype(), self.dataschema()];
        let required = [self.id(), self.source(), self.ty()];
        let optional = optional.map(Option::unwrap_or_default);
        required.into_iter().chain(optional).for_each(|text| put(into, text.as_bytes()));
        match self.subject() {
            Some(subject) => put(into, subject.as_bytes()),
            None => into.extend(NONE.to_le_bytes()),
        }
        into.extend(length(self.extensions().len()));
        for (name, value) in self.extensions() {
            put(into, name.as_bytes());
            put_extension(into, value);
        }
        match self.data() {
            Data::None => into.push(0),
            Data::Json(raw) => put_data(into, 1, raw.get().as_bytes()),
            Data::Binary(bytes) => put_data(into, 2, bytes),
            Data::Payload(bytes) => put_data(into, 3, bytes),
        }
    }

    /// Reads the stored form. The event has bytes of its own, so that it keeps nothing else in
    /// memory.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn read_stored(stored: &[u8]) -> Result<Self, NotStored> {
        let mut rest = Rest(stored);
        rest.form()?;
        let mut attributes = [""; 6];
        for attribute in &mut attributes {
            *attribute = rest.text()?;
        }
        if attributes[..3].iter().any(|required| required.is_empty()) {
            return Err(NotStored("a required attribute is empty"));
        }
        let subject = rest.optional_text()?.map(Arc::from);
        let count = rest.length()?;
        let mut extensions = Vec::new();
        for _ in 0..count {
            let name = rest.text()?.into();
            extensions.push((name, rest.extension()?));
        }
        let data = rest.data()?;
        let attributes = Attributes::new(attributes);
        Ok(Self::new(EventInner { attributes, subject, extensions, data }))
    }

    /// Source and id of a stored form, without reading the rest.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn stored_identity(stored: &[u8]) -> Result<(&str, &str), NotStored> {
        let mut rest = Rest(stored);
        rest.form()?;
        let id = rest.text()?;
        Ok((rest.text()?, id))
    }
}

/// Texts of more than 4 GiB are in no event: it would not fit into anything that carries events.
fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(NONE).to_le_bytes()
}

fn put(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend(length(bytes.len()));
    into.extend(bytes);
}

fn put_extension(into: &mut Vec<u8>, value: &ExtensionValue) {
    match value {
        ExtensionValue::Text(text) => {
            into.push(0);
            put(into, text.as_bytes());
        }
        ExtensionValue::Bool(value) => into.extend([1, u8::from(*value)]),
        ExtensionValue::Integer(value) => {
            into.push(2);
            into.extend(value.to_le_bytes());
        }
    }
}

/// Last, so that it needs no length.
fn put_data(into: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    into.push(kind);
    into.extend(bytes);
}

/// The unread rest.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], NotStored> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(NotStored("it is cut"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotStored> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(NotStored("it is cut"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn form(&mut self) -> Result<(), NotStored> {
        match self.array()? {
            [FORM] => Ok(()),
            _ => Err(NotStored("its form is unknown")),
        }
    }

    fn length(&mut self) -> Result<u32, NotStored> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, NotStored> {
        self.optional_text()?.ok_or(NotStored("a text is missing"))
    }

    fn optional_text(&mut self) -> Result<Option<&'a str>, NotStored> {
        let length = self.length()?;
        if length == NONE {
            return Ok(None);
        }
        let bytes = self.take(length as usize)?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| NotStored("a text is not UTF-8"))
    }

    fn extension(&mut self) -> Result<ExtensionValue, NotStored> {
        Ok(match self.array()? {
            [0] => ExtensionValue::Text(self.text()?.into()),
            [1] => ExtensionValue::Bool(self.array()? != [0]),
            [2] => ExtensionValue::Integer(i64::from_le_bytes(self.array()?)),
            _ => return Err(NotStored("an extension has no known type")),
        })
    }

    fn data(&mut self) -> Result<Data, NotStored> {
        let [kind] = self.array()?;
        let rest = std::mem::take(&mut self.0);
        match kind {
            0 if rest.is_empty() => Ok(Data::None),
            1 => json_as_it_was(rest).map(Data::Json),
            2 => Ok(Data::Binary(Bytes::copy_from_slice(rest))),
            3 => Ok(Data::Payload(Bytes::copy_from_slice(rest))),
            _ => Err(NotStored("its data has no known type")),
        }
    }
}

/// JSON that was checked before it was stored, without checking it again.
///
/// `serde_json` hands such a text from one of its deserializers to another as a map with one entry
/// of this name. A version that names it otherwise would refuse the map; then the text is parsed.
fn json_as_it_was(text: &[u8]) -> Result<Box<RawValue>, NotStored> {
    const ENTRY: &str = "$serde_json::private::RawValue";
    let text = std::str::from_utf8(text).map_err(|_| NotStored("its data is not UTF-8"))?;
    let map = MapDeserializer::new(std::iter::once((ENTRY, text)));
    let as_it_was: Result<_, serde_json::Error> = Box::<RawValue>::deserialize(map);
    as_it_was
        .or_else(|_| RawValue::from_string(text.to_owned()))
        .map_err(|_| NotStored("its data is not JSON"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events() -> Vec<Event> {
        let new = || Event::builder("id-1", "/shop", "order.placed");
        let full = new()
            .subject("customer ä")
            .time("2026-01-31T12:00:00.5+01:00")
            .dataschema("https://x/y")
            .extension("text", "")
            .extension("yes", true)
            .extension("number", -7_i64);
        [
            new().build(),
            full.data_raw(RawValue::from_string("{\"n\": 1.00,\t\"m\":[]}".to_owned()).unwrap())
                .build(),
            new().datacontenttype("text/plain").data_payload(vec![0xff, 0]).build(),
            new().data_binary(Vec::new()).build(),
            new().data_json("").build(),
        ]
        .map(Result::unwrap)
        .into()
    }

    fn stored(event: &Event) -> Vec<u8> {
        let mut stored = Vec::new();
        event.write_stored(&mut stored);
        stored
    }

    #[test]
    fn b03_an_event_that_is_read_from_a_log_is_the_one_that_was_written() {
        for event in events() {
            let stored = stored(&event);
            assert_eq!(Event::read_stored(&stored).as_ref(), Ok(&event));
            assert_eq!(Event::stored_identity(&stored), Ok(("/shop", "id-1")));
        }
    }

    #[test]
    fn b03_json_is_not_parsed_again_when_it_is_read() {
        // What is no JSON passes, so nobody has looked at it.
        assert_eq!(json_as_it_was(b"{not json").unwrap().get(), "{not json");
    }

    #[test]
    fn b03_bytes_that_are_no_event_are_an_error() {
        for event in events() {
            let whole = stored(&event);
            for end in 0..whole.len() {
                // Cut within its data it is another event; before that it is none.
                let _ = Event::read_stored(&whole[..end]);
            }
        }
        assert!(Event::read_stored(&[]).is_err());
        assert!(Event::read_stored(&[2]).is_err());
    }

    proptest! {
        #[test]
        fn b03_no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Event::read_stored(&bytes);
            let begun: Vec<u8> = [FORM].into_iter().chain(bytes).collect();
            let _ = Event::read_stored(&begun);
        }
    }
}
