//! The lock around the queues of a shard.
//!
//! It is held for a few instructions at a time, and taken twice for every message by one sender and
//! one worker that mostly find it free. A lock that can put its waiters to sleep also writes its
//! word atomically on release, to find out whether a waiter sleeps. This one does not, and so costs
//! half as much (9 against 16 ns in a measurement, of some 45 for the whole message). A thread that
//! finds the lock taken spins for a moment and then yields to the operating system, because the
//! holder may have been preempted.

#[cfg(debug_assertions)]
mod counted;
mod relax;

pub use relax::SpinThenYield;

/// A lock that is held for a few instructions at a time.
#[cfg(not(debug_assertions))]
pub type Lock<T> = spin::mutex::SpinMutex<T, SpinThenYield>;

/// The guard of a [`Lock`].
#[cfg(not(debug_assertions))]
pub type Locked<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

#[cfg(not(debug_assertions))]
pub use parking_lot::{Mutex, MutexGuard};

#[cfg(debug_assertions)]
pub use counted::{Lock, Locked, Mutex, MutexGuard};

/// Call this before user code (a handler, a key's comparison, a `Drop`): user code runs under no
/// lock. With debug assertions it panics if this thread holds a lock.
#[cfg_attr(not(debug_assertions), inline(always))]
#[track_caller]
pub fn user_code_follows() {
    #[cfg(debug_assertions)]
    counted::assert_none_held();
}

/// Takes a lock that is mostly free. Waiting for a taken lock is a separate function, so that the
/// common path keeps nothing for it.
#[cfg_attr(not(debug_assertions), inline(always))]
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
