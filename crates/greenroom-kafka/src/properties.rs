//! What librdkafka is told beside the options.

use std::{collections::BTreeMap, fmt};

use greenroom_config::{At, Take, Typed};

/// Properties of librdkafka, by their names.
///
/// Values are shown nowhere, in no log and no error: they may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Sets one, whatever it was before.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Leaves one to its default.
    pub fn unset(&mut self, name: &str) -> &mut Self {
        self.0.remove(name);
        self
    }

    /// These, but for those whose names begin so.
    #[cfg(feature = "client")]
    pub(crate) fn without(&self, prefixes: &[&str]) -> Self {
        let is_kept = |name: &String| !prefixes.iter().any(|prefix| name.starts_with(prefix));
        let kept = self.0.iter().filter(|(name, _)| is_kept(name));
        Self(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    #[cfg(feature = "client")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    #[cfg(feature = "client")]
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(from: I) -> Self {
        Self(from.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Take for Properties {
    fn take(found: Option<Typed>, at: &mut At<'_>) -> Option<Self> {
        Some(Vec::<(String, String)>::take(found, at)?.into_iter().collect())
    }
}
