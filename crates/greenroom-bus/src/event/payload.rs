//! Data as bytes of a media type, and back: what a codec, a body or a record holds.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    draft::Draft,
    error::EventError,
    media_type,
    model::{Data, Event},
};

/// The data of an event is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

impl Event {
    /// The data as JSON text, which bytes that should be JSON need not be; `None` where the event
    /// has no data.
    pub(crate) fn json(&self) -> Result<Option<&str>, NotJson> {
        match self.data() {
            Data::None => Ok(None),
            Data::Json(raw) => Ok(Some(raw.get())),
            Data::Binary(bytes) | Data::Payload(bytes) if self.declares_json() => {
                std::str::from_utf8(bytes).map(Some).map_err(|_| NotJson)
            }
            Data::Binary(_) | Data::Payload(_) => Err(NotJson),
        }
    }

    /// The data as bytes of its content type: JSON as its text, binary data as it is, and of a text
    /// that travels as a JSON string its content. `None` where the event has no data.
    pub fn data_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self.data() {
            Data::None => None,
            Data::Binary(bytes) | Data::Payload(bytes) => Some(Cow::Borrowed(bytes)),
            Data::Json(raw) if self.declares_json() => Some(Cow::Borrowed(raw.get().as_bytes())),
            Data::Json(raw) => match serde_json::from_str::<String>(raw.get()) {
                Ok(text) => Some(Cow::Owned(text.into_bytes())),
                Err(_) => Some(Cow::Borrowed(raw.get().as_bytes())),
            },
        }
    }
}

impl Draft<'_> {
    /// Bytes become what their media type says; those without a type become
    /// JSON where they are JSON.
    pub(super) fn set_bytes(
        &mut self,
        declared: Option<&str>,
        bytes: &Bytes,
    ) -> Result<(), EventError> {
        let media = declared.map(media_type::normal);
        match media.as_deref() {
            None => match json(bytes) {
                Ok(raw) => self.set_json(Cow::Owned(raw)),
                Err(_) => self.set_data(Data::Binary(bytes.clone())),
            },
            Some(media) if media_type::is_json(media) => self.set_json(Cow::Owned(json(bytes)?)),
            Some(media) if media.starts_with("text/") && std::str::from_utf8(bytes).is_ok() => {
                let text = serde_json::value::to_raw_value(&String::from_utf8_lossy(bytes))?;
                self.set_json(Cow::Owned(text));
            }
            Some(_) => self.set_data(Data::Binary(bytes.clone())),
        }
        Ok(())
    }
}

fn json(bytes: &[u8]) -> Result<Box<RawValue>, EventError> {
    Ok(serde_json::from_slice(bytes)?)
}
