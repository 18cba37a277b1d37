//! Selects the items of an inspection.

use std::{collections::BTreeSet, sync::Arc};

/// Which items an inspection returns: the runtime's own figures, and the values that
/// workers have published.
///
/// ```
/// use greenroom::inspect::Items;
///
/// let wanted = Items::keys(["cached", "state"]);
/// assert!(wanted.wants("state") && !wanted.wants("other"));
/// assert!(!wanted.figures());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Items {
    /// Everything.
    #[default]
    All,
    /// Only the runtime's figures.
    Figures,
    /// Only the values published for these keys.
    Keys(BTreeSet<Arc<str>>),
}

impl Items {
    /// Only the values published for these keys.
    pub fn keys<K: Into<Arc<str>>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self::Keys(keys.into_iter().map(Into::into).collect())
    }

    /// True if the runtime's figures are wanted.
    pub fn figures(&self) -> bool {
        matches!(self, Self::All | Self::Figures)
    }

    /// True if the value that was published for this key is wanted.
    pub fn wants(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Figures => false,
            Self::Keys(keys) => keys.contains(key),
        }
    }

    /// True if any published value is wanted.
    pub(crate) fn any_value(&self) -> bool {
        !matches!(self, Self::Figures)
    }
}
