//! The types that options are declared with, built from checked values.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    path::PathBuf,
    time::Duration,
};

use crate::{
    at::At,
    literal::Literal,
    options::{Options, Take, Whole, Word},
    record::Typed,
    tree::Node,
    units::{DurationRange, Rate},
};

/// A count, or the mapping in place of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CountOr<T> {
    /// The count.
    Count(usize),
    /// The mapping.
    Or(T),
}

/// A value that `Debug` does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(pub T);

impl<T> Deref for Secret<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl From<&str> for Secret<String> {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<T> DerefMut for Secret<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl<T: Take> Take for Secret<T> {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        T::take(found, at).map(Self)
    }
}

impl<T: Take> Take for Option<T> {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        Some(found.and_then(|found| T::take(Some(found), at)))
    }
}

macro_rules! take {
    ($($type:ty: $variant:ident;)+) => {$(
        impl Take for $type {
            fn take(found: Option<Typed>, _at: &mut At<'_>) -> Option<Self> {
                match found? {
                    Typed::$variant(value) => Some(value),
                    _ => None,
                }
            }
        }
    )+};
}

take! {
    bool: Flag;
    f64: Number;
    String: Text;
    Vec<String>: Texts;
    Vec<(String, String)>: Variables;
    Literal: Literal;
    Vec<Literal>: Literals;
    Duration: Duration;
    DurationRange: Range;
    Rate: Rate;
    Node: Any;
}

macro_rules! whole {
    ($($type:ty)+) => {$(
        impl Whole for $type {
            const MOST: u64 = <$type>::MAX as u64;
        }

        impl Take for $type {
            fn take(found: Option<Typed>, _at: &mut At<'_>) -> Option<Self> {
                match found? {
                    Typed::Count(value) => Self::try_from(value).ok(),
                    _ => None,
                }
            }
        }
    )+};
}

whole!(u32 u64 usize);

impl Take for PathBuf {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        match String::take(found, at)?.as_str() {
            "-" => Some(Self::from("-")),
            path => Some(at.directory().join(path)),
        }
    }
}

impl<T: Word> Take for T {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        T::of(&String::take(found, at)?)
    }
}

impl<T: Options> Take for CountOr<T> {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        match found? {
            Typed::Count(count) => usize::try_from(count).ok().map(Self::Count),
            Typed::Group(record) => T::build(record, at).map(Self::Or),
            _ => None,
        }
    }
}

impl<T: Options> Take for Vec<T> {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        match found {
            // If it is required, that has been reported, and the rest can be checked.
            None => Some(Self::new()),
            Some(Typed::Named(records)) => {
                let build = |(name, record): (String, _)| T::build(record, &mut at.named(&name));
                Some(records.into_iter().filter_map(build).collect())
            }
            Some(Typed::List(records)) => {
                let build = |(place, record): (usize, Option<_>)| {
                    T::build(record?, &mut at.inside(&place.to_string()))
                };
                Some(records.into_iter().enumerate().filter_map(build).collect())
            }
            Some(_) => None,
        }
    }
}
