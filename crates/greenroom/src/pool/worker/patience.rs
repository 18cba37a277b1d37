//! Whether a worker that has run dry lingers before it lies down.

use crate::Actor;
use crate::pool::settings::Settings;

/// Whether a worker that has had a single message lingers. It does if that was worth it before,
/// because its caller sends the next one as soon as it has the reply; otherwise now and then,
/// to find out.
pub(super) struct Patience {
    /// Its caller does its work; it need not be there before.
    in_place: bool,
    /// A caller hands an idle worker the next message; for one that lingered it would be queued.
    is_handed: bool,
    /// The last time something came.
    worth_it: bool,
    /// Times it has not lingered since.
    skipped: u8,
}

/// A worker that has lingered for nothing does so again after so many single messages.
const SKIPS: u8 = 16;

impl Patience {
    pub(super) fn new<A: Actor, K>(settings: &Settings<A, K>) -> Self {
        let (in_place, is_handed) =
            (settings.config.handling.calls_in_place, settings.derived.serves_at_hatch);
        Self { in_place, is_handed, worth_it: false, skipped: 0 }
    }

    /// After so many messages, of which the last was a call, or not.
    pub(super) fn lingers_after(&mut self, in_a_row: u32, by_call: bool) -> bool {
        if in_a_row == 1 && by_call && self.is_handed {
            return false;
        }
        if in_a_row != 1 || self.worth_it || self.in_place {
            return in_a_row > u32::from(self.in_place);
        }
        self.skipped = (self.skipped + 1) % SKIPS;
        self.skipped == 0
    }

    pub(super) fn found(&mut self, something: bool) {
        self.worth_it = something;
    }
}
