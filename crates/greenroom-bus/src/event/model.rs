//! The event itself: its contents, and access to them.

use std::{any::Any, fmt, sync::Arc};

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{depth::most_levels, error::DataError, locals::Locals, media_type};
use crate::byte_order_mark::skip_byte_order_mark;

/// The size of an event apart from its texts: names and quotes when written, counts and lengths in
/// memory.
const FRAME_BYTES: usize = 128;

/// A CloudEvent. Cloning it copies a reference.
#[derive(Clone)]
pub struct Event {
    pub(super) inner: Arc<EventInner>,
    /// Approximate. Next to the reference, because it is added up repeatedly when the event itself
    /// has left the caches.
    bytes: u32,
    /// No data of it has more levels of arrays and objects than this.
    pub(super) levels: u32,
    /// Values that travel with this clone, and are not part of the event.
    pub(super) locals: Locals,
}

#[derive(Clone)]
pub(super) struct EventInner {
    pub(super) attributes: Attributes,
    /// Separate, because events are most often ordered by it: a key is then a clone of this
    /// reference.
    pub(super) subject: Option<Arc<str>>,
    /// In the order in which they came; no name is there twice.
    pub(super) extensions: Vec<(Box<str>, ExtensionValue)>,
    pub(super) data: Data,
}

/// Six attributes in one text, so that they cost one allocation. None of them may be empty, so an
/// empty one is a missing one.
#[derive(Clone)]
pub(super) struct Attributes {
    text: Box<str>,
    ends: [usize; 6],
}

impl EventInner {
    /// See [`Event::approximate_bytes`]. Saturates.
    fn approximate_bytes(&self) -> u32 {
        let data = match &self.data {
            Data::None => 0,
            Data::Json(raw) => raw.get().len(),
            Data::Binary(bytes) | Data::Payload(bytes) => bytes.len() / 3 * 4,
        };
        let subject = self.subject.as_ref().map_or(0, |subject| subject.len());
        let extension = |(name, value): &(Box<str>, ExtensionValue)| match value {
            ExtensionValue::Text(text) => name.len() + text.len(),
            _ => name.len(),
        };
        let extensions: usize = self.extensions.iter().map(extension).sum();
        let bytes = FRAME_BYTES + self.attributes.text.len() + subject + extensions + data;
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// No data of it has more levels of arrays and objects than this.
    fn most_levels(&self) -> u32 {
        match &self.data {
            Data::None => 0,
            Data::Json(raw) => most_levels(raw.get().as_bytes()),
            Data::Binary(bytes) | Data::Payload(bytes) => most_levels(bytes),
        }
    }
}

impl Attributes {
    /// Id, source, type, time, content type and schema, in this order; empty if missing.
    pub(super) fn new(parts: [&str; 6]) -> Self {
        let mut text = String::with_capacity(parts.iter().map(|part| part.len()).sum());
        let ends = parts.map(|part| {
            text.push_str(part);
            text.len()
        });
        Self { text: text.into_boxed_str(), ends }
    }

    fn part(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }

    fn optional(&self, index: usize) -> Option<&str> {
        Some(self.part(index)).filter(|part| !part.is_empty())
    }
}

/// The payload of an event.
#[derive(Debug, Clone)]
pub enum Data {
    /// There is none.
    None,
    /// JSON as it was read, on one line: within an event its text has no line feed. Where
    /// `datacontenttype` is not JSON this is a JSON string, and its content is the payload.
    Json(Box<RawValue>),
    /// Bytes (`data_base64`).
    Binary(Bytes),
    /// The value of a record, unchanged: bytes of the type that `datacontenttype` names, unparsed.
    /// When the event is written as JSON, they are `data` if they are valid JSON or text according
    /// to their content type, and `data_base64` otherwise.
    Payload(Bytes),
}

/// The value of an extension attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionValue {
    /// A text; times, URIs and binary values are texts, too.
    Text(Box<str>),
    /// A truth value.
    Bool(bool),
    /// A whole number. CloudEvents stops at 32 bits; producers do not, so 64
    /// bits are read and written.
    Integer(i64),
}

impl Event {
    pub(super) fn new(inner: EventInner) -> Self {
        let (bytes, levels) = (inner.approximate_bytes(), inner.most_levels());
        Self { inner: Arc::new(inner), bytes, levels, locals: Locals::default() }
    }

    /// Changes the contents, of this clone alone.
    pub(super) fn change(&mut self, change: impl FnOnce(&mut EventInner)) {
        let inner = Arc::make_mut(&mut self.inner);
        change(inner);
        (self.bytes, self.levels) = (inner.approximate_bytes(), inner.most_levels());
    }

    /// `id`: identifies the event, together with the source.
    pub fn id(&self) -> &str {
        self.inner.attributes.part(0)
    }

    /// `source`: where it happened.
    pub fn source(&self) -> &str {
        self.inner.attributes.part(1)
    }

