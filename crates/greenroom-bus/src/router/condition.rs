//! A required value of a field.

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde_json::value::RawValue;

use super::literal::{Literal, Number};

/// The required value of a field.
///
/// - A member of the data is compared by its JSON type: a number with a number, a string with a
///   string, `true` and `false` with these. An array or an object can only be
///   [present](Self::Present).
/// - Many transports carry attributes and extensions as text. They are parsed as the type that they
///   are compared with: `3` and `"3"` both equal the number 3.
/// - If the field is missing or `null`, only `Present(false)` holds; for a member of the data also
///   if the event has no data. Data that is not JSON meets no condition at all.
///
/// ```
/// use greenroom_bus::{event::Event, router::{Condition, Matcher}};
///
/// let large = Matcher::any()
///     .field("/total".parse()?, Condition::Greater(100.into()))
///     .field("/region".parse()?, Condition::In(vec!["eu".into(), "us".into()]))
///     .field("subject".parse()?, Condition::Present(true));
/// let order = Event::builder("1", "/shop", "order").subject("c-7");
/// let order = order.data_json(&serde_json::json!({ "total": 100.5, "region": "eu" })).build()?;
/// assert!(large.matches(&order));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Condition {
    /// It is this.
    Equal(Literal),
    /// It is one of these.
    In(Vec<Literal>),
    /// It is there, or it is not.
    Present(bool),
    /// It is less than this: a number, an earlier time, a text that comes before.
    Less(Literal),
    /// It is more than this.
    Greater(Literal),
    /// It is this or less.
    AtMost(Literal),
    /// It is this or more.
    AtLeast(Literal),
}

/// An event's value of a field.
pub(super) enum FieldValue<'e> {
    Missing,
    Attribute(Cow<'e, str>),
    Text(Cow<'e, str>),
    Number(Number),
    Bool(bool),
    /// An array or an object.
    Compound,
    /// The data that it would be in is not JSON.
    NotJson,
}

impl<'e> FieldValue<'e> {
    /// Of a member of the data.
    pub(super) fn from_raw(raw: Option<&'e RawValue>) -> Self {
        let text = raw.map_or("null", RawValue::get);
        match text.as_bytes() {
            [b'n', ..] => Self::Missing,
            [b't', ..] => Self::Bool(true),
            [b'f', ..] => Self::Bool(false),
            [b'"', plain @ .., b'"'] if !plain.contains(&b'\\') => {
                Self::Text(text[1..text.len() - 1].into())
            }
            [b'"', ..] => match serde_json::from_str::<String>(text) {
                Ok(text) => Self::Text(text.into()),
                // Half of a surrogate pair: it is there, and no text is equal to it.
                Err(_) => Self::Compound,
            },
            [b'{' | b'[', ..] => Self::Compound,
            _ => Number::parse(text).map_or(Self::Compound, Self::Number),
        }
    }

    fn is_present(&self) -> Option<bool> {
        match self {
            Self::NotJson => None,
            Self::Missing => Some(false),
            _ => Some(true),
        }
    }
}

impl Condition {
    /// Whether it holds for this value.
    pub fn admits(&self, literal: &Literal) -> bool {
        self.holds(true, |asked| asked.compare(literal))
    }

    pub(super) fn holds_for(&self, value: &FieldValue<'_>) -> bool {
        let Some(is_present) = value.is_present() else { return false };
        self.holds(is_present, |asked| match value {
            FieldValue::Attribute(text) => asked.compare_attribute(text),
            FieldValue::Text(text) => asked.compare_text(text),
            FieldValue::Number(number) => asked.compare_number(*number),
            FieldValue::Bool(truth) => asked.compare_bool(*truth),
            FieldValue::Missing | FieldValue::Compound | FieldValue::NotJson => None,
        })
    }

    /// `compare` says how a literal compares with the value.
    fn holds(&self, is_present: bool, compare: impl Fn(&Literal) -> Option<Ordering>) -> bool {
        let order = |asked: &Literal, allowed: fn(Ordering) -> bool| {
            !asked.is_bool() && compare(asked).is_some_and(allowed)
        };
        match self {
            Self::Equal(asked) => compare(asked) == Some(Ordering::Equal),
            Self::In(asked) => asked.iter().any(|asked| compare(asked) == Some(Ordering::Equal)),
            Self::Present(asked) => *asked == is_present,
            Self::Less(asked) => order(asked, Ordering::is_gt),
            Self::Greater(asked) => order(asked, Ordering::is_lt),
            Self::AtMost(asked) => order(asked, Ordering::is_ge),
            Self::AtLeast(asked) => order(asked, Ordering::is_le),
        }
    }
}

/// Its name in the configuration, without the value, which may be a secret.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal(_) => "equal",
            Self::In(_) => "in",
            Self::Present(_) => "present",
            Self::Less(_) => "less",
            Self::Greater(_) => "greater",
            Self::AtMost(_) => "at_most",
            Self::AtLeast(_) => "at_least",
        })
    }
}

#[cfg(test)]
mod tests;
