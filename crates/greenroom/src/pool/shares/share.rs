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

macro_rules! from {
    ($($type:ty: $variant:ident),+) => {$(
        impl From<$type> for Share {
            fn from(name: $type) -> Self {
                Self(Name::$variant(name.into()))
            }
        }
    )+};
}

from!(u8: Number, u16: Number, u32: Number, u64: Number, &str: Text, String: Text, Arc<str>: Text);

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