    /// `type`: the kind of event. Events are routed by it.
    pub fn ty(&self) -> &str {
        self.inner.attributes.part(2)
    }

    /// `subject`: the object of the event. Shared, so that an order key is a cheap clone.
    pub fn subject(&self) -> Option<&Arc<str>> {
        self.inner.subject.as_ref()
    }

    /// `time`: when it happened, RFC 3339, as it was written.
    pub fn time(&self) -> Option<&str> {
        self.inner.attributes.optional(3)
    }

    /// `datacontenttype`: the media type of the data; none means JSON.
    pub fn datacontenttype(&self) -> Option<&str> {
        self.inner.attributes.optional(4)
    }

    /// `dataschema`: the schema of the data.
    pub fn dataschema(&self) -> Option<&str> {
        self.inner.attributes.optional(5)
    }

    /// The extension attributes in their order.
    pub fn extensions(&self) -> impl ExactSizeIterator<Item = (&str, &ExtensionValue)> {
        self.inner.extensions.iter().map(|(name, value)| (&**name, value))
    }

    /// One extension attribute.
    pub fn extension(&self, name: &str) -> Option<&ExtensionValue> {
        self.extensions().find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The payload, as it came.
    pub fn data(&self) -> &Data {
        &self.inner.data
    }

    /// About how many bytes the event takes, in memory and as a line: for bounds, not for accounts.
    pub fn approximate_bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Reads a byte of each part that routing looks at. Done for many events in a row, their cache
    /// misses overlap; done where each is routed, every one of them is waited for.
    pub(crate) fn fetch(&self) -> u8 {
        let attributes = self.inner.attributes.text.as_bytes().first();
        let subject = self.inner.subject.as_ref().and_then(|subject| subject.as_bytes().first());
        attributes.unwrap_or(&0) ^ subject.unwrap_or(&0)
    }

    /// Like [`fetch`](Self::fetch), for the data.
    pub(crate) fn fetch_data(&self) -> u8 {
        let data = match self.data() {
            Data::None => None,
            Data::Json(raw) => raw.get().as_bytes().first(),
            Data::Binary(bytes) | Data::Payload(bytes) => bytes.first(),
        };
        self.fetch() ^ data.unwrap_or(&0)
    }

    /// Whether `datacontenttype` says JSON: `application/json`, any `+json`, or nothing at all.
    pub fn declares_json(&self) -> bool {
        let Some(declared) = self.datacontenttype() else { return true };
        media_type::is_json(&media_type::normal(declared))
    }

    /// Decodes the data, which must be JSON.
    ///
    /// # Errors
    /// There is no data, it is not JSON, or JSON of another shape. The event keeps its bytes.
    pub fn data_as<T: DeserializeOwned>(&self) -> Result<T, DataError> {
        match self.data() {
            Data::None => Err(DataError::Missing),
            Data::Json(raw) => Ok(serde_json::from_str(raw.get())?),
            Data::Binary(bytes) | Data::Payload(bytes) if self.declares_json() => {
                Ok(serde_json::from_slice(skip_byte_order_mark(bytes))?)
            }
            Data::Binary(_) | Data::Payload(_) => Err(DataError::NotJson {
                content_type: self.datacontenttype().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// This event with a value that travels with it: through pools, retries and layers, to the
    /// sinks or the dead letters. The value is never written, does not count when events are
    /// compared, and is not inherited by a handler's results. There is one value of each type; a
    /// new one replaces it. Earlier clones do not have it.
    ///
    /// A permission that was checked when the event came in, the handle of a
    /// connection, a moment of time:
    ///
    /// ```
    /// use std::time::Instant;
    /// use greenroom_bus::event::Event;
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Received(Instant);
    ///
    /// let now = Instant::now();
    /// let event = Event::builder("1", "/shop", "order.placed").build()?.with_local(Received(now));
    /// assert_eq!(event.clone().local(), Some(&Received(now)));
    /// assert_eq!(event.local::<String>(), None);
    /// # Ok::<(), greenroom_bus::event::EventError>(())
    /// ```
    pub fn with_local<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.locals = self.locals.with(value);
        self
    }

    /// The value of this type that travels with the event.
    pub fn local<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.locals.find()
    }
}

/// Equal in every attribute and in the data, byte by byte; whatever travels with them.
impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.inner, &*other.inner);
        Arc::ptr_eq(&self.inner, &other.inner)
            || (a.attributes.ends == b.attributes.ends
                && a.attributes.text == b.attributes.text
                && a.subject == b.subject
                && a.extensions == b.extensions
                && a.data == b.data)
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Json(a), Self::Json(b)) => a.get() == b.get(),
            (Self::Binary(a), Self::Binary(b)) | (Self::Payload(a), Self::Payload(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_json(&mut text);
        write!(f, "Event({})", String::from_utf8_lossy(&text))
    }
}

impl From<&str> for ExtensionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for ExtensionValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<bool> for ExtensionValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for ExtensionValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}
