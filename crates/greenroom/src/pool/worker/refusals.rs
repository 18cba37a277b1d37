//! Adopted workers that do not take a message.

use crate::NotAccepted;

/// The workers that have refused a message, and the reason of the last one.
#[derive(Debug)]
pub(crate) struct Refusals {
    /// Their slots, and the numbers of their tasks there.
    pub(crate) by: Vec<(usize, u64)>,
    pub(crate) why: NotAccepted,
}
