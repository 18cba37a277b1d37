//! Another actor or pool in a slot of a pool.

use crate::{AnyAddress, ExitReason, Stop, any_address::Erased, pool::admin::change::Outcomes};

/// Another actor or pool in a slot of a pool.
pub(crate) struct AdoptedMember {
    /// The address to which its slot hands on messages.
    pub(crate) other: AnyAddress,
    /// True if it ends with the pool.
    pub(crate) is_owned: bool,
    /// Resumes the handing on. Present while the slot rests, and holds the address.
    pub(crate) again: Option<Again>,
}

/// Resumes the handing on, and reports it.
pub(crate) type Again = Box<dyn FnOnce(Outcomes) + Send>;

impl AdoptedMember {
    /// Its pool has ended, for this reason. An owned member drains and stops, as when its last
    /// address is dropped. Call it under no lock.
    pub(crate) fn outlive(self, reason: &ExitReason) {
        let within = match reason {
            ExitReason::Killed => std::time::Duration::ZERO,
            _ => std::time::Duration::MAX,
        };
        if self.is_owned
            && let Some(other) = self.other.living()
        {
            Erased::stop_behind(other, Stop::within(within));
        }
    }
}
