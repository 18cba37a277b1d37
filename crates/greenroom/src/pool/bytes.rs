//! A bound on the bytes that wait in a pool (K10), in addition to the bound on messages.
//!
//! If messages differ much in size, a count is a poor bound on memory. A pool that knows the size
//! of its messages can bound the bytes of all messages that are not started. Each message carries a
//! claim on its bytes, which ends when the message is started or dropped; so no code has to give it
//! back explicitly.
//!
//! A message that is larger than the bound is accepted if nothing else waits. The price is an
//! allocation for each message.

use std::{
    future::{Future, poll_fn},
    ops::Deref,
    pin::pin,
    sync::Arc,
    task::Poll,
};

use greenroom_queue::{
    lock::user_code_follows,
    permits::{Closed, Permits, Refused},
};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The size of a message in bytes.
pub(crate) type SizeOf<M> = Box<dyn Fn(&M) -> usize + Send + Sync>;

pub(crate) struct ByteBound<M> {
    size_of: SizeOf<M>,
    room: ByteRoom,
}

/// The bytes that may wait, for any type of message.
pub(crate) struct ByteRoom {
    /// Bytes per permit: a claim is counted in 32 bits.
    unit: usize,
    /// All permits.
    units: u32,
    free: Arc<Semaphore>,
    /// Notified when the pool no longer accepts messages, or has no worker.
    closed: Notify,
}

/// The bytes of a message until it is started.
pub(crate) type Claim = OwnedSemaphorePermit;

impl<M> ByteBound<M> {
    /// `most` is at least 1.
    pub(crate) fn new(most: usize, size_of: SizeOf<M>) -> Self {
        let unit = most.div_ceil(u32::MAX as usize);
        let units = u32::try_from(most / unit).unwrap_or(u32::MAX);
        let free = Arc::new(Semaphore::new(units as usize));
        Self { size_of, room: ByteRoom { unit, units, free, closed: Notify::new() } }
    }

    /// The number of permits for a message. Runs user code.
    pub(crate) fn units_of(&self, message: &M) -> u32 {
        user_code_follows();
        self.room.units((self.size_of)(message))
    }
}

impl<M> Deref for ByteBound<M> {
    type Target = ByteRoom;

    fn deref(&self) -> &ByteRoom {
        &self.room
    }
}

impl ByteRoom {
    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.div_ceil(self.unit);
        u32::try_from(units).map_or(self.units, |units| units.min(self.units))
    }

    /// Room for this many units, if there is some now and no sender waits for it.
    pub(crate) fn try_claim(&self, units: u32) -> Result<Claim, Refused> {
        self.free.clone().try_acquire_many_owned(units).map_err(|_| Refused::Full)
    }

    /// Waits for room for this many units, first come, first served. Cancel-safe.
    pub(crate) async fn claim(&self, units: u32, permits: &Permits) -> Result<Claim, Closed> {
        let mut claimed = pin!(self.free.clone().acquire_many_owned(units));
        loop {
            let mut closed = pin!(self.closed.notified());
            closed.as_mut().enable();
            // Checked again after each call: the pool may have a worker again.
            if permits.is_closed() {
                return Err(Closed);
            }
            let ready = poll_fn(|task| match claimed.as_mut().poll(task) {
                Poll::Ready(claimed) => Poll::Ready(Some(claimed)),
                Poll::Pending => closed.as_mut().poll(task).map(|()| None),
            });
            if let Some(claimed) = ready.await {
                return claimed.map_err(|_| Closed);
            }
        }
    }

    /// No waiter gets room any more.
    pub(crate) fn close(&self) {
        self.closed.notify_waiters();
    }

    /// The number of bytes that wait.
    pub(crate) fn waiting(&self) -> u64 {
        (self.units as usize - self.free.available_permits()) as u64 * self.unit as u64
    }
}
