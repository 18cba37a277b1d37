//! The lock around the queues of a shard.
//!
//! It is held for a few instructions at a time, by one sender and one worker that mostly find it
//! free, and twice for every message. A lock that can put its waiters to sleep also writes its
//! word atomically when it is released, to find out whether a waiter sleeps. This one does not, and
//! so costs half of that (9 against 16 ns in a measurement, of some 45 for the whole message). A
//! thread that finds it taken spins for a moment, and then yields to the operating system, because
//! the holder may have been put aside.

use std::cell::Cell;

use spin::relax::RelaxStrategy;

/// A lock that is held for a few instructions at a time.
pub type Lock<T> = spin::mutex::SpinMutex<T, SpinThenYield>;

/// What it guards, while it is held.
pub type Locked<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

/// Spins before a thread yields to the operating system: several times as long as the lock is held.
const SPINS: u32 = 64;

/// Takes a lock that is mostly free. The wait for a taken lock is a function of its own, so that
/// the path of each message keeps nothing for it.
#[inline(always)]
pub fn locked<T>(lock: &Lock<T>) -> Locked<'_, T> {
    match lock.try_lock() {
        Some(locked) => locked,
        None => wait_for(lock),
    }
}

#[cold]
#[inline(never)]
fn wait_for<T>(lock: &Lock<T>) -> Locked<'_, T> {
    lock.lock()
}

thread_local! {
    static SPUN: Cell<u32> = const { Cell::new(0) };
}

/// How a thread waits for such a lock.
pub struct SpinThenYield;

impl RelaxStrategy for SpinThenYield {
    fn relax() {
        std::hint::spin_loop();
        let spun = SPUN.get().wrapping_add(1);
        SPUN.set(spun);
        if spun.is_multiple_of(SPINS) {
            std::thread::yield_now();
        }
    }
}
