//! Data from bytes with a media type: the contents of a body or a record.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Draft;
use crate::{
    byte_order_mark::skip_byte_order_mark,
    event::{error::EventError, media_type, model::Data},
};

impl Draft<'_> {
    /// Bytes are stored according to their media type; those without a type become JSON if they are
    /// JSON.
    pub(in crate::event) fn set_bytes(
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
    Ok(serde_json::from_slice(skip_byte_order_mark(bytes))?)
}
