//! A value of an event that can be selected by name: an attribute, an extension, or a member of its
//! data.

use std::{borrow::Cow, fmt, str::FromStr};

use super::{
    draft::is_attribute_name,
    error::shown,
    model::{Event, ExtensionValue},
    pointer::{NoPointer, Pointer},
};
use crate::name::Name;

/// An attribute or extension by its name, or a member of the data by a JSON pointer (RFC 6901),
/// which begins with `/`.
///
/// A copy costs nothing. Each distinct text is kept for the life of the process, like that of a
/// [`Name`].
///
/// ```
/// use greenroom_bus::event::Field;
///
/// for written in ["subject", "tenant", "/order/total"] {
///     assert_eq!(written.parse::<Field>()?.to_string(), written);
/// }
/// assert!("Order-Total".parse::<Field>().is_err());
/// # Ok::<(), greenroom_bus::event::FieldError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub(super) place: FieldPlace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldPlace {
    Subject,
    Id,
    Source,
    Type,
    Time,
    ContentType,
    Schema,
    Extension(Name),
    Pointer(Pointer),
}

/// A text that names no field of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// Neither an attribute name nor a JSON pointer.
    #[error(
        "{0} is no attribute name (lower-case letters and digits); for a member of the data write a JSON pointer, such as `/customer/id`"
    )]
    Name(String),
    /// The same for every event, or not a single value.
    #[error(
        "`{0}` tells nothing of an event; name another attribute, or a member of the data by a JSON pointer, such as `/customer/id`"
    )]
    NoField(String),
    /// An escape in a JSON pointer that is neither `~0` nor `~1`.
    #[error("the JSON pointer `{0}` has a `~` without `0` or `1` after it")]
    Escape(String),
}

impl FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let place = match text {
            "subject" => FieldPlace::Subject,
            "id" => FieldPlace::Id,
            "source" => FieldPlace::Source,
            "type" => FieldPlace::Type,
            "time" => FieldPlace::Time,
            "datacontenttype" => FieldPlace::ContentType,
            "dataschema" => FieldPlace::Schema,
            "specversion" | "data" => return Err(FieldError::NoField(text.to_owned())),
            name if is_attribute_name(name) => FieldPlace::Extension(Name::new(name)),
            other => match Pointer::from_text(other) {
                Ok(pointer) => FieldPlace::Pointer(pointer),
                Err(NoPointer::Start) => return Err(FieldError::Name(shown(other))),
                Err(NoPointer::Escape) => return Err(FieldError::Escape(other.to_owned())),
            },
        };
        Ok(Self { place })
    }
}

impl FromStr for Pointer {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        Self::from_text(text).map_err(|why| match why {
            NoPointer::Start => FieldError::Name(shown(text)),
            NoPointer::Escape => FieldError::Escape(text.to_owned()),
        })
    }
}

/// As it is written in the configuration.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.place {
            FieldPlace::Subject => "subject",
            FieldPlace::Id => "id",
            FieldPlace::Source => "source",
            FieldPlace::Type => "type",
            FieldPlace::Time => "time",
            FieldPlace::ContentType => "datacontenttype",
            FieldPlace::Schema => "dataschema",
            FieldPlace::Extension(name) => name,
            FieldPlace::Pointer(pointer) => pointer.as_str(),
        })
    }
}

impl Field {
    /// The pointer, if it is a member of the data.
    pub(crate) fn pointer(&self) -> Option<Pointer> {
        match self.place {
            FieldPlace::Pointer(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// The text of the attribute or extension. `None` where the event has none, and for members of
    /// the data.
    pub(crate) fn attribute<'e>(&self, event: &'e Event) -> Option<Cow<'e, str>> {
        match &self.place {
            FieldPlace::Subject => event.subject().map(|subject| Cow::Borrowed(&**subject)),
            FieldPlace::Id => Some(event.id().into()),
            FieldPlace::Source => Some(event.source().into()),
            FieldPlace::Type => Some(event.ty().into()),
            FieldPlace::Time => event.time().map(Cow::Borrowed),
            FieldPlace::ContentType => event.datacontenttype().map(Cow::Borrowed),
            FieldPlace::Schema => event.dataschema().map(Cow::Borrowed),
            FieldPlace::Extension(name) => event.extension(name).map(text),
            FieldPlace::Pointer(_) => None,
        }
    }
}

pub(super) fn text(value: &ExtensionValue) -> Cow<'_, str> {
    match value {
        ExtensionValue::Text(text) => Cow::Borrowed(text),
        ExtensionValue::Bool(true) => Cow::Borrowed("true"),
        ExtensionValue::Bool(false) => Cow::Borrowed("false"),
        ExtensionValue::Integer(number) => Cow::Owned(number.to_string()),
    }
}
