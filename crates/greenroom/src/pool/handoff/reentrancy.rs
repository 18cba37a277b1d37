//! Calls that would wait for their own caller.
//!
//! A worker that calls its own pool waits for another worker; if all of them do so, no worker is
//! left to answer. The worker that is polled on this thread is noted once per turn of a worker's
//! task, not per message; workers that wait for their own pool are counted by their calls.

use std::{
    cell::Cell,
    sync::{Arc, OnceLock},
};

use greenroom_queue::lock::Mutex;

thread_local! {
    /// The worker that is polled on this thread: its pool, and its slot.
    static AT_WORK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Notes the worker that is polled on this thread until it is dropped.
pub(crate) struct AtWork(Option<(usize, usize)>);

impl AtWork {
    #[inline]
    pub(crate) fn begin(pool: usize, slot: usize) -> Self {
        Self(AT_WORK.replace(Some((pool, slot))))
    }
}

impl Drop for AtWork {
    #[inline]
    fn drop(&mut self) {
        AT_WORK.set(self.0);
    }
}

/// The slot of this pool's worker that is polled on this thread, if it is one.
pub(crate) fn slot_at_work(pool: usize) -> Option<usize> {
    AT_WORK.get().filter(|(at, _)| *at == pool).map(|(_, slot)| slot)
}

/// True if some pool's worker is polled on this thread.
pub(crate) fn is_at_work() -> bool {
    AT_WORK.get().is_some()
}

/// The call cannot be answered.
#[derive(Debug)]
pub(crate) struct Reentrant;

/// A pool's workers that wait for their own pool. Most pools never have one.
#[derive(Debug, Default)]
pub(crate) struct OwnCalls(OnceLock<OwnCallers>);

/// Shared with the calls, which may outlive their pool.
type OwnCallers = Arc<Mutex<Vec<OwnCaller>>>;

/// A worker that waits for its own pool.
#[derive(Debug)]
struct OwnCaller {
    slot: usize,
    /// How many replies it waits for: there may be several at once.
    calls: usize,
}

/// One of these calls, until it is dropped.
#[derive(Debug)]
pub(crate) struct ReentrancyGuard {
    callers: OwnCallers,
    slot: usize,
}

impl OwnCalls {
    /// A worker of the pool calls it. Refused if it is the last of the live workers that
    /// could answer.
    pub(crate) fn enter(
        &self,
        pool: usize,
        live: usize,
    ) -> Result<Option<ReentrancyGuard>, Reentrant> {
        let Some(slot) = slot_at_work(pool) else { return Ok(None) };
        let (inside, callers) = self.begin(slot);
        match callers < live {
            true => Ok(Some(inside)),
            false => Err(Reentrant),
        }
    }

    /// One more call of this worker. Returns the number of workers that wait.
    fn begin(&self, slot: usize) -> (ReentrancyGuard, usize) {
        let all = self.0.get_or_init(OwnCallers::default);
        let mut callers = all.lock();
        match callers.iter_mut().find(|caller| caller.slot == slot) {
            Some(caller) => caller.calls += 1,
            None => callers.push(OwnCaller { slot, calls: 1 }),
        }
        (ReentrancyGuard { callers: all.clone(), slot }, callers.len())
    }

    /// A worker of the pool calls one worker: refused if that is the caller.
    pub(crate) fn enter_worker(
        &self,
        pool: usize,
        slot: usize,
    ) -> Result<Option<ReentrancyGuard>, Reentrant> {
        match slot_at_work(pool) {
            Some(caller) if caller == slot => Err(Reentrant),
            Some(caller) => Ok(Some(self.begin(caller).0)),
            None => Ok(None),
        }
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        let mut callers = self.callers.lock();
        let Some(place) = callers.iter().position(|caller| caller.slot == self.slot) else {
            return;
        };
        callers[place].calls -= 1;
        if callers[place].calls == 0 {
            callers.swap_remove(place);
        }
    }
}
