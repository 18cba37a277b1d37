//! What a store keeps, and what it shows.

use std::time::Duration;

use super::mask::Mask;

/// What a store keeps, and what it shows.
#[derive(Debug, Clone, Default)]
pub struct LetterStoreOptions {
    /// Letters that were given up longer ago are removed; `None`: none is for its age.
    pub age: Option<Duration>,
    /// The oldest letters are removed while all together have more bytes; `None`: whatever they
    /// have.
    pub size: Option<u64>,
    /// What is not shown of letters, unless it is asked for.
    pub mask: Mask,
    /// Takes the values of what is not shown out of errors as well, before they are stored. Of
    /// each event, those with four characters or more.
    pub mask_errors: bool,
}
