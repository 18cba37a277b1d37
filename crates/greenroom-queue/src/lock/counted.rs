//! The same locks, but counted per thread. For builds with debug assertions, so that each test
//! shows that user code runs under no lock.

use std::{
    cell::Cell,
    fmt,
    ops::{Deref, DerefMut},
};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::relax::SpinThenYield;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Panics if this thread holds a lock.
#[track_caller]
pub(super) fn assert_none_held() {
    let held = HELD.get();
    assert_eq!(held, 0, "user code would run under a lock of the pool");
}

/// A lock that is held for a few instructions at a time.
#[derive(Debug, Default)]
pub struct Lock<T>(SpinMutex<T, SpinThenYield>);

/// The guard of a [`Lock`].
pub type Locked<'a, T> = Counted<SpinMutexGuard<'a, T>>;

impl<T> Lock<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Waits until the lock is free, and takes it.
    pub fn lock(&self) -> Locked<'_, T> {
        Counted::new(self.0.lock())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Locked<'_, T>> {
        self.0.try_lock().map(Counted::new)
    }
}

/// A lock whose waiters sleep.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = Counted<parking_lot::MutexGuard<'a, T>>;

impl<T> Mutex<T> {
    /// A free lock.
    pub const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    /// The guarded value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the lock is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        Counted::new(self.0.lock())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().map(Counted::new)
    }

    /// True if the lock is taken.
    pub fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    /// The guarded value: the exclusive borrow shows that the lock is free.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A guard that counts as a held lock while it lives.
#[derive(Debug)]
pub struct Counted<G>(G);

impl<G> Counted<G> {
    fn new(guard: G) -> Self {
        HELD.set(HELD.get() + 1);
        Self(guard)
    }
}

impl<G> Drop for Counted<G> {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

impl<G: Deref> Deref for Counted<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.0
    }
}

impl<G: DerefMut> DerefMut for Counted<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
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
    #[should_panic(expected = "user code would run under a lock")]
    fn user_code_under_a_lock_whose_waiters_sleep_is_found() {
        let mutex = Mutex::new(0);
        let _held = mutex.lock();
        user_code_follows();
    }

    #[test]
    fn a_lock_that_is_free_again_does_not_count() {
        let (lock, mutex) = (Lock::new(0), Mutex::new(0));
        *lock.lock() += 1;
        *mutex.lock() += 1;
        let (first, second) = (lock.try_lock(), lock.try_lock());
        let (third, fourth) = (mutex.try_lock(), mutex.try_lock());
        assert!(second.is_none());
        assert!(fourth.is_none());
        drop((first, third));
        user_code_follows();
        assert_eq!((*lock.lock(), *mutex.lock()), (1, 1));
    }
}
