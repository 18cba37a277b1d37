//! What events are ordered by: an attribute, an extension, or a member of the data.

use std::{
    collections::HashMap,
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock},
};

use parking_lot::Mutex;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{
    draft::is_attribute_name,
    error::shown,
    model::{Data, Event, ExtensionValue},
};
use crate::name::Name;

/// How an event's order key is found. Read from the configuration's `order_by`: the name of an attribute or
/// extension, or a JSON pointer (RFC 6901) into the data; `none` is [`OrderBy::none`].
///
/// A copy costs nothing. The text of each different one is kept for the life of the process, as that of a
/// [`Name`].
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
    by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Nothing,
    Subject,
    Id,
    Source,
    Type,
    Time,
    ContentType,
    Schema,
    Extension(Name),
    Pointer(&'static Pointer),
}

#[derive(Debug, PartialEq, Eq)]
struct Pointer {
    /// As it was written.
    written: Box<str>,
    /// With the escapes undone.
    tokens: Vec<Box<str>>,
}

/// Pointers by how they were written.
static POINTERS: LazyLock<Mutex<HashMap<Box<str>, &'static Pointer>>> =
    LazyLock::new(Mutex::default);

impl Pointer {
    /// The pointer that is written so, kept once.
    fn kept(written: &str) -> Result<&'static Self, OrderByError> {
        let mut kept = POINTERS.lock();
        if let Some(known) = kept.get(written) {
            return Ok(known);
        }
        let tokens = tokens(written)?;
        let pointer: &'static Self = Box::leak(Box::new(Self { written: written.into(), tokens }));
        kept.insert(written.into(), pointer);
        Ok(pointer)
    }
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
    /// The key is an array or an object.
    #[error("the order key `{at}` is {found}, not a string, number or boolean")]
    NotScalar {
        /// The pointer.
        at: String,
        /// What stands there.
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
        let by = match text {
            "none" => By::Nothing,
            "subject" => By::Subject,
            "id" => By::Id,
            "source" => By::Source,
            "type" => By::Type,
            "time" => By::Time,
            "datacontenttype" => By::ContentType,
            "dataschema" => By::Schema,
            "specversion" | "data" => return Err(OrderByError::NoKey(text.to_owned())),
            pointer if pointer.starts_with('/') => By::Pointer(Pointer::kept(pointer)?),
            name if is_attribute_name(name) => By::Extension(Name::new(name)),
            other => return Err(OrderByError::Name(shown(other))),
        };
        Ok(Self { by })
    }
}

/// As it is written in the configuration.
impl fmt::Display for OrderBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.by {
            By::Nothing => "none",
            By::Subject => "subject",
            By::Id => "id",
            By::Source => "source",
            By::Type => "type",
            By::Time => "time",
            By::ContentType => "datacontenttype",
            By::Schema => "dataschema",
            By::Extension(name) => name,
            By::Pointer(pointer) => &pointer.written,
        })
    }
}

fn tokens(pointer: &str) -> Result<Vec<Box<str>>, OrderByError> {
    pointer.split('/').skip(1).map(|token| unescape(token, pointer)).collect()
}

fn unescape(token: &str, pointer: &str) -> Result<Box<str>, OrderByError> {
    let bad = token.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if bad {
        return Err(OrderByError::Escape(pointer.to_owned()));
    }
    Ok(token.replace("~1", "/").replace("~0", "~").into())
}

impl OrderBy {
    /// By nothing: for a handler that keeps no order in a pool whose handlers do.
    pub const fn none() -> Self {
        Self { by: By::Nothing }
    }

    /// False for [`none`](Self::none).
    pub fn is_order(&self) -> bool {
        self.by != By::Nothing
    }

    /// The key of an event. None where the attribute or member is missing or null. `subject` is a clone of a
    /// reference; the others copy their text. Numbers are taken as they are written: `1` and `1.0` are two keys.
    /// Where a member is there twice, the last one counts.
    ///
    /// # Errors
    /// A pointer that leads to an array or an object, or into data that is not JSON.
    pub fn key(&self, event: &Event) -> Result<Option<Arc<str>>, KeyError> {
        Ok(match &self.by {
            By::Nothing => None,
            By::Subject => event.subject().cloned(),
            By::Id => Some(event.id().into()),
            By::Source => Some(event.source().into()),
            By::Type => Some(event.ty().into()),
            By::Time => event.time().map(Arc::from),
            By::ContentType => event.datacontenttype().map(Arc::from),
            By::Schema => event.dataschema().map(Arc::from),
            By::Extension(name) => event.extension(name).map(extension_key),
            By::Pointer(pointer) => return data_key(event, &pointer.written, &pointer.tokens),
        })
    }
}

fn extension_key(value: &ExtensionValue) -> Arc<str> {
    match value {
        ExtensionValue::Text(text) => Arc::from(&**text),
        ExtensionValue::Bool(value) => Arc::from(if *value { "true" } else { "false" }),
        ExtensionValue::Integer(number) => Arc::from(number.to_string()),
    }
}

fn data_key(event: &Event, at: &str, tokens: &[Box<str>]) -> Result<Option<Arc<str>>, KeyError> {
    let not_json = || KeyError::NotJson { at: at.to_owned() };
    let json = match event.data() {
        Data::None => return Ok(None),
        Data::Json(raw) => raw.get(),
        Data::Binary(bytes) if event.declares_json() => {
            std::str::from_utf8(bytes).map_err(|_| not_json())?
        }
        Data::Binary(_) => return Err(not_json()),
    };
    let mut parser = serde_json::Deserializer::from_str(json);
    let found = Walk { tokens }.deserialize(&mut parser).map_err(|_| not_json())?;
    found.map_or(Ok(None), |raw| scalar(raw, at))
}

fn scalar(raw: &RawValue, at: &str) -> Result<Option<Arc<str>>, KeyError> {
    let text = raw.get();
    let not_scalar = |found| Err(KeyError::NotScalar { at: at.to_owned(), found });
    match text.as_bytes().first() {
        Some(b'{') => not_scalar("an object"),
        Some(b'[') => not_scalar("an array"),
        Some(b'n') | None => Ok(None),
        Some(b'"') => string(text).map(Some).ok_or_else(|| KeyError::NotJson { at: at.to_owned() }),
        Some(_) => Ok(Some(text.into())),
    }
}

/// Without escapes, the string is what stands between its quotes.
fn string(quoted: &str) -> Option<Arc<str>> {
    if quoted.contains('\\') {
        return serde_json::from_str::<String>(quoted).ok().map(Arc::from);
    }
    quoted.get(1..quoted.len() - 1).map(Arc::from)
}

/// Follows the pointer through the text without building values; what lies beside the way is skipped.
struct Walk<'t> {
    tokens: &'t [Box<str>],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.tokens.split_first() {
            None => <&RawValue as serde::Deserialize>::deserialize(deserializer).map(Some),
            Some((token, rest)) => deserializer.deserialize_any(Step { token, rest }),
        }
    }
}

struct Step<'t> {
    token: &'t str,
    rest: &'t [Box<str>],
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(here) = map.next_key_seed(Matches(self.token))? {
            if here {
                found = map.next_value_seed(Walk { tokens: self.rest })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        if let Some(index) = index(self.token) {
            for _ in 0..index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(None);
                }
            }
            found = seq.next_element_seed(Walk { tokens: self.rest })?.flatten();
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// RFC 6901: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| plain)
}

/// Whether a member's name is the wanted one.
struct Matches<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for Matches<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Matches<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
