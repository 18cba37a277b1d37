//! The tree, checked against the options: every value has its type and range, every default is filled in.
//!
//! A value that is wrong is reported and left out, so that one run finds all problems.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::{
    tree::Place,
    units::{DurationRange, Rate},
};

/// A mapping whose keys and values were checked.
#[derive(Debug, Default)]
pub struct Record {
    /// The values by the option's proper name. Missing: an optional value that was not given, or one that was wrong.
    pub fields: HashMap<&'static str, Typed>,
}

/// A value with the type that its option asks for.
#[derive(Debug)]
pub enum Typed {
    /// `true` or `false`.
    Flag(bool),
    /// A count, or a size in bytes.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// A text, a path, a URL or a word.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// Names with texts.
    Variables(Vec<(String, String)>),
    /// A duration.
    Duration(Duration),
    /// A range of durations.
    Range(DurationRange),
    /// A rate.
    Rate(Rate),
    /// A mapping with known keys.
    Group(Record),
    /// Names with such mappings.
    Named(Vec<(String, Record)>),
    /// A list of such mappings.
    List(Vec<Record>),
}

macro_rules! accessor {
    ($name:ident, $variant:ident, $type:ty, $doc:literal) => {
        #[doc = $doc]
        pub fn $name(&mut self, name: &str) -> Option<$type> {
            match self.fields.remove_entry(name)? {
                (_, Typed::$variant(value)) => Some(value),
                // An option that takes this or that: the other accessor wants it.
                (name, other) => {
                    self.fields.insert(name, other);
                    None
                }
            }
        }
    };
}

impl Record {
    accessor!(flag, Flag, bool, "Takes a flag.");
    accessor!(count, Count, u64, "Takes a count or a size.");
    accessor!(number, Number, f64, "Takes a number.");
    accessor!(text, Text, String, "Takes a text, a path, a URL or a word.");
    accessor!(texts, Texts, Vec<String>, "Takes a list of texts.");
    accessor!(variables, Variables, Vec<(String, String)>, "Takes a mapping of texts.");
    accessor!(duration, Duration, Duration, "Takes a duration.");
    accessor!(range, Range, DurationRange, "Takes a range of durations.");
    accessor!(rate, Rate, Rate, "Takes a rate.");
    accessor!(group, Group, Record, "Takes a mapping with known keys.");
    accessor!(list, List, Vec<Record>, "Takes a list of mappings.");
    accessor!(named, Named, Vec<(String, Record)>, "Takes a mapping from names to mappings.");
}

/// Where each value was written, by its path (`handlers.prices.on`), for checks that look at several values.
#[derive(Debug, Default)]
pub struct Places {
    written: HashMap<String, Written>,
}

/// Where a value was written, and what it was taken from.
#[derive(Debug, Clone)]
pub struct Written {
    /// Where.
    pub place: Place,
    /// The reference that it came from: then it may be a secret.
    pub origin: Option<Arc<str>>,
}

impl Written {
    /// The value for a message: itself, or the reference that it came from.
    pub fn show(&self, value: &str) -> String {
        match &self.origin {
            Some(origin) => origin.to_string(),
            None => value.to_owned(),
        }
    }
}

impl Places {
    pub(crate) fn note(&mut self, path: &str, place: &Place, origin: Option<&Arc<str>>) {
        let written = Written { place: place.clone(), origin: origin.cloned() };
        self.written.insert(path.to_owned(), written);
    }

    /// True when something was written at this path.
    pub fn has(&self, path: &str) -> bool {
        self.written.contains_key(path)
    }

    /// True when anything was written below this path.
    pub fn has_inside(&self, path: &str) -> bool {
        self.names_in(path).next().is_some()
    }

    /// True when anything was written anywhere below this path, also under a key with dots in it.
    pub fn has_below(&self, path: &str) -> bool {
        let below = |key: &String| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.written.keys().any(below)
    }

    /// The names directly below this path.
    pub fn names_in<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        self.written.keys().filter_map(move |key| {
            let name = key.strip_prefix(path)?.strip_prefix('.')?;
            (!name.contains('.')).then_some(name)
        })
    }

    /// Where this path was written; where it was left out, the nearest mapping around it.
    pub fn at(&self, path: &str) -> Written {
        let mut path = path;
        loop {
            if let Some(written) = self.written.get(path) {
                return written.clone();
            }
            match path.rsplit_once('.') {
                Some((outer, _)) => path = outer,
                None => return Written { place: Place::whole_file(), origin: None },
            }
        }
    }
}
