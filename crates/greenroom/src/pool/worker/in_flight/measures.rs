//! The measurements of the messages in hand.

use std::time::Duration;

use crate::pool::stats::Measurement;

/// The measurements of the messages in hand.
#[derive(Default)]
pub(super) struct Measures {
    /// Present if the times of the message in hand are measured.
    pub(super) measurement: Option<Measurement>,
    /// The measurements of a batch, whose key others in it may still need.
    pub(super) sample: Option<(u32, Duration)>,
    /// Counts measured messages with keys: one in `FED` of them feeds the sketch.
    pub(super) unfed: u32,
}
