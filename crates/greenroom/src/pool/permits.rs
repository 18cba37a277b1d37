//! The bound of a pool: a count of permits. Whatever lies in a queue holds one.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, TryAcquireError};

/// Capacity as permits. A permit is taken before a message is queued and given back when its handling starts.
/// Waiters are served first come, first served, and may be cancelled at any time (tokio's semaphore).
#[derive(Debug)]
pub(crate) struct Permits {
    free: Semaphore,
    /// Permits taken although none was free, by messages that went back into a queue after their handling had
    /// started. New messages wait until they are paid back, so the queue does not grow beyond the capacity by them.
    debt: AtomicUsize,
}

/// The pool does not accept messages any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

/// Why no permit was had at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Closed,
}

impl Permits {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { free: Semaphore::new(capacity), debt: AtomicUsize::new(0) }
    }

    /// Takes a permit, or says why not.
    pub(crate) fn try_take(&self) -> Result<(), Refused> {
        match self.free.try_acquire() {
            Ok(permit) => {
                permit.forget();
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => Err(Refused::Full),
            Err(TryAcquireError::Closed) => Err(Refused::Closed),
        }
    }

    /// Takes up to this many permits: as many as are free, and at least one, or says why not.
    pub(crate) fn try_take_up_to(&self, wanted: usize) -> Result<usize, Refused> {
        loop {
            let count = wanted.min(self.free.available_permits()).max(1);
            match self.free.try_acquire_many(u32::try_from(count).unwrap_or(u32::MAX)) {
                Ok(permits) => {
                    let taken = permits.num_permits();
                    permits.forget();
                    return Ok(taken);
                }
                Err(TryAcquireError::Closed) => return Err(Refused::Closed),
                // Others took some meanwhile; with one wanted, there is none.
                Err(TryAcquireError::NoPermits) if count > 1 => {}
                Err(TryAcquireError::NoPermits) => return Err(Refused::Full),
            }
        }
    }

    /// Waits for a permit. Cancel-safe: a cancelled wait has taken none.
    pub(crate) async fn take(&self) -> Result<(), Closed> {
        self.free.acquire().await.map(|permit| permit.forget()).map_err(|_| Closed)
    }

    /// Takes a permit for a message that goes back into a queue, going into debt where none is free.
    pub(crate) fn take_back(&self) {
        if self.try_take().is_err() {
            self.debt.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Gives one permit back, or pays a debt.
    pub(crate) fn give(&self) {
        let paid = self.debt.load(Ordering::Relaxed) > 0
            && self
                .debt
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |debt| debt.checked_sub(1))
                .is_ok();
        if !paid {
            self.free.add_permits(1);
        }
    }

    /// Refuses everybody who waits, and everybody who comes later.
    pub(crate) fn close(&self) {
        self.free.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_debt_is_paid_before_a_permit_becomes_free() {
        let permits = Permits::new(1);
        assert_eq!(permits.try_take(), Ok(()));
        permits.take_back();
        permits.give();
        assert_eq!(permits.try_take(), Err(Refused::Full));
        permits.give();
        assert_eq!(permits.try_take(), Ok(()));
    }

    #[tokio::test]
    async fn up_to_means_what_is_free_and_no_more() {
        let permits = Permits::new(3);
        assert_eq!(permits.try_take_up_to(2), Ok(2));
        assert_eq!(permits.try_take_up_to(2), Ok(1));
        assert_eq!(permits.try_take_up_to(2), Err(Refused::Full));
        permits.close();
        assert_eq!(permits.try_take_up_to(2), Err(Refused::Closed));
    }

    #[tokio::test]
    async fn close_refuses_waiters() {
        let permits = Permits::new(1);
        assert_eq!(permits.try_take(), Ok(()));
        let (waited, ()) = tokio::join!(permits.take(), async { permits.close() });
        assert_eq!(waited, Err(Closed));
        assert_eq!(permits.try_take(), Err(Refused::Closed));
    }
}
