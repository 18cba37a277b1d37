//! An event under construction, from a parser or a builder: the one place for all validity checks.

mod bytes;

use std::{borrow::Cow, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::value::RawValue;

use super::{
    error::{EventError, named, shown},
    model::{Attributes, Data, Event, EventInner, ExtensionValue},
    rfc3339,
};

/// The attributes that CloudEvents itself names; each has a bit in [`Draft::seen`].
const NAMES: [&str; 8] =
    ["id", "source", "type", "time", "datacontenttype", "dataschema", "subject", "specversion"];
const REQUIRED: usize = 3;
const TIME: usize = 3;
const SUBJECT: usize = 6;
const SPECVERSION: usize = 7;
const DATA_BIT: u16 = 1 << 8;
const BASE64_BIT: u16 = 1 << 9;

/// Parts of an event that are not checked yet. The first problem met is kept and
/// reported by [`Draft::finish`].
#[derive(Default)]
pub(super) struct Draft<'a> {
    texts: [Option<Cow<'a, str>>; 8],
    seen: u16,
    extensions: Vec<(Box<str>, ExtensionValue)>,
    data: Option<Data>,
    problem: Option<EventError>,
}

/// A value as it was found, before it is known to be allowed.
pub(super) enum FoundValue<'a> {
    Text(Cow<'a, str>),
    Bool(bool),
    Integer(i64),
    Null,
    /// A rule that every attribute has to meet, in words.
    Other(String),
}

impl FoundValue<'_> {
    fn describe(&self) -> String {
        match self {
            Self::Text(text) => shown(text),
            Self::Bool(value) => value.to_string(),
            Self::Integer(value) => value.to_string(),
            Self::Null => "null".to_owned(),
            Self::Other(words) => words.clone(),
        }
    }
}

fn known(name: &str) -> Option<usize> {
    NAMES.iter().position(|known| *known == name)
}

impl<'a> Draft<'a> {
    pub(super) fn fail(&mut self, problem: EventError) {
        self.problem.get_or_insert(problem);
    }

    fn mark(&mut self, bit: u16, name: &str) {
        if self.seen & bit != 0 {
            self.fail(EventError::Duplicate { name: named(name) });
        }
        self.seen |= bit;
    }

    /// Any member but the data. A null is a member that is not there.
    pub(super) fn set(&mut self, name: &str, value: FoundValue<'a>) {
        match known(name) {
            Some(index) => {
                self.mark(1 << index, name);
                self.set_known(index, value);
            }
            None => self.set_extension(name, value),
        }
    }

    fn set_known(&mut self, index: usize, value: FoundValue<'a>) {
        let name = NAMES[index];
        match value {
            FoundValue::Null => {}
            FoundValue::Text(text) if !text.is_empty() => self.texts[index] = Some(text),
            wrong => self.wrong(name, "a non-empty string", &wrong),
        }
    }

    pub(super) fn set_extension(&mut self, name: &str, value: FoundValue<'_>) {
        if !is_attribute_name(name) || known(name).is_some() || name == "data" {
            return self.fail(EventError::Name { name: shown(name) });
        }
        let value = match value {
            FoundValue::Null => return,
            FoundValue::Text(text) => ExtensionValue::Text(text.into()),
            FoundValue::Bool(value) => ExtensionValue::Bool(value),
            FoundValue::Integer(value) => ExtensionValue::Integer(value),
            FoundValue::Other(_) => {
                return self.wrong(name, "a string, a boolean or a whole number", &value);
            }
        };
        self.extensions.push((name.into(), value));
    }

    fn wrong(&mut self, name: &str, expected: &'static str, found: &FoundValue<'_>) {
        self.fail(EventError::Attribute { name: named(name), expected, found: found.describe() });
    }

    /// JSON data, brought onto one line: a line feed between its tokens would break a
    /// file of one event per line.
    pub(super) fn set_json(&mut self, raw: Cow<'_, RawValue>) {
        self.mark(DATA_BIT, "data");
        self.set_data(Data::Json(one_line(raw)));
    }

    pub(super) fn set_base64(&mut self, value: FoundValue<'_>) {
        self.mark(BASE64_BIT, "data_base64");
        let decoded = match &value {
            FoundValue::Null => return,
            FoundValue::Text(text) => BASE64_STANDARD.decode(text.as_bytes()).ok(),
            _ => None,
        };
        match decoded {
            Some(bytes) => self.set_data(Data::Binary(bytes.into())),
            None => self.wrong("data_base64", "a string of standard base64", &value),
        }
    }

    pub(super) fn set_data(&mut self, data: Data) {
        if self.data.is_some() {
            self.fail(EventError::TwoData);
        }
        self.data = Some(data);
    }

    /// The event, if nothing is wrong with it.
    pub(super) fn finish(mut self) -> Result<Event, EventError> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.check()?;
        let attributes = Attributes::new(std::array::from_fn(|index| self.text(index)));
        Ok(Event::new(EventInner {
            attributes,
            subject: self.texts[SUBJECT].as_deref().map(Arc::from),
            extensions: self.extensions,
            data: self.data.unwrap_or(Data::None),
        }))
    }

    fn text(&self, index: usize) -> &str {
        self.texts[index].as_deref().unwrap_or_default()
    }

    fn check(&self) -> Result<(), EventError> {
        if self.texts[SPECVERSION].is_none() {
            return Err(EventError::Missing { name: "specversion" });
        }
        self.check_form(SPECVERSION, "\"1.0\"", |version| version == "1.0")?;
        if let Some(index) = (0..REQUIRED).find(|index| self.texts[*index].is_none()) {
            return Err(EventError::Missing { name: NAMES[index] });
        }
        self.check_form(TIME, "an RFC 3339 time such as 2026-01-31T12:00:00Z", rfc3339::is_time)?;
        self.check_extension_names()
    }

    fn check_form(
        &self,
        index: usize,
        expected: &'static str,
        holds: impl Fn(&str) -> bool,
    ) -> Result<(), EventError> {
        match self.texts[index].as_deref() {
            Some(text) if !holds(text) => Err(EventError::Attribute {
                name: NAMES[index].to_owned(),
                expected,
                found: shown(text),
            }),
            _ => Ok(()),
        }
    }

    /// Sorted rather than compared pair by pair: an event may come with any number of extensions.
    fn check_extension_names(&self) -> Result<(), EventError> {
        if self.extensions.len() < 2 {
            return Ok(());
        }
        let mut names: Vec<&str> = self.extensions.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(EventError::Duplicate { name: named(pair[0]) }),
            None => Ok(()),
        }
    }
}

/// CloudEvents 1.0, "Naming conventions".
pub(super) fn is_attribute_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// A line feed within JSON can only stand between tokens (within strings it is escaped),
/// so a space means the same.
fn one_line(raw: Cow<'_, RawValue>) -> Box<RawValue> {
    if !raw.get().as_bytes().contains(&b'\n') {
        return raw.into_owned();
    }
    RawValue::from_string(raw.get().replace('\n', " ")).unwrap_or_else(|_| raw.into_owned())
}
