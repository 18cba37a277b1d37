//! A place among the options. Building and checking the options there report their problems to it.

use std::path::Path;

use crate::{
    places::{Places, Written},
    problem::{Problem, Problems},
};

/// A mapping or value of the configuration, by its path (`handlers.prices.retry`).
#[derive(Debug)]
pub struct At<'a> {
    path: String,
    /// The offset in the path at which its own name begins. A name may contain dots.
    name: usize,
    places: &'a Places,
    directory: &'a Path,
    problems: &'a mut Problems,
}

impl<'a> At<'a> {
    /// The mapping at this path, which is just its name if that contains no dots.
    pub fn new(
        path: &str,
        places: &'a Places,
        directory: &'a Path,
        problems: &'a mut Problems,
    ) -> Self {
        let name = path.rfind('.').map_or(0, |dot| dot + 1);
        Self { path: path.to_owned(), name, places, directory, problems }
    }

    /// The option of this name inside.
    pub fn inside(&mut self, name: &str) -> At<'_> {
        let path = self.path_of(name);
        At::new(&path, self.places, self.directory, self.problems)
    }

    /// The value of this key inside. The key is the name of its place, even if it contains dots.
    pub(crate) fn named(&mut self, name: &str) -> At<'_> {
        let path = self.path_of(name);
        let start = path.len() - name.len();
        At { name: start, ..At::new(&path, self.places, self.directory, self.problems) }
    }

    /// Its own name: the last part of the path.
    pub fn name(&self) -> &str {
        &self.path[self.name..]
    }

    /// Its path, from the top.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The directory that relative paths start from.
    pub fn directory(&self) -> &'a Path {
        self.directory
    }

    /// True when the option of this name inside was written.
    pub fn has(&self, name: &str) -> bool {
        self.places.has(&self.path_of(name))
    }

    /// True when anything was written inside.
    pub fn has_any(&self) -> bool {
        self.places.has_below(&self.path)
    }

    /// The place of the option of this name, or else of this mapping; an empty name is this
    /// mapping.
    pub fn written(&self, name: &str) -> Written {
        self.places.at(&self.path_of(name))
    }

    /// Reports an error at the option of this name inside; with an empty name, at this mapping.
    pub fn error(&mut self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        let place = self.written(name).place;
        self.problems.push(Problem::error(message, place).help(help));
    }

    /// Reports a warning at the option of this name, if it was written, because it has no effect
    /// there.
    pub fn useless(&mut self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        if self.has(name) {
            let place = self.written(name).place;
            self.problems.push(Problem::warning(message, place).help(help));
        }
    }

    /// Reports an error if one of two options is given without the other.
    pub fn both(&mut self, one: (&str, bool), other: (&str, bool), help: &str) -> Option<()> {
        let (given, missing) = match (one.1, other.1) {
            (true, false) => (one.0, other.0),
            (false, true) => (other.0, one.0),
            _ => return Some(()),
        };
        self.error(given, format!("`{given}` without `{missing}`"), help);
        None
    }

    /// Reports an error at `name` if `low` is above `high`; both come with the names of their
    /// options.
    pub fn ordered(&mut self, name: &str, low: (&str, usize), high: (&str, usize)) -> Option<()> {
        if low.1 <= high.1 {
            return Some(());
        }
        let text =
            format!("`{}` is {} and `{}` is {}, which is less", low.0, low.1, high.0, high.1);
        self.error(name, text, format!("lower `{}`, or raise `{}`", low.0, high.0));
        None
    }

    fn path_of(&self, name: &str) -> String {
        match (self.path.as_str(), name) {
            (path, "") => path.to_owned(),
            ("", name) => name.to_owned(),
            (path, name) => format!("{path}.{name}"),
        }
    }
}
