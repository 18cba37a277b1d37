//! The idle list.

use std::task::Waker;

use crate::lock::user_code_follows;

/// A worker that was taken off the idle list and is to be polled.
#[must_use]
pub(super) struct Picked {
    /// The worker's slot.
    pub(super) worker: usize,
    /// `None` if the worker notices by itself: it has not given its waker yet.
    pub(super) waker: Option<Waker>,
}

impl Picked {
    /// Wakes the worker. Call it under no lock.
    #[inline]
    pub(super) fn wake(self) {
        if let Some(waker) = self.waker {
            user_code_follows();
            waker.wake();
        }
    }
}

/// The idle workers, with the last to fall asleep on top. Any of them can leave in constant time,
/// because thousands leave at once when a runtime ends.
pub(super) struct Idle {
    pub(super) stack: Vec<usize>,
    /// One per worker.
    pub(super) places: Vec<IdleEntry>,
}

pub(super) struct IdleEntry {
    /// The worker's place in the stack, or [`NOT_IDLE`] if it is not there.
    pub(super) at: usize,
    /// The waker of its task, while it is in the stack and has given it.
    pub(super) waker: Option<Waker>,
}

/// The place of a worker that is not idle.
pub(super) const NOT_IDLE: usize = usize::MAX;

impl Default for IdleEntry {
    fn default() -> Self {
        Self { at: NOT_IDLE, waker: None }
    }
}

impl Idle {
    pub(super) fn new(workers: usize) -> Self {
        let places = std::iter::repeat_with(IdleEntry::default).take(workers).collect();
        Self { stack: Vec::new(), places }
    }

    pub(super) fn grow_to(&mut self, workers: usize) {
        if workers > self.places.len() {
            self.places.resize_with(workers, IdleEntry::default);
        }
    }

    pub(super) fn push(&mut self, worker: usize, waker: Option<Waker>) {
        let place = &mut self.places[worker];
        debug_assert_eq!(place.at, NOT_IDLE, "nobody parks twice");
        *place = IdleEntry { at: self.stack.len(), waker };
        self.stack.push(worker);
    }

    /// The last workers to fall asleep, from the top.
    pub(super) fn last(&self, many: usize) -> impl Iterator<Item = usize> {
        self.stack.iter().rev().take(many).copied()
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Picked> {
        let worker = self.stack.pop()?;
        Some(self.pick(worker))
    }

    /// Returns `None` if the worker was not there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn remove(&mut self, worker: usize) -> Option<Picked> {
        let is_there = match self.stack.last() == Some(&worker) {
            true => self.stack.pop().is_some(),
            false => self.remove_below(worker),
        };
        is_there.then(|| self.pick(worker))
    }

    /// Like `remove`, for a worker that is not on top; its waker stays in its place.
    #[cold]
    pub(super) fn remove_below(&mut self, worker: usize) -> bool {
        let at = self.places[worker].at;
        if at == NOT_IDLE {
            return false;
        }
        self.stack.swap_remove(at);
        if let Some(moved) = self.stack.get(at) {
            self.places[*moved].at = at;
        }
        true
    }

    #[inline]
    pub(super) fn pick(&mut self, worker: usize) -> Picked {
        let place = &mut self.places[worker];
        place.at = NOT_IDLE;
        Picked { worker, waker: place.waker.take() }
    }
}
