//! Data as bytes with a media type: the contents of a body or a record, or the output of a codec.

use std::borrow::Cow;

use super::{
    depth::is_deeper,
    model::{Data, Event},
};
use crate::byte_order_mark::skip_byte_order_mark;

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
                std::str::from_utf8(skip_byte_order_mark(bytes)).map(Some).map_err(|_| NotJson)
            }
            Data::Binary(_) | Data::Payload(_) => Err(NotJson),
        }
    }

    /// Whether its data is JSON with arrays and objects in more levels than this.
    pub(crate) fn is_deeper_than(&self, levels: u32) -> bool {
        let is_deeper = |json: Option<&str>| json.is_some_and(|json| is_deeper(json, levels));
        self.levels > levels && self.json().is_ok_and(is_deeper)
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
