//! Calls in place: the caller of an idle worker polls it in the caller's own task, instead of
//! leaving that to the runtime.
//!
//! A call through the runtime is two changes of tasks, which cost more than all the rest of it.
//! Here the caller queues its message, takes an idle worker off the list, borrows the future of
//! that worker's task, polls it once, and puts it back: the reply is there before the caller has
//! waited for it. If the handler suspends, its event wakes the worker's own task, and the caller
//! waits for the reply, both as usual.
//!
//! ```text
//!            task polls, caller drives              returned Pending
//!   Here ──────────────────────────────▶ Away ─────────────────────────▶ Here   (and the task is woken, if it called meanwhile)
//!    │                                     │ returned Ready, panicked
//!    │ task dropped                        ├─────────────────────────────▶ Done  (the task is woken, and ends)
//!    ▼                                     │ task dropped
//!  Nobody ◀────────────────────────────────┘                                     (who has the work drops it)
//! ```
//!
//! If nothing waits, a call to a pool without keys is not even queued: its message is left at the
//! worker's [`Hatch`](super::hatch::Hatch), and taken from there by the work that is polled.
//!
//! The price: two short locks for each turn of a worker's task, and a box for its future, in pools
//! that ask for it; and a handler may run inside the caller's turn. So it is done only if handlers
//! are known to be quick, on the runtime that the worker's task runs on, one at a time, and for
//! one message.

use std::{
    any::Any,
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
};

use super::{
    discard::discard,
    lock::{Lock, locked},
};

/// What the task of a worker does.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// On each thread, one call in so many goes the usual way: a task that does nothing but call must
/// let others run.
const IN_A_ROW: u32 = 512;

/// One call in so many is timed.
const CALLS_PER_TIMING: u32 = 8;

thread_local! {
    /// A worker is driven on this thread by its caller.
    static DRIVING: Cell<bool> = const { Cell::new(false) };
    /// How many have been.
    static DRIVEN: Cell<u32> = const { Cell::new(0) };
    /// The number of this thread; 0 while it has none.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// A number of this thread: those that follow each other have different ones.
pub(crate) fn number_of_thread() -> usize {
    match NUMBER.get() {
        0 => take_number(),
        number => number,
    }
}

#[cold]
fn take_number() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    NUMBER.set(number);
    number
}

/// True while the current task is polled by a caller of it, which waits to go on.
#[inline]
pub(crate) fn is_driving() -> bool {
    DRIVING.get()
}

/// True for one call in a few: handlers that have become slow must not run in their callers' turns.
pub(crate) fn is_timed() -> bool {
    DRIVEN.get().is_multiple_of(CALLS_PER_TIMING)
}

/// False for a task that is driven itself, and if others must have their turn.
pub(crate) fn may_drive() -> bool {
    let driven = DRIVEN.get().wrapping_add(1);
    DRIVEN.set(driven);
    !driven.is_multiple_of(IN_A_ROW) && !is_driving()
}

/// The work of a slot's task, one task after the other: the work of a task that is killed may be
/// away while the next has begun.
#[derive(Default)]
pub(crate) struct Bench(Lock<Desk>);

#[derive(Default)]
struct Desk {
    /// Of the task whose place it is; 0 before the first.
    number: u64,
    place: Place,
}

#[derive(Default)]
pub(super) enum Place {
    /// To be polled; with the waker of its task, once that has been polled.
    Here(Work, Option<Waker>),
    /// It is being polled. `called` once its task wants to.
    Away { called: bool },
    /// It has ended, perhaps by a panic.
    Done(Option<Box<dyn Any + Send>>),
    /// Its task has gone.
    #[default]
    Nobody,
}

impl Desk {
    /// The place of this task, if it still has one.
    fn of(&mut self, number: u64) -> Option<&mut Place> {
        (self.number == number).then_some(&mut self.place)
    }
}

impl Bench {
    /// The next task begins, with this work. Returns its number.
    pub(super) fn begin(&self, work: Work) -> u64 {
        let mut desk = locked(&self.0);
        desk.number += 1;
        let number = desk.number;
        let before = std::mem::replace(&mut desk.place, Place::Here(work, None));
        drop(desk);
        drop(before);
        number
    }

