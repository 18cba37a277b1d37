//! Names of pools and handlers: few, and copied with every event.

use std::{collections::HashSet, fmt, ops::Deref, sync::LazyLock};

use parking_lot::Mutex;

/// The name of a pool or a handler.
///
/// A copy costs nothing: a shared count for each event would be a cache line that every core
/// writes. The text of each different name is kept for the life of the process; names come from
/// configurations, so there are few.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(&'static str);

static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);

impl Name {
    /// The name with this text.
    pub fn new(text: &str) -> Self {
        let mut names = NAMES.lock();
        if let Some(known) = names.get(text) {
            return Self(known);
        }
        let kept: &'static str = String::leak(text.to_owned());
        names.insert(kept);
        Self(kept)
    }

    /// The text.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn the_same_text_is_kept_once() {
        let (first, again) = (Name::new("erp"), Name::from(&*"erp".to_owned()));
        assert_eq!(first, again);
        assert!(std::ptr::eq(first.as_str(), again.as_str()));
        assert_ne!(first, Name::new("default"));
        assert_eq!(format!("{first} {first:?}"), "erp \"erp\"");
    }
}
