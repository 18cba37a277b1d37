//! What the product's files take from their module of this name, as shuttle has it.

use std::cell::Cell;

pub(crate) use shuttle::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

#[path = "../../shared/waiting.rs"]
mod waiting;

pub(crate) use shuttle::{sync::MutexGuard, thread::yield_now};
pub(crate) use waiting::{AtomicWaker, Handle, Notify, Semaphore};

/// More messages than a model has are fewer here.
pub(crate) const fn tuned(_usual: u32, in_models: u32) -> u32 {
    in_models
}

/// No runtime counts what a task does.
pub(crate) fn has_budget_remaining() -> bool {
    true
}

/// A lock that is never poisoned, as the product's are.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Who finds the lock taken comes again, as the watchdog does with its next tick: as if it had
    /// waited.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(self.lock())
    }
}

shuttle::thread_local! {
    static TOKEN: Cell<usize> = Cell::new(1);
}

/// The thread of the runtime on which the caller runs: as given by [`run_on`].
pub(crate) fn this_thread() -> usize {
    TOKEN.with(Cell::get)
}

/// The same, in a byte.
pub(crate) fn thread_byte() -> u8 {
    this_thread() as u8
}

/// From now on the caller runs on this thread of the runtime.
pub(crate) fn run_on(thread: usize) {
    TOKEN.with(|token| token.set(thread));
}

/// As in the product: which shard the workers of a thread visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) of: usize,
    pub(crate) shard: u32,
    pub(crate) left: u32,
}

shuttle::thread_local! {
    static VISIT: Cell<Visit> = Cell::new(Visit { of: 0, shard: 0, left: 0 });
}

pub(crate) fn visit() -> Visit {
    VISIT.with(Cell::get)
}

pub(crate) fn set_visit(visit: Visit) {
    VISIT.with(|last| last.set(visit));
}
