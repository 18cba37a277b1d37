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
    places: &'a Places,
    directory: &'a Path,
    problems: &'a mut Problems,
}

impl<'a> At<'a> {
    pub(crate) fn new(
        path: &str,
        places: &'a Places,
        directory: &'a Path,
        problems: &'a mut Problems,
    ) -> Self {
        Self { path: path.to_owned(), places, directory, problems }
    }

    /// The option of this name inside.
    pub fn inside(&mut self, name: &str) -> At<'_> {
        let (places, directory) = (self.places, self.directory);
        At { path: self.path_of(name), places, directory, problems: self.problems }
    }

    /// Its own name: the last of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
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
