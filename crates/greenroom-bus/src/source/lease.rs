//! Until when a source may count its partitions as its own without a word from its broker.
//!
//! A broker gives a partition to another consumer once it has not heard from its owner for a
//! session. A process that was paused for longer (`SIGSTOP`, a debugger) does not know that when it
//! resumes: it would start events that another consumer has handled. So the source reports, with
//! each answer of its broker, how long the session lasts, and an engine checks that before each
//! attempt. If the session is over, the event waits until the broker has answered, or the partition
//! is revoked.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use tokio::sync::Notify;

use crate::wait::wait_until;

/// The origin of all times.
static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A moment as a number, which costs no lock to change.
pub(crate) fn nanos(moment: Instant) -> u64 {
    u64::try_from(moment.saturating_duration_since(*BASE).as_nanos()).unwrap_or(u64::MAX)
}

/// How long the events of a source are its own, by the real clock: other processes' clocks keep
/// running while this one is paused.
#[derive(Debug)]
pub struct Lease {
    until: AtomicU64,
    /// Told when it is extended.
    extended: Notify,
}

impl Lease {
    /// A lease that lasts until then.
    pub fn new(until: Instant) -> Arc<Self> {
        Arc::new(Self { until: AtomicU64::new(nanos(until)), extended: Notify::new() })
    }

    /// It lasts until then, or as long as before if that is longer.
    pub fn extend(&self, until: Instant) {
        // Pairs with the load in `held`, after which a waiter is notified.
        if self.until.fetch_max(nanos(until), Ordering::SeqCst) <= nanos(Instant::now()) {
            self.extended.notify_waiters();
        }
    }

    /// False once it has run out.
    pub fn is_held(&self) -> bool {
        nanos(Instant::now()) < self.until()
    }

    pub(crate) fn until(&self) -> u64 {
        // Pairs with `extend`: a waiter sees the extension, or is notified.
        self.until.load(Ordering::SeqCst)
    }

    /// Waits until it is held.
    ///
    /// # Cancel safety
    /// A dropped future has done nothing.
    pub(crate) async fn held(&self) {
        wait_until(&self.extended, || self.is_held().then_some(())).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn d12_a_lease_that_has_run_out_is_waited_for_until_it_is_extended() {
        let now = Instant::now();
        let lease = Lease::new(now);
        assert!(!lease.is_held());
        let waits = lease.clone();
        let waits = tokio::spawn(async move { waits.held().await });
        tokio::task::yield_now().await;
        lease.extend(now + Duration::from_secs(600));
        waits.await.unwrap();
        lease.extend(now);
        assert!(lease.is_held(), "an answer that came late makes it no shorter");
    }
}
