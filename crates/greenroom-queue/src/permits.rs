//! The bound of a pool: a count of permits. Every message that is accepted and not yet started
//! holds one.
//!
//! Permits are never given back one by one. Each worker counts the messages that it starts, in a
//! counter that only it writes. A sender that knows of no free permit adds these counters up. So in
//! the common case a sender pays one step on `reserved` for a block of messages, and a worker pays
//! nothing.
//!
//! ```text
//! reserved ≤ limit = capacity + started (by all workers) + returned
//! ```
//!
//! * A sender takes permits in blocks, which stay in its shard as credit. Before a sender is
//!   refused because the pool is full, unused credit is taken back ([`Queues::reclaim`]).
//! * `reserved` rises when permits are taken, and when a message returns to a queue for a retry.
//!   Only the latter may raise it above the limit; the next starts pay off that debt.
//! * `limit` is the last computed sum; it is never too large, only too small.
//!
//! # Waiting for room
//! Waiters queue on a tokio semaphore that holds no permits of its own: it provides the order
//! (first come, first served) and the cancellation. A worker that frees permits while a sender
//! waits ([`is_starved`](Permits::is_starved)) calls [`grant`](Permits::grant), which reserves
//! permits for the waiters and hands them over through the semaphore. While a sender waits, no
//! other sender takes a permit.
//!
//! The race is between a waiter that finds no permit and a worker that starts a message and sees no
//! waiter. The waiter raises `starved`, fences, and reads the counters again; a worker raises its
//! counter, fences before it parks, searches or stops counting as awake, and reads `starved`. One
//! of the two sees the other. An uncounted worker suspends without a fence: such workers exist only
//! in pools with a watchdog.
//!
//! # In blocks
//! If every handler waits, a worker suspends after each message. Serving a waiter each time would
//! cost more than the message: the counters are added up and a sender is woken, all for one
//! message. So a worker that suspends serves waiters only if a block has become free since
//! ([`note_taken`](Permits::note_taken), [`take_block`](Permits::take_block)). While less is free,
//! they are served by the watchdog, or by a worker that rests or ends its turn.
//!
//! In such a pool, senders that can wait do so in blocks as well: adding up all counters costs more
//! than the few permits are worth that became free while the last few were used. Once a pool was
//! full, and until it is found half empty, such a sender waits until a block is free, or until the
//! watchdog looks ([`try_take_block`](Permits::try_take_block)).

use std::sync::Arc;

use crate::{
    discard::wake_tasks,
    sync::{AtomicBool, AtomicU64, Mutex, Ordering, Semaphore, fence},
};

use super::places::SHARDS;

/// The queues that the permits bound, as the permits need to know them.
pub trait Queues {
    /// The number of messages started so far, by all workers.
    fn started(&self) -> u64;
    /// Takes the unused permits out of the shards. Called under the lock of the line, so by one
    /// caller at a time.
    fn reclaim(&self) -> u64;
}

/// The bound on messages that are accepted and not started.
pub struct Permits {
    count: Count,
    /// A waiter has not been handed a permit. Written under the lock of `line`.
    starved: AtomicBool,
    closed: AtomicBool,
    /// The number of permits that came back without a message having been started.
    returned: AtomicU64,
    /// The number of permits in a block, minus one: a power of two minus one.
    block: AtomicU64,
    /// A block has become free while a sender waited.
    has_block: AtomicBool,
    /// The pool was full, and has not been found half empty since. A hint.
    was_full: AtomicBool,
    line: Mutex<WaitLine>,
}

/// The length of a block minus one. A block is a part of the capacity: small enough that no worker
/// runs out of messages while a block becomes free, and large enough to serve a sender for a while.
fn block_of(capacity: u64) -> u64 {
    let most = (capacity / 16).clamp(1, 4096);
    (1 << most.ilog2()) - 1
}

/// The fields that senders write, on a cache line of their own.
#[repr(align(128))]
struct Count {
    reserved: AtomicU64,
    limit: AtomicU64,
}

struct WaitLine {
    capacity: u64,
    /// The room of the waiters. A pool that was closed and opened again has a new one.
    room: Arc<Semaphore>,
    /// Waiters that have not left yet.
    waiting: usize,
    /// Permits handed over to the semaphore and not yet taken out of it.
    granted: usize,
}

/// The pool no longer accepts messages.
#[derive(Debug, PartialEq, Eq)]
pub struct Closed;

