//! The places of all values, for messages.

use std::{collections::HashMap, sync::Arc};

use crate::tree::Place;

/// The place of each value, by its path (`handlers.prices.on`), for checks across several values.
#[derive(Debug, Default)]
pub struct Places {
    written: HashMap<String, Written>,
}

/// The place of a value and its source.
#[derive(Debug, Clone)]
pub struct Written {
    /// Where.
    pub place: Place,
    /// The reference that it came from: the value may then be a secret.
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

    /// True when anything was written below this path at any depth, also under a key with dots.
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

    /// The place of this path; if it was left out, that of the nearest mapping around it.
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
