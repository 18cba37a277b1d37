//! A place among the options: what is built there, and what is checked across it, reports its
//! problems there.

use std::path::Path;

use crate::{
    places::{Places, Written},
    problem::{Problem, Problems},
};

/// A mapping or value of the configuration, by its path (`handlers.prices.retry`).
#[derive(Debug)]
pub struct At<'a> {
    path: String,
    /// Where in the path its own name begins. A name may have dots in it.
    name: usize,
    places: &'a Places,
    directory: &'a Path,
    problems: &'a mut Problems,
}

impl<'a> At<'a> {
    /// The mapping at this path, which is its name alone where it has no dots.
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

    /// The value of this key inside, which is the name of what is there, whatever it consists of.
    pub(crate) fn named(&mut self, name: &str) -> At<'_> {
        let path = self.path_of(name);
        let start = path.len() - name.len();
        At { name: start, ..At::new(&path, self.places, self.directory, self.problems) }
    }

    /// Its own name: the last of the path.
    pub fn name(&self) -> &str {
        &self.path[self.name..]
    }

    /// Its path, from the top.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where relative paths start.
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

    /// Where the option of this name inside was written, or else this; with an empty name, this.
    pub fn written(&self, name: &str) -> Written {
        self.places.at(&self.path_of(name))
    }

    /// Reports an error at the option of this name inside; with an empty name, here.
    pub fn error(&mut self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        let place = self.written(name).place;
        self.problems.push(Problem::error(message, place).help(help));
    }

    /// Reports a warning at the option of this name inside, where it was written: it does nothing
    /// there.
    pub fn useless(&mut self, name: &str, message: impl Into<String>, help: impl Into<String>) {
        if self.has(name) {
            let place = self.written(name).place;
            self.problems.push(Problem::warning(message, place).help(help));
        }
    }

    /// Reports an error where one of two options is given without the other.
    pub fn both(&mut self, one: (&str, bool), other: (&str, bool), help: &str) -> Option<()> {
        let (given, missing) = match (one.1, other.1) {
            (true, false) => (one.0, other.0),
            (false, true) => (other.0, one.0),
            _ => return Some(()),
        };
        self.error(given, format!("`{given}` without `{missing}`"), help);
        None
    }

    /// Reports an error at `name` where `low` is above `high`; both with the names of their
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
