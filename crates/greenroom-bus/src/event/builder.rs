//! Events made by a program.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    codec::Encoders,
    draft::{Draft, FoundValue},
    error::EventError,
    model::{Data, Event, ExtensionValue},
};

/// Makes an [`Event`]. Errors in its parts are returned by [`build`](Self::build).
///
/// ```
/// use greenroom_bus::event::Event;
///
/// let event = Event::builder("1", "/shop", "order.placed")
///     .subject("customer-7")
///     .extension("priority", 3)
///     .data_json(&[1, 2])
///     .build()?;
/// assert_eq!(event.subject().map(|subject| &**subject), Some("customer-7"));
/// # Ok::<(), greenroom_bus::event::EventError>(())
/// ```
#[must_use = "an event is made by `build`"]
pub struct EventBuilder<'a> {
    draft: Draft<'a>,
}

impl Event {
    /// Begins an event with its three required attributes, none of which may be empty.
    pub fn builder<'a>(
        id: impl Into<Cow<'a, str>>,
        source: impl Into<Cow<'a, str>>,
        ty: impl Into<Cow<'a, str>>,
    ) -> EventBuilder<'a> {
        EventBuilder { draft: Draft::default() }
            .text("specversion", "1.0")
            .text("id", id)
            .text("source", source)
            .text("type", ty)
    }
}

impl<'a> EventBuilder<'a> {
    fn text(mut self, name: &'static str, text: impl Into<Cow<'a, str>>) -> Self {
        self.draft.set(name, FoundValue::Text(text.into()));
        self
    }

    /// `subject`: the object of the event; not empty.
    pub fn subject(self, subject: impl Into<Cow<'a, str>>) -> Self {
        self.text("subject", subject)
    }

    /// `time`: RFC 3339.
    pub fn time(self, time: impl Into<Cow<'a, str>>) -> Self {
        self.text("time", time)
    }

    /// `datacontenttype`: a media type; not empty.
    pub fn datacontenttype(self, media_type: impl Into<Cow<'a, str>>) -> Self {
        self.text("datacontenttype", media_type)
    }

    /// `dataschema`: a URI; not empty.
    pub fn dataschema(self, schema: impl Into<Cow<'a, str>>) -> Self {
        self.text("dataschema", schema)
    }

    /// An extension attribute; its name consists of lower-case letters and digits.
    pub fn extension(mut self, name: &str, value: impl Into<ExtensionValue>) -> Self {
        let value = match value.into() {
            ExtensionValue::Text(text) => FoundValue::Text(Cow::Owned(text.into())),
            ExtensionValue::Bool(value) => FoundValue::Bool(value),
            ExtensionValue::Integer(value) => FoundValue::Integer(value),
        };
        self.draft.set_extension(name, value);
        self
    }

    /// JSON that is already text: taken as it is, but for line feeds between its tokens.
    pub fn data_raw(mut self, json: Box<RawValue>) -> Self {
        self.draft.set_json(Cow::Owned(json));
        self
    }

    /// Any value, written as JSON.
    pub fn data_json<T: Serialize + ?Sized>(mut self, value: &T) -> Self {
        match to_raw_value(value) {
            Ok(raw) => self.data_raw(raw),
            Err(error) => {
                self.draft.fail(EventError::Data(error.to_string()));
                self
            }
        }
    }

    /// A value, written as this content type by one of `encoders`; sets `datacontenttype`, too.
    pub fn data_as<T: ?Sized + 'static>(
        mut self,
        content_type: &str,
        value: &T,
        encoders: &Encoders<T>,
    ) -> Self {
        let encoded = encoders.encode(content_type, value);
        let set = encoded
            .map_err(|error| EventError::Data(error.to_string()))
            .and_then(|bytes| self.draft.set_bytes(Some(content_type), &bytes.into()));
        if let Err(error) = set {
            self.draft.fail(error);
        }
        self.datacontenttype(content_type.to_owned())
    }

    /// The value of a record or another payload, unchanged: bytes of the type that
    /// `datacontenttype` names. They are not parsed here; see [`Data::Payload`].
    pub fn data_payload(mut self, bytes: impl Into<Bytes>) -> Self {
        self.draft.set_data(Data::Payload(bytes.into()));
        self
    }

    /// Bytes, written as `data_base64`.
    pub fn data_binary(mut self, bytes: impl Into<Bytes>) -> Self {
        self.draft.set_data(Data::Binary(bytes.into()));
        self
    }

    /// The event.
    ///
    /// # Errors
    /// The first part that CloudEvents does not allow.
    pub fn build(self) -> Result<Event, EventError> {
        self.draft.finish()
    }
}
