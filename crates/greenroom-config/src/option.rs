//! The words that declare options: the values of an option and its Rust type.

use std::{marker::PhantomData, ops::RangeInclusive, path::PathBuf, time::Duration};

use crate::{
    literal::Literal,
    options::{Options, Whole, Word},
    schema::{Group, Kind, Opt, Presence},
    take::{CountOr, Secret},
    tree::Node,
    units::{DurationRange, Rate},
};

/// An option whose values are a `T`: the values that it accepts, its default and its other names.
/// As its constructor returns it, it is required.
///
/// ```
/// use greenroom_config::{Of, count, duration};
///
/// const WORKERS: Of<usize> = count(1..=65_536).default("1").alias(&["pool_size"]).live();
/// const TIMEOUT: Of<Option<std::time::Duration>> = duration(1..=86_400_000).optional();
/// ```
#[derive(Debug)]
pub struct Of<T> {
    kind: Kind,
    presence: Presence,
    aliases: &'static [&'static str],
    live: bool,
    secret: bool,
    of: PhantomData<fn() -> T>,
}

impl<T> Of<T> {
    const fn new(kind: Kind) -> Self {
        let (presence, aliases) = (Presence::Required, &[]);
        Self { kind, presence, aliases, live: false, secret: false, of: PhantomData }
    }

    const fn with<U>(self, presence: Presence) -> Of<U> {
        let Self { kind, aliases, live, secret, .. } = self;
        Of { kind, presence, aliases, live, secret, of: PhantomData }
    }

    /// It may be left out; its documentation says which meaning that has.
    pub const fn optional(self) -> Of<Option<T>> {
        self.with(Presence::Optional)
    }

    /// If it is left out, this is as good as written. In YAML.
    pub const fn default(self, text: &'static str) -> Self {
        self.with(Presence::Default(text))
    }

    /// If it is left out, it inherits from another option, as its documentation says. The declaring
    /// type fills that in; if the other option is left out too, this is as good as written. In
    /// YAML.
    pub const fn inherits(self, text: &'static str) -> Self {
        self.with(Presence::Inherits(text))
    }

    /// Other names for it.
    pub const fn alias(self, names: &'static [&'static str]) -> Self {
        let mut this = self;
        this.aliases = names;
        this
    }

    /// A change to it takes effect while the program runs.
    pub const fn live(self) -> Self {
        let mut this = self;
        this.live = true;
        this
    }

    /// Nothing prints its value.
    pub const fn secret(self) -> Of<Secret<T>> {
        let presence = self.presence;
        let mut this = self.with(presence);
        this.secret = true;
        this
    }

    /// It is written the same way but read as another type, which implements [`Take`](crate::Take)
    /// for that.
    pub const fn to<U>(self) -> Of<U> {
        let presence = self.presence;
        self.with(presence)
    }

    /// Whether a change to it takes effect while the program runs.
    pub const fn is_live(&self) -> bool {
        self.live
    }

    /// Its entry in the table.
    pub const fn opt(self, name: &'static str, doc: &'static str) -> Opt {
        let Self { kind, presence, aliases, live, secret, .. } = self;
        Opt { name, aliases, kind, presence, live, secret, doc }
    }

    /// Its entry in the table if it is one of several keys of which exactly one is given.
    pub const fn kind(self, name: &'static str, doc: &'static str) -> Opt {
        let presence = Presence::Optional;
        let Self { kind, aliases, live, secret, .. } = self;
        Opt { name, aliases, kind, presence, live, secret, doc }
    }
}

impl<T> Of<Vec<T>> {
    /// It may be left out, which is the same as an empty one.
    pub const fn or_empty(self) -> Self {
        self.with(Presence::Optional)
    }
}

/// `true` or `false`.
pub const fn flag() -> Of<bool> {
    Of::new(Kind::Flag)
}

/// A whole number within the bounds.
///
/// # Panics
/// At compile time, if the type cannot hold the largest.
pub const fn count<T: Whole>(range: RangeInclusive<u64>) -> Of<T> {
    let (min, max) = bounds::<T>(&range);
    Of::new(Kind::Count { min, max })
}

