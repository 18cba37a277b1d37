//! Where each value was written, for messages about it.

use std::{collections::HashMap, sync::Arc};

use crate::tree::Place;

/// Where each value was written, by its path (`handlers.prices.on`), for checks that look at
/// several values.
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
