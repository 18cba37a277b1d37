//! The field by which events are ordered: an attribute, an extension, or a member of the data.

use std::{fmt, str::FromStr, sync::Arc};

use serde_json::value::RawValue;

use super::{
    field::{Field, FieldError, FieldPlace},
    model::Event,
    partition_key::PARTITION_KEY,
    payload::NotJson,
    pointer::Pointer,
};

/// How it is written that events have no order.
const NONE: &str = "none";

/// How an event's order key is found. Read from the configuration's `order_by`: the name of an
/// attribute or extension, or a JSON pointer (RFC 6901) into the data; `none` is [`OrderBy::none`].
///
/// A copy costs nothing. Each distinct text is kept for the life of the process, like that of a
/// [`Name`](crate::name::Name).
///
/// ```
/// use greenroom_bus::event::{Event, OrderBy};
///
/// let event = Event::builder("1", "/shop", "order").data_json(&[10, 20]).build()?;
/// let order_by: OrderBy = "/1".parse()?;
/// assert_eq!(order_by.key(&event)?.as_deref(), Some("20"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderBy {
    /// `None`: by nothing.
    by: Option<Field>,
}

/// An `order_by` that names nothing an event could be ordered by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OrderByError {
    /// Neither an attribute name nor a JSON pointer.
    #[error(
        "{0} is no attribute name (lower-case letters and digits); for a member of the data write a JSON pointer, such as `/customer/id`"
    )]
    Name(String),
    /// An attribute that is no key.
    #[error(
        "events cannot be ordered by `{0}`; name another attribute, or a member of the data by a JSON pointer, such as `/customer/id`"
    )]
    NoKey(String),
    /// An escape in a JSON pointer that is neither `~0` nor `~1`.
    #[error("the JSON pointer `{0}` has a `~` without `0` or `1` after it")]
    Escape(String),
}

/// An event whose order key cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is an array or an object, or half of a character.
    #[error("the order key `{at}` is {found}, not a string, number or boolean")]
    NotScalar {
        /// The pointer.
        at: String,
        /// The value found.
        found: &'static str,
    },
    /// The key is a member of the data, which is not JSON.
    #[error("the order key `{at}` is a member of the data, which is not JSON")]
    NotJson {
        /// The pointer.
        at: String,
    },
}

impl FromStr for OrderBy {
    type Err = OrderByError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == NONE {
            return Ok(Self::none());
        }
        let by = text.parse::<Field>().map_err(|error| match error {
            FieldError::Name(name) => OrderByError::Name(name),
            FieldError::NoField(name) => OrderByError::NoKey(name),
            FieldError::Escape(pointer) => OrderByError::Escape(pointer),
        })?;
        Ok(Self { by: Some(by) })
    }
}

/// As it is written in the configuration.
impl fmt::Display for OrderBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            None => f.write_str(NONE),
            Some(field) => field.fmt(f),
        }
    }
}

impl OrderBy {
    /// By nothing: for a handler that keeps no order in a pool whose handlers do.
    pub const fn none() -> Self {
        Self { by: None }
    }

    /// False for [`none`](Self::none).
    pub fn is_order(&self) -> bool {
        self.by.is_some()
    }

    /// The key of an event. `None` if the attribute or member is missing or null. `subject` is a
    /// clone of a reference; the others copy their text. Numbers are taken as they are written: `1`
    /// and `1.0` are two keys. If a member is duplicated, the last one counts.
    ///
    /// # Errors
    /// A pointer that leads to an array, an object or a text that is no Unicode, or into data that
    /// is not JSON.
    pub fn key(&self, event: &Event) -> Result<Option<Arc<str>>, KeyError> {
        let Some(field) = &self.by else { return Ok(None) };
        if let Some(pointer) = field.pointer() {
            return data_key(event, pointer);
        }
        Ok(match field.place {
            FieldPlace::Subject => event.subject().cloned(),
            _ => field.attribute(event).map(Arc::from),
        })
    }

    /// Like [`key`](Self::key), for systems in which keys are bytes: the original bytes of a
    /// [partition key](PARTITION_KEY), otherwise the text.
    ///
    /// # Errors
    /// Like [`key`](Self::key).
    pub fn key_bytes(&self, event: &Event) -> Result<Option<Arc<[u8]>>, KeyError> {
        match self.by.map(|field| field.place) {
            Some(FieldPlace::Extension(name)) if *name == *PARTITION_KEY => {
                Ok(event.partition_key().map(Arc::from))
            }
            _ => Ok(self.key(event)?.map(Arc::from)),
        }
    }
}

fn data_key(event: &Event, pointer: Pointer) -> Result<Option<Arc<str>>, KeyError> {
    let not_json = || KeyError::NotJson { at: pointer.to_string() };
    let json = match event.json() {
        Ok(Some(json)) => json,
        Ok(None) => return Ok(None),
        Err(NotJson) => return Err(not_json()),
    };
    let found = pointer.find(json).map_err(|_| not_json())?;
    found.map_or(Ok(None), |raw| scalar(raw, pointer.as_str()))
}

fn scalar(raw: &RawValue, at: &str) -> Result<Option<Arc<str>>, KeyError> {
    let text = raw.get();
    let not_scalar = |found| Err(KeyError::NotScalar { at: at.to_owned(), found });
    match text.as_bytes().first() {
        Some(b'{') => not_scalar("an object"),
        Some(b'[') => not_scalar("an array"),
        Some(b'n') | None => Ok(None),
        Some(b'"') => match string(text) {
            Some(text) => Ok(Some(text)),
            None => not_scalar("a text with a lone surrogate"),
        },
        Some(_) => Ok(Some(text.into())),
    }
}

/// Without escapes, the string is the text between its quotes.
fn string(quoted: &str) -> Option<Arc<str>> {
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).ok().map(Arc::from);
    }
    quoted.get(1..quoted.len() - 1).map(Arc::from)
}
