//! The traits of types that can be declared as an option, or as a mapping of options.

use crate::{
    at::At,
    record::{Record, Typed},
    schema::{Group, Opt},
};

/// A type that an option can be declared with. A special type, such as an address to listen on,
/// implements it on top of a single value, and is declared with [`Of::to`](crate::Of::to).
pub trait Take: Sized {
    /// Takes the value of an option. `None`: it was left out, or it was wrong, which has been
    /// reported or is reported here.
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self>;

    /// Takes the option of this name out of the mapping at this place.
    fn take_from(record: &mut Record, name: &str, at: &mut At<'_>) -> Option<Self> {
        Self::take(record.remove(name), &mut at.inside(name))
    }
}

/// A whole number, and the largest that its type holds.
pub trait Whole: Take {
    /// The largest.
    const MOST: u64;
}

/// A mapping with known keys, and the type that it is read into. Written by
/// [`options!`](crate::options).
pub trait Options: Take {
    /// Its table.
    const GROUP: &'static Group;

    /// Builds it from the checked record. `None`: a required part had a problem, which has been
    /// reported.
    fn build(record: Record, at: &mut At<'_>) -> Option<Self>;

    /// The keys whose values differ in `other`, in the order of the declaration; `(its kind)` for
    /// keys of which one is given.
    fn differs(&self, other: &Self) -> Vec<&'static str>;

    /// Takes over the values of all options that are declared [live](crate::Of::live).
    fn take_live(&mut self, wanted: &Self);
}

/// Keys of which one is given, and the type that it is read into. Written by
/// [`options!`](crate::options).
pub trait Kinds: Sized {
    /// One is required.
    const NEEDED: bool = true;

    /// Their table.
    fn kinds() -> &'static [Opt];

    /// Builds the one that was given. `None`: none was given, or it had a problem; that has been
    /// reported.
    fn pick(record: &mut Record, at: &mut At<'_>) -> Option<Self>;

    /// The key of this one.
    fn key(&self) -> &'static str;
}

/// A type whose values are words in the configuration. Written by [`words!`](crate::words).
pub trait Word: Copy {
    /// The words, in the order in which messages list them.
    const WORDS: &'static [&'static str];

    /// The value of a word.
    fn of(word: &str) -> Option<Self>;

    /// The word for it.
    fn word(self) -> &'static str;

    /// The values of the words, in their order.
    fn all() -> impl Iterator<Item = Self> {
        Self::WORDS.iter().filter_map(|word| Self::of(word))
    }
}
