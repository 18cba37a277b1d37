//! The name of a share.

use std::{fmt, sync::Arc};

/// The owner of a message: a tenant, an account, an endpoint. It is a number or a text, or none:
/// all messages without a share have one in common.
///
/// ```
/// use greenroom::shares::Share;
///
/// let named = [Share::from("acme"), Share::from(7_u32), Share::from(None::<String>)];
/// assert_eq!(named.map(|share| share.to_string()), ["acme", "7", ""]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Share(Name);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Name {
    Common,
    Number(u64),
    Text(Arc<str>),
}

impl Share {
    /// The share of all messages that have none of their own.
    pub const COMMON: Self = Self(Name::Common);
}

impl From<u64> for Share {
    fn from(number: u64) -> Self {
        Self(Name::Number(number))
    }
}

impl From<u32> for Share {
    fn from(number: u32) -> Self {
        u64::from(number).into()
    }
}

impl From<u16> for Share {
    fn from(number: u16) -> Self {
        u64::from(number).into()
    }
}

impl From<u8> for Share {
    fn from(number: u8) -> Self {
        u64::from(number).into()
    }
}

impl From<Arc<str>> for Share {
    fn from(text: Arc<str>) -> Self {
        Self(Name::Text(text))
    }
}

impl From<&str> for Share {
    fn from(text: &str) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl From<String> for Share {
    fn from(text: String) -> Self {
        Arc::<str>::from(text).into()
    }
}

impl<T: Into<Self>> From<Option<T>> for Share {
    fn from(share: Option<T>) -> Self {
        share.map_or(Self::COMMON, Into::into)
    }
}

/// Empty for the common share.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Name::Common => Ok(()),
            Name::Number(number) => number.fmt(f),
            Name::Text(text) => text.fmt(f),
        }
    }
}
