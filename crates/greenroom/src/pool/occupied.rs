//! Calls that would wait for their own caller.
//!
//! A worker that calls its own pool waits for another worker; when all of them do so, nobody is left to answer. Which worker
//! is polled on this thread is noted once per turn of a worker's task, not per message; how many wait for their own pool is
//! counted by the calls that do.

use std::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
};

thread_local! {
    /// The worker that is polled on this thread: its pool, and its slot.
    static AT_WORK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Notes who is polled on this thread until it is dropped.
pub(crate) struct AtWork(Option<(usize, usize)>);

impl AtWork {
    pub(crate) fn begin(pool: usize, slot: usize) -> Self {
        Self(AT_WORK.replace(Some((pool, slot))))
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.set(self.0);
    }
}

/// The slot of this pool's worker that is polled on this thread, if it is one.
pub(crate) fn slot_at_work(pool: usize) -> Option<usize> {
    AT_WORK.get().filter(|(at, _)| *at == pool).map(|(_, slot)| slot)
}

/// The call cannot be answered.
#[derive(Debug)]
pub(crate) struct Occupied;

/// A pool's workers that wait for their own pool.
#[derive(Debug, Default)]
pub(crate) struct OwnCalls(AtomicUsize);

/// One of them, until it is dropped.
pub(crate) struct Inside<'a>(&'a OwnCalls);

impl OwnCalls {
    /// A worker of the pool calls it. Refused where it would be the last of the live ones that could answer.
    pub(crate) fn enter(&self, pool: usize, live: usize) -> Result<Option<Inside<'_>>, Occupied> {
        if slot_at_work(pool).is_none() {
            return Ok(None);
        }
        let inside = Inside(self);
        match self.0.fetch_add(1, Ordering::SeqCst) + 1 < live {
            true => Ok(Some(inside)),
            false => Err(Occupied),
        }
    }

    /// A worker of the pool calls one worker: refused where that is the caller.
    pub(crate) fn enter_worker(
        &self,
        pool: usize,
        slot: usize,
    ) -> Result<Option<Inside<'_>>, Occupied> {
        match slot_at_work(pool) {
            Some(caller) if caller == slot => Err(Occupied),
            _ => Ok(None),
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
