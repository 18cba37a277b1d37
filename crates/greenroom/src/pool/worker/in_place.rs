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
//!            task polls, caller runs                returned Pending
//!   Here ──────────────────────────────▶ Away ─────────────────────────▶ Here   (and the task is woken, if it called meanwhile)
//!    │                                     │ returned Ready, panicked
//!    │ task dropped                        ├─────────────────────────────▶ Done  (the task is woken, and ends)
//!    ▼                                     │ task dropped
//!  Nobody ◀────────────────────────────────┘                                     (who has the work drops it)
//! ```
//!
//! If nothing waits, a call to a pool without keys is not even queued: its message is left at the
//! worker's [`HandoffSlot`](greenroom_queue::handoff::HandoffSlot), and taken from there by the
//! work that is polled.
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

use greenroom_queue::{
    discard::{discard, wake_tasks},
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
    /// A worker is run on this thread by its caller.
    static RUN_BY_CALLER: Cell<bool> = const { Cell::new(false) };
    /// How many have been.
    static CALLER_RUNS: Cell<u32> = const { Cell::new(0) };
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
pub(crate) fn is_run_by_caller() -> bool {
    RUN_BY_CALLER.get()
}

/// True for one call in a few: handlers that have become slow must not run in their callers' turns.
pub(crate) fn is_timed() -> bool {
    CALLER_RUNS.get().is_multiple_of(CALLS_PER_TIMING)
}

/// False for a task that is run by a caller itself, and if others must have their turn.
pub(crate) fn may_run() -> bool {
    let runs = CALLER_RUNS.get().wrapping_add(1);
    CALLER_RUNS.set(runs);
    !runs.is_multiple_of(IN_A_ROW) && !is_run_by_caller()
}

/// The work of a slot's tasks: the next may begin while the one before is away, or runs its last
/// hook. Callers are lent that of the newest.
#[derive(Default)]
pub(crate) struct WorkCell(Lock<TaskWork>);

#[derive(Default)]
struct TaskWork {
    /// Of the task whose work it is; 0 before the first.
    number: u64,
    state: WorkState,
    /// Of tasks before it that have not gone yet.
    earlier: Vec<(u64, WorkState)>,
}

#[derive(Default)]
pub(crate) enum WorkState {
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

impl TaskWork {
    /// The work of this task, if it still has one.
    fn of(&mut self, number: u64) -> Option<&mut WorkState> {
        if self.number == number {
            return Some(&mut self.state);
        }
        self.earlier.iter_mut().find(|(earlier, _)| *earlier == number).map(|(_, state)| state)
    }
}

impl WorkCell {
    /// The next task begins, with this work. Returns its number.
    pub(crate) fn begin(&self, work: Work) -> u64 {
        let mut task = locked(&self.0);
        let before = (task.number, std::mem::replace(&mut task.state, WorkState::Here(work, None)));
        if !matches!(before.1, WorkState::Nobody) {
            task.earlier.push(before);
        }
        task.number += 1;
        task.number
    }

    /// The task comes to poll its work.
    pub(crate) fn come(&self, number: u64) -> WorkState {
        let mut task = locked(&self.0);
        let Some(state) = task.of(number) else { return WorkState::Nobody };
        let away = WorkState::Away { called: matches!(*state, WorkState::Away { .. }) };
        std::mem::replace(state, away)
    }

    /// Lends the work to a caller, with the waker and the number of its task.
    fn lend(&self) -> Option<(Work, Waker, u64)> {
        let mut task = locked(&self.0);
        match std::mem::replace(&mut task.state, WorkState::Away { called: false }) {
            WorkState::Here(work, Some(waker)) => Some((work, waker, task.number)),
            other => {
                // There is nothing in it to be dropped.
                std::mem::forget(std::mem::replace(&mut task.state, other));
                None
            }
        }
    }

    /// The work has been polled, and is not done. Says whether its task is to be woken; returns the
    /// work if the task has gone.
    pub(crate) fn put_back(
        &self,
        number: u64,
        work: Work,
        waker: Waker,
    ) -> Result<Option<Waker>, Work> {
        let mut task = locked(&self.0);
        match task.of(number) {
            Some(state @ WorkState::Away { .. }) => {
                let wake = matches!(state, WorkState::Away { called: true }).then(|| waker.clone());
                // As in `lend`.
                std::mem::forget(std::mem::replace(state, WorkState::Here(work, Some(waker))));
                Ok(wake)
            }
            _ => Err(work),
        }
    }

    /// The work is done. Its task is to be woken, to end. If the task has gone, a panic of the work
    /// has no receiver.
    fn end(&self, number: u64, panic: Option<Box<dyn Any + Send>>) -> Option<Box<dyn Any + Send>> {
        let mut task = locked(&self.0);
        match task.of(number) {
            Some(state @ WorkState::Away { .. }) => {
                *state = WorkState::Done(panic);
                None
            }
            _ => panic,
        }
    }

    /// The task has gone, even if its work is away.
    pub(crate) fn leave(&self, number: u64) -> WorkState {
        let mut task = locked(&self.0);
        let left = task.of(number).map_or(WorkState::Nobody, std::mem::take);
        task.earlier.retain(|(earlier, _)| *earlier != number);
        left
    }
}

/// When it is dropped, no worker is run by a caller on this thread any more.
struct RunByCaller;

impl Drop for RunByCaller {
    fn drop(&mut self) {
        RUN_BY_CALLER.set(false);
    }
}

/// The work of a worker, lent to a caller that is about to do it: to be run at once.
pub(crate) struct LentWork<'a> {
    cell: &'a WorkCell,
    number: u64,
    work: Work,
    waker: Waker,
}

/// Borrows the work of this worker. None if another caller does it, or it has not been
/// polled before.
pub(crate) fn lend(cell: &WorkCell) -> Option<LentWork<'_>> {
    let (work, waker, number) = cell.lend()?;
    Some(LentWork { cell, number, work, waker })
}

