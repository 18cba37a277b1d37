//! The lock around the queues of a shard.
//!
//! It is held for a few instructions at a time, by one sender and one worker that mostly find it
//! free, and twice for every message. A lock that can put its waiters to sleep also writes its
//! word atomically when it is released, to find out whether a waiter sleeps. This one does not, and
//! so costs half of that (9 against 16 ns in a measurement, of some 45 for the whole message). A
//! thread that finds it taken spins for a moment, and then yields to the operating system, because
//! the holder may have been put aside.

#[cfg(debug_assertions)]
mod counted;
mod relax;

pub use relax::SpinThenYield;

/// A lock that is held for a few instructions at a time.
#[cfg(not(debug_assertions))]
pub type Lock<T> = spin::mutex::SpinMutex<T, SpinThenYield>;

/// What it guards, while it is held.
#[cfg(not(debug_assertions))]
pub type Locked<'a, T> = spin::mutex::SpinMutexGuard<'a, T>;

#[cfg(not(debug_assertions))]
pub use parking_lot::{Mutex, MutexGuard};

#[cfg(debug_assertions)]
pub use counted::{Lock, Locked, Mutex, MutexGuard};

/// User code comes next (a handler, a key's comparison, a `Drop`): it runs under no lock. With
/// debug assertions a lock that this thread holds ends it here.
#[cfg_attr(not(debug_assertions), inline(always))]
#[track_caller]
pub fn user_code_follows() {
    #[cfg(debug_assertions)]
    counted::assert_none_held();
}

/// Takes a lock that is mostly free. The wait for a taken lock is a function of its own, so that
/// the path of each message keeps nothing for it.
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
