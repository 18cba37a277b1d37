//! The same lock, which knows how many of its kind the thread holds. For builds with debug
//! assertions, so that each test shows that user code runs under none.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::relax::SpinThenYield;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Ends with a panic while this thread holds one.
#[track_caller]
pub(super) fn assert_none_held() {
    let held = HELD.get();
    assert_eq!(held, 0, "user code would run under a lock of the pool");
}

/// A lock that is held for a few instructions at a time.
#[derive(Debug, Default)]
pub struct Lock<T>(SpinMutex<T, SpinThenYield>);

/// What it guards, while it is held.
#[derive(Debug)]
pub struct Locked<'a, T>(SpinMutexGuard<'a, T>);

impl<T> Lock<T> {
    /// A lock that is free.
    pub const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Waits until it is free.
    pub fn lock(&self) -> Locked<'_, T> {
        Locked::count(self.0.lock())
    }

    /// Takes it if it is free.
    pub fn try_lock(&self) -> Option<Locked<'_, T>> {
        self.0.try_lock().map(Locked::count)
    }
}

impl<'a, T> Locked<'a, T> {
    fn count(guard: SpinMutexGuard<'a, T>) -> Self {
        HELD.set(HELD.get() + 1);
        Self(guard)
    }
}

impl<T> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

impl<T> Deref for Locked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Locked<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::user_code_follows;

    #[test]
    #[should_panic(expected = "user code would run under a lock")]
    fn user_code_under_a_lock_is_found() {
        let lock = Lock::new(0);
        let _held = lock.lock();
        user_code_follows();
    }

    #[test]
    fn a_lock_that_is_free_again_does_not_count() {
        let lock = Lock::new(0);
        *lock.lock() += 1;
        let (first, second) = (lock.try_lock(), lock.try_lock());
        assert!(second.is_none());
        drop(first);
        user_code_follows();
        assert_eq!(*lock.lock(), 1);
    }
}