/// The reason why there was no permit at once.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// Others should run first; there may be room after that.
    NotNow,
    /// No permit is left.
    Full,
    /// The pool no longer accepts messages.
    Closed,
    /// The pool is full, and its overflow policy lets no sender wait.
    Rejected,
    /// The pool is full, and its overflow policy has dropped the message.
    Dropped,
    /// The dispatch policy refused the message.
    ByPolicy,
    /// The key has as many waiting messages as it may have.
    KeyFull,
    /// Like `KeyFull`, but the overflow policy lets no sender wait.
    KeyRejected,
    /// The key is parked, and as many messages wait behind it as may.
    Parked,
    /// The message has no key and must have one.
    KeyRequired,
}

impl Permits {
    /// This many permits, all free.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity as u64;
        Self {
            count: Count { reserved: AtomicU64::new(0), limit: AtomicU64::new(capacity) },
            starved: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            returned: AtomicU64::new(0),
            block: AtomicU64::new(block_of(capacity)),
            has_block: AtomicBool::new(false),
            was_full: AtomicBool::new(false),
            line: Mutex::new(WaitLine {
                capacity,
                room: Arc::new(Semaphore::new(0)),
                waiting: 0,
                granted: 0,
            }),
        }
    }

    /// True while a sender waits for a permit.
    #[inline]
    pub fn is_starved(&self) -> bool {
        self.starved.load(Ordering::Relaxed)
    }

    /// Notes that this many messages have been taken from this shard in total. One in each block of
    /// them reports that a block has become free. Because each shard starts counting at another
    /// number, that happens about once a block over all shards, however the messages are spread.
    #[inline]
    pub fn note_taken(&self, shard: u64, taken: u64) {
        let block = self.block.load(Ordering::Relaxed);
        let of_shard = (block + 1) * shard / SHARDS as u64;
        if taken & block == of_shard && self.is_starved() {
            self.has_block.store(true, Ordering::Relaxed);
        }
    }

    /// True once for each block that has become free.
    #[inline]
    pub fn take_block(&self) -> bool {
        self.has_block.load(Ordering::Relaxed) && self.has_block.swap(false, Ordering::Relaxed)
    }

    /// Takes up to `wanted` permits that are known to be free, perhaps none. Takes no lock and
    /// reads only two counters.
    #[inline]
    pub fn take_known(&self, wanted: u64) -> u64 {
        if self.is_starved() {
            return 0;
        }
        self.reserve(wanted)
    }

    #[inline]
    fn reserve(&self, wanted: u64) -> u64 {
        let mut reserved = self.count.reserved.load(Ordering::Relaxed);
        loop {
            let free = self.count.limit.load(Ordering::Relaxed).saturating_sub(reserved);
            let taken = wanted.min(free);
            if taken == 0 {
                return 0;
            }
            match self.count.reserved.compare_exchange_weak(
                reserved,
                reserved + taken,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return taken,
                Err(now) => reserved = now,
            }
        }
    }

    /// Takes up to `wanted` permits, at least one, or returns the reason why there is none.
    pub fn try_take(&self, wanted: u64, queues: &dyn Queues) -> Result<u64, Refused> {
        // Pairs with the store in `refuse_later`. A sender that misses it is refused by its shard,
        // under that lock.
        if self.closed.load(Ordering::SeqCst) {
            return Err(Refused::Closed);
        }
        let taken = self.take_known(wanted);
        if taken > 0 {
            return Ok(taken);
        }
        let line = self.line.lock();
        if line.waiting > line.granted {
            return Err(Refused::Full);
        }
        match self.search(&line, wanted, queues) {
            0 => Err(Refused::Full),
            taken => Ok(taken),
        }
    }

    /// Like `try_take`, for a sender that would wait by [`take`](Self::take) in blocks.
    pub fn try_take_block(&self, wanted: u64, queues: &dyn Queues) -> Result<u64, Refused> {
        if self.was_full.load(Ordering::Relaxed) && !self.is_closed() {
            return Err(Refused::Full);
        }
        self.try_take(wanted, queues)
    }

    /// Like `try_take`, but takes fewer than `wanted` only if there are no more.
    pub fn try_take_most(&self, wanted: u64, queues: &dyn Queues) -> Result<u64, Refused> {
        let mut taken = self.try_take(wanted, queues)?;
        while taken < wanted
            && let Ok(more) = self.try_take(wanted - taken, queues)
        {
            taken += more;
        }
        Ok(taken)
    }

    /// Adds up the messages started since, and takes unused credit back, until there is a permit.
    fn search(&self, line: &WaitLine, wanted: u64, queues: &dyn Queues) -> u64 {
        self.add_up(line, queues);
        let taken = self.reserve(wanted);
        if taken > 0 {
            return taken;
        }
        let unused = queues.reclaim();
        self.returned.fetch_add(unused, Ordering::Relaxed);
        self.add_up(line, queues);
        let taken = self.reserve(wanted);
        if taken == 0 {
            self.was_full.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// The number of free permits, without unused ones in the shards.
    fn count_free(&self, line: &WaitLine, queues: &dyn Queues) -> u64 {
        self.add_up(line, queues);
        let (limit, reserved) = (&self.count.limit, &self.count.reserved);
        let free = limit.load(Ordering::Relaxed).saturating_sub(reserved.load(Ordering::Relaxed));
        if free >= line.capacity / 2 {
            self.was_full.store(false, Ordering::Relaxed);
        }
        free
    }

    /// Called under the lock of the line, so that the limit follows the current capacity.
    fn add_up(&self, line: &WaitLine, queues: &dyn Queues) {
        let returned = self.returned.load(Ordering::Relaxed);
        self.count.limit.store(line.capacity + queues.started() + returned, Ordering::Relaxed);
    }

    /// Waits for a permit, and is in line from the call on. Cancel-safe: a cancelled wait has taken
    /// none. `in_blocks` is true if the watchdog serves waiters while less than a block is free;
    /// `waits` is called once other threads can see this waiter.
    pub fn take<'a>(
        &'a self,
        queues: &dyn Queues,
        in_blocks: bool,
        waits: &dyn Fn(),
    ) -> impl Future<Output = Result<(), Closed>> + use<'a> {
        let waiter = PermitWaiter::queue_up(self);
        self.grant_to_all(in_blocks, queues);
        if self.is_starved() {
            waits();
        }
        waiter.granted()
    }

    /// Hands free permits over to waiters.
    pub fn grant(&self, queues: &dyn Queues) {
        self.grant_to_all(false, queues);
    }

    /// Like `grant`; with `in_blocks`, only if at least a block is free.
    fn grant_to_all(&self, in_blocks: bool, queues: &dyn Queues) {
        loop {
            let mut line = self.line.lock();
            self.take_strays(&mut line);
            let unserved = line.waiting.saturating_sub(line.granted);
            // Pairs with the load in `is_starved`, through the fence below.
            self.starved.store(unserved > 0, Ordering::SeqCst);
            if unserved == 0 {
                return;
            }
            // Pairs with the fences of a worker that has started a message (`pass_on_to`,
            // `begin_search`, `forget`, `give`, `Mailbox::serve_waiters`): it sees `starved`, or
            // its message is counted below. Otherwise nothing would serve the waiter.
            fence(Ordering::SeqCst);
            if in_blocks && self.count_free(&line, queues) <= self.block.load(Ordering::Relaxed) {
                return;
            }
            let taken = self.search(&line, unserved as u64, queues) as usize;
            if taken == 0 {
                return;
            }
            line.granted += taken;
            // Pairs with nothing: it only ends a detour. A sender or worker that misses it takes
            // the lock of the line for nothing.
            self.starved.store(line.waiting > line.granted, Ordering::SeqCst);
            let room = line.room.clone();
            drop(line);
            wake_tasks(|| room.add_permits(taken));
        }
    }

    /// Takes back permits that were handed over to waiters that have left.
    fn take_strays(&self, line: &mut WaitLine) {
        while line.granted > line.waiting {
            let Ok(stray) = line.room.try_acquire() else { return };
            stray.forget();
            line.granted -= 1;
            self.returned.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a permit for a message that returns to a queue, going into debt if none is free.
    #[inline]
    pub fn take_back(&self) {
        self.count.reserved.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back unused permits.
    pub fn give(&self, permits: u64, queues: &dyn Queues) {
        self.returned.fetch_add(permits, Ordering::Relaxed);
        // Pairs with the fence in `grant_to_all`: a waiter finds these permits, or its `starved` is
        // seen here. Otherwise it would wait although there are permits.
        fence(Ordering::SeqCst);
        if self.is_starved() {
            self.grant(queues);
        }
    }

    /// Gives back permits that were never used, at a time when no sender can wait for them.
    #[inline]
    pub fn return_unused(&self, permits: u64) {
        self.returned.fetch_add(permits, Ordering::Relaxed);
    }

    /// Refuses all waiters, and all later senders.
    pub fn close(&self) {
        let room = self.refuse_later();
        wake_tasks(|| room.close());
    }

    /// Like `close`, but the caller closes the returned room under no lock: that wakes the waiters.
    pub fn refuse_later(&self) -> Arc<Semaphore> {
        // Pairs with the loads in `try_take` and `is_closed`. A sender that misses it is refused by
        // its shard, or waits in a room that the caller closes.
        self.closed.store(true, Ordering::SeqCst);
        self.line.lock().room.clone()
    }

    /// Serves new senders again. Permits that were granted to earlier waiters and not taken come
    /// back.
    pub fn reopen(&self) {
        let mut line = self.line.lock();
        let granted = std::mem::take(&mut line.granted) as u64;
        self.returned.fetch_add(granted, Ordering::Relaxed);
        line.room = Arc::new(Semaphore::new(0));
        line.waiting = 0;
        // Pairs with nothing: it only ends a detour, as in `grant_to_all`.
        self.starved.store(false, Ordering::SeqCst);
        // Pairs with the loads in `try_take` and `is_closed`. A sender that misses it is refused
        // once more.
        self.closed.store(false, Ordering::SeqCst);
    }

    /// Changes the capacity. If more permits are held than that, none are given out until fewer are
    /// held. If the capacity has grown, the caller grants the new permits under no lock: that wakes
    /// waiters.
    pub fn resize(&self, capacity: usize, queues: &dyn Queues) {
        let mut line = self.line.lock();
        line.capacity = capacity as u64;
        self.block.store(block_of(line.capacity), Ordering::Relaxed);
        let unused = queues.reclaim();
        self.returned.fetch_add(unused, Ordering::Relaxed);
        self.add_up(&line, queues);
    }

    /// The number of permits held, including unused ones in the shards.
    pub fn in_use(&self, queues: &dyn Queues) -> usize {
        let given_up = queues.started() + self.returned.load(Ordering::Relaxed);
        self.count.reserved.load(Ordering::Relaxed).saturating_sub(given_up) as usize
    }

    /// True if the pool no longer accepts messages.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Pairs with the stores in `refuse_later` and `reopen`. A sender that misses the close is
        // refused by its shard.
        self.closed.load(Ordering::SeqCst)
    }

    /// The number of messages that may be accepted and not started.
    pub fn capacity(&self) -> usize {
        self.line.lock().capacity as usize
    }
}

/// A place among the waiters, until it is served or dropped.
struct PermitWaiter<'a> {
    permits: &'a Permits,
    /// The waiter's room. The line has another one if the pool was closed and opened again.
    room: Arc<Semaphore>,
    served: bool,
}

