//! Calls in place: who calls an idle worker polls it in the caller's own task, instead of leaving that to the runtime.
//!
//! A call through the runtime is two changes of tasks, which cost more than all the rest of it. Here the caller, having queued
//! its message and taken an idle worker off the list, borrows the future of that worker's task, polls it once, and puts it back:
//! the reply is there before the caller has waited for it. Where the handler suspends, what it waits for wakes its own task, as
//! ever, and the caller waits for the reply, as ever.
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
//! A call to a pool without keys is not even queued, where nothing waits: its message is left at the worker's
//! [`Hatch`](super::hatch::Hatch), and taken from there by the work that is polled.
//!
//! The price: two short locks for each turn of a worker's task, and a box for its future, in pools that ask for it; and that a
//! handler may run inside the caller's turn. So it is done only where handlers are known to be quick, on the runtime that the
//! worker's task runs on, one at a time, and for one message.

use std::{
    any::Any,
    cell::Cell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    discard::discard,
    lock::{Lock, locked},
    seat::Seat,
};

/// What the task of a worker does.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One call in so many goes the usual way, on each thread: a task that does nothing but call has to let others run.
const IN_A_ROW: u32 = 512;

/// One call in so many is timed.
const CALLS_PER_TIMING: u32 = 8;

thread_local! {
    /// A worker is driven on this thread by somebody who calls it.
    static DRIVING: Cell<bool> = const { Cell::new(false) };
    /// How many have been.
    static DRIVEN: Cell<u32> = const { Cell::new(0) };
}

/// True while the caller is polled by somebody who calls it, and who waits to go on.
pub(crate) fn is_driving() -> bool {
    DRIVING.get()
}

/// True for one call in a few: handlers that take long (any more) must not run in their callers' turns.
pub(crate) fn is_timed() -> bool {
    DRIVEN.get().is_multiple_of(CALLS_PER_TIMING)
}

/// False for who is driven himself, and where others have to have their turn.
pub(crate) fn may_drive() -> bool {
    let driven = DRIVEN.get().wrapping_add(1);
    DRIVEN.set(driven);
    !driven.is_multiple_of(IN_A_ROW) && !is_driving()
}

/// Where the work of one task lies.
pub(crate) struct Bench(Lock<Place>);

enum Place {
    /// To be polled; with the waker of its task, once that has been polled.
    Here(Work, Option<Waker>),
    /// Somebody polls it. `called` once its task wants to.
    Away { called: bool },
    /// It has ended, perhaps by a panic.
    Done(Option<Box<dyn Any + Send>>),
    /// Its task has gone.
    Nobody,
}

impl Bench {
    /// The task comes to poll its work.
    fn come(&self) -> Place {
        let mut place = locked(&self.0);
        let away = Place::Away { called: matches!(*place, Place::Away { .. }) };
        std::mem::replace(&mut *place, away)
    }

    /// Lends the work to somebody else than its task, with that task's waker.
    fn lend(&self) -> Option<(Work, Waker)> {
        let mut place = locked(&self.0);
        match std::mem::replace(&mut *place, Place::Away { called: false }) {
            Place::Here(work, Some(waker)) => Some((work, waker)),
            other => {
                *place = other;
                None
            }
        }
    }

    /// The work has been polled, and is not done. Says whether its task is to be woken; gives the work back where that has gone.
    fn put_back(&self, work: Work, waker: Waker) -> Result<Option<Waker>, Work> {
        let mut place = locked(&self.0);
        match *place {
            Place::Away { called } => {
                let wake = called.then(|| waker.clone());
                // There is nothing in it to be dropped.
                std::mem::forget(std::mem::replace(&mut *place, Place::Here(work, Some(waker))));
                Ok(wake)
            }
            _ => Err(work),
        }
    }

    /// The work is done. Its task is to be woken, to end. Where that has gone, nobody wants to know what it panicked with.
    fn end(&self, panic: Option<Box<dyn Any + Send>>) -> Option<Box<dyn Any + Send>> {
        let mut place = locked(&self.0);
        match *place {
            Place::Away { .. } => {
                *place = Place::Done(panic);
                None
            }
            _ => panic,
        }
    }

    /// The task has gone, whoever has its work.
    fn leave(&self) -> Place {
        std::mem::replace(&mut *locked(&self.0), Place::Nobody)
    }
}

/// The task of a worker whose work others may poll in its place.
pub(crate) struct Task(Arc<Bench>);

impl Task {
    /// Does this work in this slot.
    pub(crate) fn new(seat: &Seat, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let bench = Arc::new(Bench(Lock::new(Place::Here(Box::pin(work), None))));
        let before = locked(&seat.bench).replace(bench.clone());
        drop(before);
        Self(bench)
    }
}

impl Future for Task {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut work = match self.0.come() {
            Place::Here(work, _) => work,
            Place::Away { .. } => return Poll::Pending,
            Place::Done(Some(panic)) => resume_unwind(panic),
            Place::Done(None) | Place::Nobody => return Poll::Ready(()),
        };
        if work.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Nobody else polls the task meanwhile: it has not called.
        let back = self.0.put_back(work, cx.waker().clone());
        debug_assert!(matches!(back, Ok(None)));
        Poll::Pending
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.0.leave());
    }
}

/// True again, when it is dropped, that nobody is driven on this thread.
struct Driving;

impl Drop for Driving {
    fn drop(&mut self) {
        DRIVING.set(false);
    }
}

/// The work of a worker, with who is about to do it in its place: to be driven at once.
pub(crate) struct Lent {
    bench: Arc<Bench>,
    work: Work,
    waker: Waker,
}

/// Borrows the work of this worker. None where somebody else does it, or it has not been polled before.
pub(crate) fn lend(seat: &Seat) -> Option<Lent> {
    let bench = locked(&seat.bench).clone()?;
    let (work, waker) = bench.lend()?;
    Some(Lent { bench, work, waker })
}

impl Lent {
    /// Polls it once, and gives it back. `then` comes between the two: nobody else polls that worker before.
    pub(crate) fn drive<T>(self, then: impl FnOnce() -> T) -> T {
        let Self { bench, mut work, waker } = self;
        DRIVING.set(true);
        let driving = Driving;
        let poll = || work.as_mut().poll(&mut Context::from_waker(&waker));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        drop(driving);
        match polled {
            Ok(Poll::Pending) => {
                let then = then();
                match bench.put_back(work, waker) {
                    Ok(wake) => wake.into_iter().for_each(Waker::wake),
                    // What it holds is the user's, and who drives it has nothing to do with that.
                    Err(left) => discard(left),
                }
                then
            }
            Ok(Poll::Ready(())) => finish(&bench, work, waker, None, then),
            Err(panic) => finish(&bench, work, waker, Some(panic), then),
        }
    }
}

/// The work is done, perhaps by a panic.
#[cold]
fn finish<T>(
    bench: &Bench,
    work: Work,
    waker: Waker,
    panic: Option<Box<dyn Any + Send>>,
    then: impl FnOnce() -> T,
) -> T {
    // As in its own task: what it holds is settled before anybody hears of its end.
    DRIVING.set(true);
    let driving = Driving;
    discard(work);
    drop(driving);
    let then = then();
    discard(bench.end(panic));
    waker.wake();
    then
}
