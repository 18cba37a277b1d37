//! The building blocks of a pool's waiting protocols.
//!
//! A few files decide whether a message or a wake-up can be lost between threads: the wake-ups, the
//! permits, the watchdog's handle and the shards. They take atomics, locks and notifications only
//! from here. So the same files can be compiled with replacements that try every order in which
//! threads may interleave: the workspace `models/` does that, with its own module of this name.
//!
//! Each addition to the list needs a replacement for each of the two model checkers. The exception
//! is [`Instant`]: no time passes in a model.

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

/// A tuning constant: models use the second value, because they have too few messages for the
/// first.
#[inline]
pub const fn tuned(usual: u32, _in_models: u32) -> u32 {
    usual
}

/// The shard that the workers of a thread visit.
#[derive(Debug, Clone, Copy)]
pub struct Visit {
    /// The owner of the shards, identified by its address.
    pub of: usize,
    /// The shard's index there.
    pub shard: u32,
    /// The number of messages to take there before moving on.
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

/// Sets the visit of this thread.
#[inline]
pub fn set_visit(visit: Visit) {
    VISIT.set(visit);
}

/// A token for this thread: the address of one of its own variables.
#[inline]
pub fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// A token for this thread in one byte, never 0. With more than 255 threads some share a token, so
/// it is only for hints.
#[inline]
pub fn thread_byte() -> u8 {
    static THREADS: AtomicU8 = AtomicU8::new(0);
    thread_local! {
        static BYTE: u8 = THREADS.fetch_add(1, Ordering::Relaxed) % u8::MAX + 1;
    }
    BYTE.with(|byte| *byte)
}