    /// The task comes to poll its work.
    pub(super) fn come(&self, number: u64) -> Place {
        let mut desk = locked(&self.0);
        let Some(place) = desk.of(number) else { return Place::Nobody };
        let away = Place::Away { called: matches!(*place, Place::Away { .. }) };
        std::mem::replace(place, away)
    }

    /// Lends the work to a caller, with the waker and the number of its task.
    fn lend(&self) -> Option<(Work, Waker, u64)> {
        let mut desk = locked(&self.0);
        match std::mem::replace(&mut desk.place, Place::Away { called: false }) {
            Place::Here(work, Some(waker)) => Some((work, waker, desk.number)),
            other => {
                // There is nothing in it to be dropped.
                std::mem::forget(std::mem::replace(&mut desk.place, other));
                None
            }
        }
    }

    /// The work has been polled, and is not done. Says whether its task is to be woken; returns the
    /// work if the task has gone.
    pub(super) fn put_back(
        &self,
        number: u64,
        work: Work,
        waker: Waker,
    ) -> Result<Option<Waker>, Work> {
        let mut desk = locked(&self.0);
        match desk.of(number) {
            Some(place @ Place::Away { .. }) => {
                let wake = matches!(place, Place::Away { called: true }).then(|| waker.clone());
                // As in `lend`.
                std::mem::forget(std::mem::replace(place, Place::Here(work, Some(waker))));
                Ok(wake)
            }
            _ => Err(work),
        }
    }

    /// The work is done. Its task is to be woken, to end. If the task has gone, a panic of the work
    /// has no receiver.
    fn end(&self, number: u64, panic: Option<Box<dyn Any + Send>>) -> Option<Box<dyn Any + Send>> {
        let mut desk = locked(&self.0);
        match desk.of(number) {
            Some(place @ Place::Away { .. }) => {
                *place = Place::Done(panic);
                None
            }
            _ => panic,
        }
    }

    /// The task has gone, even if its work is away.
    pub(super) fn leave(&self, number: u64) -> Place {
        locked(&self.0).of(number).map_or(Place::Nobody, std::mem::take)
    }
}

/// When it is dropped, no worker is driven on this thread any more.
struct Driving;

impl Drop for Driving {
    fn drop(&mut self) {
        DRIVING.set(false);
    }
}

/// The work of a worker, lent to a caller that is about to do it: to be driven at once.
pub(crate) struct Lent<'a> {
    bench: &'a Bench,
    number: u64,
    work: Work,
    waker: Waker,
}

/// Borrows the work of this worker. None if another caller does it, or it has not been
/// polled before.
pub(crate) fn lend(bench: &Bench) -> Option<Lent<'_>> {
    let (work, waker, number) = bench.lend()?;
    Some(Lent { bench, number, work, waker })
}

impl Lent<'_> {
    /// Polls it once, and gives it back. `then` runs in between, before that worker can be
    /// polled again.
    pub(crate) fn drive<T>(self, then: impl FnOnce() -> T) -> T {
        let Self { bench, number, mut work, waker } = self;
        DRIVING.set(true);
        let driving = Driving;
        let poll = || work.as_mut().poll(&mut Context::from_waker(&waker));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        drop(driving);
        match polled {
            Ok(Poll::Pending) => {
                let then = then();
                put_back(bench, number, work, waker);
                then
            }
            Ok(Poll::Ready(())) => finish(bench, number, (work, waker), None, then),
            Err(panic) => finish(bench, number, (work, waker), Some(panic), then),
        }
    }

    /// Gives it back as it was.
    pub(crate) fn leave(self) {
        put_back(self.bench, self.number, self.work, self.waker);
    }
}

fn put_back(bench: &Bench, number: u64, work: Work, waker: Waker) {
    match bench.put_back(number, work, waker) {
        Ok(wake) => wake.into_iter().for_each(Waker::wake),
        // Its contents are the user's, and do not concern the caller that drives it.
        Err(left) => discard(left),
    }
}

/// The work is done, perhaps by a panic.
#[cold]
fn finish<T>(
    bench: &Bench,
    number: u64,
    (work, waker): (Work, Waker),
    panic: Option<Box<dyn Any + Send>>,
    then: impl FnOnce() -> T,
) -> T {
    // As in its own task: its contents are settled before its end is known.
    DRIVING.set(true);
    let driving = Driving;
    discard(work);
    drop(driving);
    let then = then();
    discard(bench.end(number, panic));
    waker.wake();
    then
}