impl<'a> PermitWaiter<'a> {
    fn queue_up(permits: &'a Permits) -> Self {
        let mut line = permits.line.lock();
        line.waiting += 1;
        // Pairs with the load in `is_starved`, through the fence in `grant_to_all`, which the
        // waiter calls next: a worker sees it, or the waiter sees the message that the worker has
        // started.
        permits.starved.store(line.waiting > line.granted, Ordering::SeqCst);
        Self { permits, room: line.room.clone(), served: false }
    }

    async fn granted(self) -> Result<(), Closed> {
        match self.room.acquire().await {
            Ok(permit) => permit.forget(),
            Err(_) => return Err(Closed),
        }
        if self.served() { Ok(()) } else { Err(Closed) }
    }

    /// The permit has been taken out of the semaphore. Returns false if all permits granted there
    /// have been taken back since.
    fn served(mut self) -> bool {
        self.served = true;
        let mut line = self.permits.line.lock();
        let current = Arc::ptr_eq(&line.room, &self.room);
        if current {
            line.waiting -= 1;
            line.granted -= 1;
        }
        current
    }
}

impl Drop for PermitWaiter<'_> {
    /// The wait was cancelled, or the pool was closed. The semaphore has already passed a permit
    /// on, or kept it.
    fn drop(&mut self) {
        if self.served {
            return;
        }
        let permits = self.permits;
        let mut line = permits.line.lock();
        if Arc::ptr_eq(&line.room, &self.room) {
            line.waiting -= 1;
            permits.take_strays(&mut line);
            // Pairs with nothing: one waiter less only ends a detour, as in `grant_to_all`.
            permits.starved.store(line.waiting > line.granted, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[derive(Default)]
    struct Counters {
        started: AtomicU64,
        credit: AtomicU64,
    }

    impl Queues for Counters {
        fn started(&self) -> u64 {
            self.started.load(Ordering::Relaxed)
        }

        fn reclaim(&self) -> u64 {
            self.credit.swap(0, Ordering::Relaxed)
        }
    }

    #[test]
    fn a_debt_is_paid_before_a_permit_becomes_free() {
        let (permits, queues) = (Permits::new(1), Counters::default());
        assert_eq!(permits.try_take(1, &queues), Ok(1));
        permits.take_back();
        queues.started.store(1, Ordering::Relaxed);
        assert_eq!(permits.try_take(1, &queues), Err(Refused::Full));
        queues.started.store(2, Ordering::Relaxed);
        assert_eq!(permits.try_take(1, &queues), Ok(1));
    }

    #[test]
    fn up_to_means_what_is_free_and_no_more() {
        let (permits, queues) = (Permits::new(3), Counters::default());
        assert_eq!(permits.try_take(2, &queues), Ok(2));
        assert_eq!(permits.try_take(2, &queues), Ok(1));
        assert_eq!(permits.try_take(2, &queues), Err(Refused::Full));
        permits.close();
        assert_eq!(permits.try_take(2, &queues), Err(Refused::Closed));
    }

    #[test]
    fn unused_credit_is_taken_back_before_anybody_is_refused() {
        let (permits, queues) = (Permits::new(10), Counters::default());
        assert_eq!(permits.try_take(10, &queues), Ok(10));
        queues.credit.store(4, Ordering::Relaxed);
        assert_eq!(permits.try_take(3, &queues), Ok(3));
        assert_eq!(permits.try_take(3, &queues), Ok(1));
        assert_eq!(permits.try_take(3, &queues), Err(Refused::Full));
    }

    #[tokio::test]
    async fn close_refuses_waiters() {
        let (permits, queues) = (Permits::new(1), Counters::default());
        assert_eq!(permits.try_take(1, &queues), Ok(1));
        let (waited, ()) =
            tokio::join!(permits.take(&queues, false, &|| {}), async { permits.close() });
        assert_eq!(waited, Err(Closed));
        assert_eq!(permits.try_take(1, &queues), Err(Refused::Closed));
    }

    #[tokio::test]
    async fn a04_nobody_overtakes_a_waiter_and_a_cancelled_one_passes_its_grant_on() {
        let (permits, queues) = (Permits::new(1), Counters::default());
        assert_eq!(permits.try_take(1, &queues), Ok(1));
        let mut first = Box::pin(permits.take(&queues, false, &|| {}));
        let mut second = Box::pin(permits.take(&queues, false, &|| {}));
        assert!(futures_poll(first.as_mut()).await.is_none());
        assert!(futures_poll(second.as_mut()).await.is_none());
        queues.started.store(1, Ordering::Relaxed);
        assert_eq!(permits.try_take(1, &queues), Err(Refused::Full), "two came before");
        permits.grant(&queues);
        drop(first);
        assert_eq!(futures_poll(second.as_mut()).await, Some(Ok(())));
        // A permit whose waiter has left is not lost.
        let mut third = Box::pin(permits.take(&queues, false, &|| {}));
        assert!(futures_poll(third.as_mut()).await.is_none());
        queues.started.store(2, Ordering::Relaxed);
        permits.grant(&queues);
        drop(third);
        assert_eq!(permits.try_take(2, &queues), Ok(1));
        assert!(!permits.is_starved());
    }

    #[test]
    fn who_wants_many_gets_what_others_have_started_and_left_over_too() {
        let (permits, queues) = (Permits::new(8), Counters::default());
        assert_eq!(permits.try_take(6, &queues), Ok(6));
        queues.started.store(3, Ordering::Relaxed);
        queues.credit.store(2, Ordering::Relaxed);
        assert_eq!(permits.try_take_most(10, &queues), Ok(7));
        assert_eq!(permits.try_take_most(10, &queues), Err(Refused::Full));
    }

    /// Polls once.
    async fn futures_poll<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
        std::future::poll_fn(|task| match std::pin::Pin::new(&mut future).poll(task) {
            std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
            std::task::Poll::Pending => std::task::Poll::Ready(None),
        })
        .await
    }
}
