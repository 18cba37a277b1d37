//! The leases of all inputs, as an attempt sees them: one number as long as none runs out.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use parking_lot::Mutex;

use crate::source::{Lease, lease::nanos};

/// Before this moment none runs out: there is none.
const NEVER: u64 = u64::MAX;

/// Those of the inputs that have one.
#[derive(Debug)]
pub(crate) struct Leases {
    /// Before this moment none runs out. They only grow longer, so it may be too early, and is
    /// looked up again then.
    first: AtomicU64,
    all: Mutex<Vec<Weak<Lease>>>,
}

impl Default for Leases {
    fn default() -> Self {
        Self { first: AtomicU64::new(NEVER), all: Mutex::default() }
    }
}

impl Leases {
    pub(crate) fn add(&self, lease: &Arc<Lease>) {
        let mut all = self.all.lock();
        all.push(Arc::downgrade(lease));
        self.first.store(0, Ordering::Relaxed);
    }

    /// True if none has expired. An engine without such inputs reads no clock.
    #[inline]
    pub(crate) fn all_hold(&self) -> bool {
        let first = self.first.load(Ordering::Relaxed);
        first == NEVER || self.hold_now(first)
    }

    fn hold_now(&self, first: u64) -> bool {
        let now = nanos(Instant::now());
        now < first || now < self.look()
    }

    fn look(&self) -> u64 {
        let mut all = self.all.lock();
        all.retain(|lease| lease.strong_count() > 0);
        let first = all.iter().filter_map(Weak::upgrade).map(|lease| lease.until()).min();
        let first = first.unwrap_or(NEVER);
        self.first.store(first, Ordering::Relaxed);
        first
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn d12_the_first_lease_that_runs_out_is_seen_until_it_is_extended_or_gone() {
        let (leases, now) = (Leases::default(), Instant::now());
        assert!(leases.all_hold());
        let long = Lease::new(now + Duration::from_secs(600));
        leases.add(&long);
        assert!(leases.all_hold());
        let short = Lease::new(now);
        leases.add(&short);
        assert!(!leases.all_hold());
        short.extend(now + Duration::from_secs(600));
        assert!(leases.all_hold());
        leases.add(&Lease::new(now));
        assert!(leases.all_hold(), "its input is gone");
    }
}