/// A number within the bounds.
pub const fn number(range: RangeInclusive<f64>) -> Of<f64> {
    Of::new(Kind::Number { min: *range.start(), max: *range.end() })
}

/// Bytes within the bounds: `64KiB`, `1MiB`, or a number.
///
/// # Panics
/// At compile time, if the type cannot hold the largest.
pub const fn size<T: Whole>(range: RangeInclusive<u64>) -> Of<T> {
    let (min, max) = bounds::<T>(&range);
    Of::new(Kind::Size { min, max })
}

/// A duration, with its bounds in milliseconds: `200ms`, `5s`, `1m`, `1h`.
pub const fn duration(range: RangeInclusive<u64>) -> Of<Duration> {
    Of::new(Kind::Duration { min_ms: *range.start(), max_ms: *range.end() })
}

/// Two durations with `..` between them, the shorter first.
pub const fn durations() -> Of<DurationRange> {
    Of::new(Kind::DurationRange)
}

/// Any value, as it was written: data that the program passes on.
pub const fn any() -> Of<Node> {
    Of::new(Kind::Any)
}

/// A number per second, minute or hour: `20/s`, `100/min`.
pub const fn rate() -> Of<Rate> {
    Of::new(Kind::Rate)
}

/// Text, not empty.
pub const fn text() -> Of<String> {
    Of::new(Kind::Text)
}

/// The path of a file or a directory. A relative one starts at the directory of the configuration
/// file; `-` stays.
pub const fn path() -> Of<PathBuf> {
    Of::new(Kind::Path)
}

/// An `http` or `https` URL. The declaring type checks that it is one.
pub const fn url() -> Of<String> {
    Of::new(Kind::Url)
}

/// One of the words of a type.
pub const fn word<T: Word>() -> Of<T> {
    Of::new(Kind::Choice(T::WORDS))
}

/// One text or a list of texts, at least one.
pub const fn texts() -> Of<Vec<String>> {
    Of::new(Kind::Texts)
}

/// A list of texts, at least one: a program and its arguments.
pub const fn command() -> Of<Vec<String>> {
    Of::new(Kind::Command)
}

/// A mapping from names to texts.
pub const fn variables() -> Of<Vec<(String, String)>> {
    Of::new(Kind::Variables)
}

/// A text, a number, `true` or `false` to compare with. The spelling decides: `"5"` is a text and
/// `5` a number.
pub const fn literal() -> Of<Literal> {
    Of::new(Kind::Literal)
}

/// A list of these, at least one.
pub const fn literals() -> Of<Vec<Literal>> {
    Of::new(Kind::Literals)
}

/// A mapping with known keys.
pub const fn group<T: Options>() -> Of<T> {
    Of::new(Kind::Group(T::GROUP))
}

/// A kind without settings, of which only the name is written: `pass: {}`.
pub const fn bare(nothing: &'static Group) -> Of<()> {
    Of::new(Kind::Group(nothing))
}

/// A whole number within the bounds, or a mapping with known keys.
///
/// # Panics
/// At compile time, if `usize` cannot hold the largest.
pub const fn count_or<T: Options>(range: RangeInclusive<u64>) -> Of<CountOr<T>> {
    let (min, max) = bounds::<usize>(&range);
    Of::new(Kind::CountOr { min, max, group: T::GROUP })
}

/// A mapping from the user's names to mappings with known keys. One with a problem is left out.
pub const fn named<T: Options>() -> Of<Vec<T>> {
    Of::new(Kind::Named(T::GROUP))
}

/// A mapping from keys of any form (a JSON pointer, an attribute) to mappings with known keys. One
/// with a problem is left out.
pub const fn each<T: Options>() -> Of<Vec<T>> {
    Of::new(Kind::Each(T::GROUP))
}

/// A list of mappings with known keys, at least one. One with a problem is left out.
pub const fn list<T: Options>() -> Of<Vec<T>> {
    Of::new(Kind::List(T::GROUP))
}

/// The ends of a range.
const fn bounds<T: Whole>(range: &RangeInclusive<u64>) -> (u64, u64) {
    assert!(*range.end() <= T::MOST, "the type does not hold the largest");
    (*range.start(), *range.end())
}
