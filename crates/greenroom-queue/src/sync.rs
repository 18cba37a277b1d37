//! What the waiting protocols of a pool are made of.
//!
//! Whether a message or a wake-up can be lost between threads is decided in a few files: the
//! wake-ups, the permits, the watchdog's handle, the shards. They take atomics, locks and
//! notifications from here and from nowhere else. So the very same files can be compiled with other
//! ones, which try every order in which threads may meet: the workspace `models/` does that, and
//! gives them a module of this name of its own.
//!
//! Adding to the list costs a stand-in for each of the two model checkers, but for the
//! [`Instant`]: no time passes in a model.

use std::cell::Cell;

pub use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

pub use std::thread::yield_now;

pub use crate::lock::{Mutex, MutexGuard};
pub use tokio::{
    runtime::Handle,
    sync::{Notify, Semaphore},
    task::coop::has_budget_remaining,
    time::Instant,
};

/// A number that is more than a model has messages: there, it is the second.
#[inline]
pub const fn tuned(usual: u32, _in_models: u32) -> u32 {
    usual
}

/// Which shard the workers of a thread visit.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The owner of the shards, given by its address.
    pub of: usize,
    /// The shard, by its index there.
    pub shard: u32,
    /// Messages that are taken there before they go on.
    pub left: u32,
}

thread_local! {
    static VISIT: Cell<Visit> = const { Cell::new(Visit { of: 0, shard: 0, left: 0 }) };
}

/// The last visit of this thread.
#[inline]
pub fn visit() -> Visit {
    VISIT.get()
}

/// From now on that is the visit of this thread.
#[inline]
pub fn set_visit(visit: Visit) {
    VISIT.set(visit);
}

/// The token of this thread: the address of one of its own variables.
#[inline]
pub fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// The token of this thread in a byte, never 0. Of more than 255 threads, some share theirs: for
/// hints alone.
#[inline]
pub fn thread_byte() -> u8 {
    static THREADS: AtomicU8 = AtomicU8::new(0);
    thread_local! {
        static BYTE: u8 = THREADS.fetch_add(1, Ordering::Relaxed) % u8::MAX + 1;
    }
    BYTE.with(|byte| *byte)
}
