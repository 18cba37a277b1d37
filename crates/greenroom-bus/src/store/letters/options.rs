//! Limits and masks of a store.

use std::time::Duration;

use super::mask::Mask;

/// Limits and masks of a store.
#[derive(Debug, Clone, Default)]
pub struct LetterStoreOptions {
    /// Letters that were given up longer ago are removed; `None`: no age limit.
    pub age: Option<Duration>,
    /// The oldest letters are removed while all together have more bytes; `None`: whatever they
    /// have.
    pub size: Option<u64>,
    /// Values of letters that are shown only on request.
    pub mask: Mask,
    /// Also removes hidden values from errors before they are stored. For each event, values of
    /// four characters or more.
    pub mask_errors: bool,
}
