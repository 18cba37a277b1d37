//! Places to wait, as they are documented: the fair `Semaphore` and the `Notify` of tokio; a handle to a runtime; and a place for one
//! waker, for scenarios.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use super::Mutex;

/// Keeps the waker of the one who waits, until that is woken. A `register` and a `wake` that meet come one after the other:
/// either the waker is woken, or who registers sees all that came before the wake-up.
#[derive(Debug, Default)]
pub(crate) struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn register(&self, waker: &Waker) {
        let before = self.0.lock().replace(waker.clone());
        drop(before);
    }

    pub(crate) fn wake(&self) {
        let waker = self.0.lock().take();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// First come, first served.
#[derive(Debug)]
pub(crate) struct Semaphore(Mutex<Queue>);

#[derive(Debug)]
struct Queue {
    permits: usize,
    closed: bool,
    next: u64,
    waiting: VecDeque<(u64, Waker)>,
    /// Who was given a permit and has not come for it.
    served: Vec<u64>,
}

#[derive(Debug)]
pub(crate) struct Refused;

pub(crate) struct Permit<'a>(&'a Semaphore);

impl Permit<'_> {
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

impl Semaphore {
    pub(crate) fn new(permits: usize) -> Self {
        let (waiting, served) = (VecDeque::new(), Vec::new());
        Self(Mutex::new(Queue { permits, closed: false, next: 0, waiting, served }))
    }

    pub(crate) fn add_permits(&self, permits: usize) {
        let mut queue = self.0.lock();
        let wakers: Vec<Waker> = (0..permits).filter_map(|_| queue.serve()).collect();
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn close(&self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn try_acquire(&self) -> Result<Permit<'_>, Refused> {
        let mut queue = self.0.lock();
        if queue.closed || queue.permits == 0 {
            return Err(Refused);
        }
        queue.permits -= 1;
        Ok(Permit(self))
    }

    pub(crate) fn acquire(&self) -> Acquire<'_> {
        Acquire { semaphore: self, place: None }
    }
}

impl Queue {
    /// One more permit: for the first in the line, who is to be woken, or for later.
    fn serve(&mut self) -> Option<Waker> {
        let Some((place, waker)) = self.waiting.pop_front() else {
            self.permits += 1;
            return None;
        };
        self.served.push(place);
        Some(waker)
    }

    fn take_served(&mut self, place: u64) -> bool {
        let found = self.served.iter().position(|served| *served == place);
        found.map(|found| self.served.swap_remove(found)).is_some()
    }
}

pub(crate) struct Acquire<'a> {
    semaphore: &'a Semaphore,
    /// Its number in the line, while it stands there or has not come for its permit.
    place: Option<u64>,
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>, Refused>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let mut queue = self.semaphore.0.lock();
        if queue.closed {
            return Poll::Ready(Err(Refused));
        }
        let waker = task.waker().clone();
        match self.place {
            None if queue.permits > 0 => queue.permits -= 1,
            None => {
                let place = queue.next;
                queue.next += 1;
                queue.waiting.push_back((place, waker));
                drop(queue);
                self.place = Some(place);
                return Poll::Pending;
            }
            Some(place) if queue.take_served(place) => {
                drop(queue);
                self.place = None;
                return Poll::Ready(Ok(Permit(self.semaphore)));
            }
            Some(place) => {
                let mut waiting = queue.waiting.iter_mut();
                if let Some((_, current)) = waiting.find(|(other, _)| *other == place) {
                    *current = waker;
                }
                return Poll::Pending;
            }
        }
        drop(queue);
        Poll::Ready(Ok(Permit(self.semaphore)))
    }
}

impl Drop for Acquire<'_> {
    /// Who goes leaves the line; a permit that it was given and has not come for goes to the next.
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut queue = self.semaphore.0.lock();
        queue.waiting.retain(|(other, _)| *other != place);
        let next = if queue.take_served(place) { queue.serve() } else { None };
        drop(queue);
        next.into_iter().for_each(Waker::wake);
    }
}

/// Wakes one who waits, first come, first served, or all. Keeps one wake-up for who comes next where nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Notify(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    kept: bool,
    next: u64,
    waiting: VecDeque<(u64, Waker)>,
    /// Who was woken and has not come; true where nobody else was with it.
    woken: Vec<(u64, bool)>,
    /// How often all were woken.
    calls: u64,
}

impl Notify {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn notify_one(&self) {
        let waker = self.0.lock().wake_one();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes all who wait now, and keeps nothing for others.
    pub(crate) fn notify_waiters(&self) {
        let mut state = self.0.lock();
        state.calls += 1;
        let waiting = std::mem::take(&mut state.waiting);
        state.woken.extend(waiting.iter().map(|(place, _)| (*place, false)));
        drop(state);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn notified(&self) -> Notified<'_> {
        let calls = self.0.lock().calls;
        Notified { notify: self, place: None, calls }
    }
}

impl Waiting {
    fn wake_one(&mut self) -> Option<Waker> {
        let Some((place, waker)) = self.waiting.pop_front() else {
            self.kept = true;
            return None;
        };
        self.woken.push((place, true));
        Some(waker)
    }

    fn take_woken(&mut self, place: u64) -> Option<bool> {
        let found = self.woken.iter().position(|(woken, _)| *woken == place)?;
        Some(self.woken.swap_remove(found).1)
    }
}

pub(crate) struct Notified<'a> {
    notify: &'a Notify,
    /// Its number in the line, while it stands there or has not come.
    place: Option<u64>,
    /// How often all had been woken when it was made.
    calls: u64,
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut state = self.notify.0.lock();
        let Some(place) = self.place else {
            if state.calls != self.calls || std::mem::take(&mut state.kept) {
                return Poll::Ready(());
            }
            let place = state.next;
            state.next += 1;
            state.waiting.push_back((place, task.waker().clone()));
            drop(state);
            self.place = Some(place);
            return Poll::Pending;
        };
        if state.take_woken(place).is_some() {
            drop(state);
            self.place = None;
            return Poll::Ready(());
        }
        if let Some((_, waker)) = state.waiting.iter_mut().find(|(other, _)| *other == place) {
            *waker = task.waker().clone();
        }
        Poll::Pending
    }
}

impl Drop for Notified<'_> {
    /// Who goes leaves the line; a wake-up that was for it alone goes to the next.
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut state = self.notify.0.lock();
        state.waiting.retain(|(other, _)| *other != place);
        let next = match state.take_woken(place) {
            Some(true) => state.wake_one(),
            _ => None,
        };
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }
}

/// A runtime that has nothing to do.
#[derive(Debug)]
pub(crate) struct Handle;

impl Handle {
    pub(crate) fn spawn(&self, task: impl Future<Output = ()>) {
        drop(task);
    }
}
