//! Plain values.

use std::{fmt, sync::Arc};

/// A value that a worker has published. It is plain, so that copying and dropping
/// it runs no user code.
///
/// ```
/// use greenroom::inspect::Value;
///
/// assert_eq!(Value::from(17_usize), Value::Int(17));
/// assert_eq!(Value::from("warm").to_string(), "warm");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any number.
    Float(f64),
    /// A text.
    Text(Arc<str>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

macro_rules! from {
    ($($variant:ident: $($type:ty),+;)+) => {$($(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )+)+};
}

from! {
    Bool: bool;
    Int: i8, i16, i32, i64, u8, u16, u32;
    Float: f32, f64;
    Text: &str, String, Arc<str>;
}

macro_rules! from_wide {
    ($($type:ty),+) => {$(
        impl From<$type> for Value {
            /// A number above the range of `i64` becomes the greatest `i64`.
            fn from(value: $type) -> Self {
                Self::Int(value.try_into().unwrap_or(i64::MAX))
            }
        }
    )+};
}

from_wide!(u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a16_usual_types_are_values() {
        let values = [
            Value::from(true),
            Value::from(-3),
            Value::from(u64::MAX),
            Value::from(0.5_f32),
            Value::from("text".to_owned()),
        ];
        let texts = values.map(|value| value.to_string());
        assert_eq!(texts, ["true", "-3", "9223372036854775807", "0.5", "text"]);
    }
}
