//! The rule by which records become events.

use std::borrow::Cow;

use super::{
    Record,
    pick::{Members, Pick, Picked, RecordPart},
};
use crate::event::{Event, EventError, ExtensionValue, PARTITION_KEY, Pointers, key_text};

/// Where the attributes of events come from that are made of records.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    ty: Pick,
    source: Pick,
    subject: Option<Pick>,
    id: Option<Pick>,
    time: Option<Pick>,
    content_type: Option<Pick>,
    extensions: Vec<(Box<str>, Pick)>,
    /// Those of all of them.
    pointers: Pointers,
}

/// A record that the rule cannot map to an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unmapped {
    /// The source of an attribute is missing, or cannot be one.
    #[error("attribute `{attribute}`: {why}")]
    Attribute {
        /// The attribute.
        attribute: String,
        /// The place that was searched, and the problem.
        why: String,
    },
    /// The value found is not allowed in a CloudEvent.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl Mapping {
    /// The id is derived from the position, the content type is that of the record, and other
    /// attributes are absent unless named.
    pub fn new(ty: Pick, source: Pick) -> Self {
        let mapping = Self {
            ty: ty.clone(),
            source: source.clone(),
            subject: None,
            id: None,
            time: None,
            content_type: None,
            extensions: Vec::new(),
            pointers: Pointers::default(),
        };
        mapping.asking(&ty).asking(&source)
    }

    fn asking(mut self, pick: &Pick) -> Self {
        if let RecordPart::Pointer(pointer) = pick.part {
            self.pointers.add(pointer);
        }
        self
    }

    /// The object of the event.
    pub fn subject(self, pick: Pick) -> Self {
        Self { subject: Some(pick.clone()), ..self.asking(&pick) }
    }

    /// Instead of an id that is derived from the position: one that a producer gives to each record
    /// and repeats with it.
    pub fn id(self, pick: Pick) -> Self {
        Self { id: Some(pick.clone()), ..self.asking(&pick) }
    }

    /// When it happened, in RFC 3339.
    pub fn time(self, pick: Pick) -> Self {
        Self { time: Some(pick.clone()), ..self.asking(&pick) }
    }

    /// Instead of the content type that the record has.
    pub fn content_type(self, pick: Pick) -> Self {
        Self { content_type: Some(pick.clone()), ..self.asking(&pick) }
    }

    /// An extension attribute. Numbers and booleans at a pointer keep their type. Without one of
    /// that name, [`partitionkey`](PARTITION_KEY) is the key of the record.
    ///
    /// # Errors
    /// An event cannot have an extension of this name, or it was named before.
    pub fn extension(mut self, name: &str, pick: Pick) -> Result<Self, EventError> {
        Event::builder("1", "/", "t").extension(name, "1").build()?;
        if self.names(name) {
            return Err(EventError::Duplicate { name: name.to_owned() });
        }
        self.extensions.push((name.into(), pick.clone()));
        Ok(self.asking(&pick))
    }

    fn names(&self, extension: &str) -> bool {
        self.extensions.iter().any(|(known, _)| **known == *extension)
    }

    /// Whether it reads the values of records, as JSON.
    pub(crate) fn parses(&self) -> bool {
        !self.pointers.is_empty()
    }

    /// The event that a record is. Its data shares the bytes of the record.
    ///
    /// # Errors
    /// Which attribute cannot be had, and why.
    pub fn event(&self, record: &Record<'_>) -> Result<Event, Unmapped> {
        let members = Members::read(&self.pointers, record.value.as_deref());
        let text = |attribute: &str, pick| text(attribute, pick, record, &members);
        let required = |attribute: &'static str, pick| {
            let missing = EventError::Missing { name: attribute };
            text(attribute, Some(pick))?.ok_or(Unmapped::Event(missing))
        };
        let (ty, source) = (required("type", &self.ty)?, required("source", &self.source)?);
        let id = text("id", self.id.as_ref())?;
        let id = id.unwrap_or_else(|| record.position.to_string().into());
        let mut event = Event::builder(id, source, ty);
        if let Some(subject) = text("subject", self.subject.as_ref())? {
            event = event.subject(subject);
        }
        if let Some(time) = text("time", self.time.as_ref())? {
            event = event.time(time);
        }
        let own = record.content_type.map(Cow::Borrowed);
        if let Some(content_type) = text("datacontenttype", self.content_type.as_ref())?.or(own) {
            event = event.datacontenttype(content_type);
        }
        for (name, pick) in &self.extensions {
            if let Some(picked) = value(name, pick, record, &members)? {
                event = event.extension(name, extension_of(picked));
            }
        }
        if let Some(key) = record.key.filter(|_| !self.names(PARTITION_KEY)) {
            event = event.extension(PARTITION_KEY, &*key_text(key));
        }
        if let Some(value) = &record.value {
            event = event.data_payload(value.clone());
        }
        Ok(event.build()?)
    }
}

fn text<'r>(
    attribute: &str,
    pick: Option<&'r Pick>,
    record: &'r Record<'_>,
    members: &Members<'r>,
) -> Result<Option<Cow<'r, str>>, Unmapped> {
    let Some(pick) = pick else { return Ok(None) };
    Ok(value(attribute, pick, record, members)?.map(text_of))
}

fn value<'r>(
    attribute: &str,
    pick: &'r Pick,
    record: &'r Record<'_>,
    members: &Members<'r>,
) -> Result<Option<Picked<'r>>, Unmapped> {
    pick.value(record, members)
        .map_err(|why| Unmapped::Attribute { attribute: attribute.to_owned(), why })
}

fn text_of(picked: Picked<'_>) -> Cow<'_, str> {
    match picked {
        Picked::Text(text) => text,
        Picked::Other(written, _) => written.into(),
    }
}

fn extension_of(picked: Picked<'_>) -> ExtensionValue {
    match picked {
        Picked::Text(text) => text.into_owned().into(),
        Picked::Other(_, value) => value,
    }
}
