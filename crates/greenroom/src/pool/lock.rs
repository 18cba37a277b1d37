//! The lock around the queues of a shard.
//!
//! It is held for a few instructions at a time, by one sender and one worker that mostly find it
//! free, and twice for every message. A lock that can put its waiters to sleep writes to its word
//! atomically when it is released as well, to find out whether somebody sleeps; this one does
//! not, and so costs half of that (9 against 16 ns where it was measured, of some 45 for the whole
//! message). Who finds it taken spins for a moment, and then lets the operating system run others,
//! because the holder may be one that it has put aside.

use std::cell::Cell;

use spin::relax::RelaxStrategy;

pub(crate) type Lock<T> = spin::mutex::SpinMutex<T, SpinThenYield>;

pub(crate) type Locked<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

/// Spins before the operating system is asked to run others: several times as long as the
/// lock is held.
const SPINS: u32 = 64;

/// Takes a lock that is mostly free. What follows where it is not is a function of its own, so that
/// a path that is taken for each message keeps nothing for it.
#[inline(always)]
pub(crate) fn locked<T>(lock: &Lock<T>) -> Locked<'_, T> {
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

pub(crate) struct SpinThenYield;

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