impl LentWork<'_> {
    /// Polls it once, and gives it back. `then` runs in between, before that worker can be
    /// polled again.
    pub(crate) fn run<T>(self, then: impl FnOnce() -> T) -> T {
        let Self { cell, number, mut work, waker } = self;
        RUN_BY_CALLER.set(true);
        let run_by_caller = RunByCaller;
        let poll = || work.as_mut().poll(&mut Context::from_waker(&waker));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        drop(run_by_caller);
        match polled {
            Ok(Poll::Pending) => {
                let then = then();
                put_back(cell, number, work, waker);
                then
            }
            Ok(Poll::Ready(())) => finish(cell, number, (work, waker), None, then),
            Err(panic) => finish(cell, number, (work, waker), Some(panic), then),
        }
    }

    /// Gives it back as it was.
    pub(crate) fn leave(self) {
        put_back(self.cell, self.number, self.work, self.waker);
    }
}

fn put_back(cell: &WorkCell, number: u64, work: Work, waker: Waker) {
    match cell.put_back(number, work, waker) {
        Ok(wake) => wake.into_iter().for_each(|waker| wake_tasks(|| waker.wake())),
        // Its contents are the user's, and do not concern the caller that runs it.
        Err(left) => discard(left),
    }
}

/// The work is done, perhaps by a panic.
#[cold]
fn finish<T>(
    cell: &WorkCell,
    number: u64,
    (work, waker): (Work, Waker),
    panic: Option<Box<dyn Any + Send>>,
    then: impl FnOnce() -> T,
) -> T {
    // As in its own task: its contents are settled before its end is known.
    RUN_BY_CALLER.set(true);
    let run_by_caller = RunByCaller;
    discard(work);
    drop(run_by_caller);
    let then = then();
    discard(cell.end(number, panic));
    wake_tasks(|| waker.wake());
    then
}
