//! Why options cannot be used.

use thiserror::Error;

/// An option cannot be used; in words for an operator. Values of properties are not shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct Unusable {
    /// The property of librdkafka at fault, if any.
    pub property: Option<String>,
    /// The option at fault, if any: `topic`, `topics.0`.
    pub option: Option<String>,
    /// The problem, and the next step.
    pub why: String,
}

impl Unusable {
    pub(crate) fn property(name: &str, why: String) -> Self {
        Self { property: Some(name.to_owned()), option: None, why }
    }

    pub(crate) fn option(name: &str, why: &str) -> Self {
        Self { property: None, option: Some(name.to_owned()), why: why.to_owned() }
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self { property: None, option: None, why }
    }
}
