//! The tree, checked against the options: every value has its type and range, every default is
//! filled in.
//!
//! A value that is wrong is reported and left out, so that one run finds all problems.

use std::{collections::HashMap, time::Duration};

use crate::{
    literal::Literal,
    tree::Node,
    units::{DurationRange, Rate},
};

/// A mapping whose keys and values were checked.
#[derive(Debug, Default)]
pub struct Record {
    /// The values by the option's proper name. Missing: an optional value that was not given, or
    /// one that was wrong.
    pub(crate) fields: HashMap<&'static str, Typed>,
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
    /// A value to compare with.
    Literal(Literal),
    /// A list of these.
    Literals(Vec<Literal>),
    /// A duration.
    Duration(Duration),
    /// A range of durations.
    Range(DurationRange),
    /// A rate.
    Rate(Rate),
    /// Any value.
    Any(Node),
    /// A mapping with known keys.
    Group(Record),
    /// Names with such mappings.
    Named(Vec<(String, Record)>),
    /// A list of such mappings, each in its place; without the invalid ones.
    List(Vec<Option<Record>>),
}

impl Record {
    /// True when the option has a value.
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Takes the value of an option out.
    pub fn remove(&mut self, name: &str) -> Option<Typed> {
        self.fields.remove(name)
    }
}
