//! The origin of an attribute.

use std::{borrow::Cow, str};

use serde_json::value::RawValue;

use super::Record;
use crate::{
    byte_order_mark::skip_byte_order_mark,
    event::{ExtensionValue, Pointer, Pointers, key_text, rfc3339},
};

/// Where an attribute of an event comes from, and its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    pub(super) part: RecordPart,
    default: Option<Box<str>>,
    optional: bool,
}

/// A part of a record. An empty text is as good as none.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RecordPart {
    /// This text, the same for every record.
    Literal(Box<str>),
    /// Its topic or subject.
    Topic,
    /// Its key, as [text](key_text).
    Key,
    /// The header of this name, as text.
    Header(Box<str>),
    /// Its path.
    Path,
    /// When it was published, as RFC 3339.
    Time,
    /// A string, a number or a boolean in its value, which then has to be JSON.
    Pointer(Pointer),
}

/// The values at the pointers of a rule, or why the value is not JSON.
pub(super) struct Members<'v> {
    pointers: &'v Pointers,
    found: Result<Vec<Option<&'v RawValue>>, String>,
}

impl<'v> Members<'v> {
    /// Parses the value once, if there is a pointer.
    pub(super) fn read(pointers: &'v Pointers, value: Option<&'v [u8]>) -> Self {
        let found = match value {
            Some(value) if !pointers.is_empty() => find(pointers, value),
            _ => Ok(Vec::new()),
        };
        Self { pointers, found }
    }

    fn find(&self, pointer: Pointer) -> Result<Option<&'v RawValue>, String> {
        let place = self.pointers.place(pointer);
        match &self.found {
            Ok(found) => Ok(place.and_then(|place| found.get(place).copied().flatten())),
            Err(why) => Err(format!(
                "the JSON pointer `{pointer}` needs JSON, which the record is not: {why}"
            )),
        }
    }
}

fn find<'v>(pointers: &'v Pointers, value: &'v [u8]) -> Result<Vec<Option<&'v RawValue>>, String> {
    let text = str::from_utf8(skip_byte_order_mark(value))
        .map_err(|error| format!("invalid UTF-8 at column {}", error.valid_up_to() + 1))?;
    pointers.find(text).map_err(|error| error.to_string())
}

/// A value as it was found.
pub(super) enum Picked<'r> {
    Text(Cow<'r, str>),
    /// Its text, and its type.
    Other(&'r str, ExtensionValue),
}

impl Pick {
    /// From this part.
    pub fn part(part: RecordPart) -> Self {
        Self { part, default: None, optional: false }
    }

    /// The same text for every record.
    pub fn literal(text: impl Into<Box<str>>) -> Self {
        Self::part(RecordPart::Literal(text.into()))
    }

    /// The default, if it is missing.
    pub fn or(mut self, default: impl Into<Box<str>>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// If it is missing, the event does not have the attribute. Otherwise such a record is
    /// malformed.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The record's value; `None` if it may be left out.
    pub(super) fn value<'r>(
        &'r self,
        record: &'r Record<'_>,
        members: &Members<'r>,
    ) -> Result<Option<Picked<'r>>, String> {
        let found = self.found(record, members)?;
        let default = || self.default.as_deref().map(|text| Picked::Text(text.into()));
        match found.or_else(default) {
            None if !self.optional => Err(format!("{}, and there is no default", self.missing())),
            found => Ok(found),
        }
    }

    fn found<'r>(
        &'r self,
        record: &'r Record<'_>,
        members: &Members<'r>,
    ) -> Result<Option<Picked<'r>>, String> {
        let text = |text: &'r str| Some(Picked::Text(text.into())).filter(|_| !text.is_empty());
        let utf8 = |bytes: &'r [u8]| {
            str::from_utf8(bytes)
                .map(text)
                .map_err(|_| format!("{} is not UTF-8 text", self.name()))
        };
        match &self.part {
            RecordPart::Literal(literal) => Ok(text(literal)),
            RecordPart::Topic => Ok(record.topic.and_then(text)),
            RecordPart::Path => Ok(record.path.and_then(text)),
            RecordPart::Key => {
                let key = record.key.filter(|key| !key.is_empty());
                Ok(key.map(|key| Picked::Text(key_text(key))))
            }
            RecordPart::Header(name) => {
                let mut headers = record.headers.iter().rev();
                let header = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
                header.map_or(Ok(None), |(_, value)| utf8(value))
            }
            RecordPart::Time => {
                Ok(record.time.map(|time| Picked::Text(rfc3339::format_utc(time).into())))
            }
            RecordPart::Pointer(pointer) => match members.find(*pointer)? {
                Some(raw) => scalar(raw).map_err(|found| {
                    format!("at the JSON pointer `{pointer}` stands {found}, not a text, number or truth value")
                }),
                None => Ok(None),
            },
        }
    }

    fn name(&self) -> String {
        match &self.part {
            RecordPart::Literal(_) => "the literal".to_owned(),
            RecordPart::Topic => "the topic".to_owned(),
            RecordPart::Key => "the key".to_owned(),
            RecordPart::Header(name) => format!("the header `{name}`"),
            RecordPart::Path => "the path".to_owned(),
            RecordPart::Time => "the time".to_owned(),
            RecordPart::Pointer(pointer) => format!("the JSON pointer `{pointer}`"),
        }
    }

    fn missing(&self) -> String {
        match &self.part {
            RecordPart::Pointer(pointer) => {
                format!("nothing stands at the JSON pointer `{pointer}`")
            }
            _ => format!("{} is missing or empty", self.name()),
        }
    }
}

fn scalar(raw: &RawValue) -> Result<Option<Picked<'_>>, &'static str> {
    let text = raw.get();
    Ok(match text.as_bytes() {
        [b'{', ..] => return Err("an object"),
        [b'[', ..] => return Err("an array"),
        [b'n', ..] | [b'"', b'"'] => None,
        [b't', ..] => Some(Picked::Other(text, true.into())),
        [b'f', ..] => Some(Picked::Other(text, false.into())),
        [b'"', plain @ .., b'"'] if !plain.contains(&b'\\') => {
            Some(Picked::Text(text[1..text.len() - 1].into()))
        }
        [b'"', ..] => match serde_json::from_str::<String>(text) {
            Ok(text) => Some(Picked::Text(text.into())),
            Err(_) => return Err("a text with a lone surrogate"),
        },
        // CloudEvents knows whole numbers only; others stay as they are written.
        _ => {
            Some(Picked::Other(text, text.parse::<i64>().map_or_else(|_| text.into(), Into::into)))
        }
    })
}
