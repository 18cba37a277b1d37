//! Workers whose callers poll them: one does so at a time, and no wake-up is lost between a task and who has its work.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use greenroom_queue::{
    sync::{self, AtomicWaker},
    wake::own_waker,
};

use super::wakes::Pool;
use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn, yield_now},
    pool::{
        membership::slot_state::SlotState,
        worker::{in_place::lend, task::Task},
    },
};

/// Polls the work of this slot, once. False where somebody else does so.
fn run_by_caller(slot_state: &SlotState) -> bool {
    lend(&slot_state.work).map(|lent| lent.run(|| {})).is_some()
}

/// Work that waits until it has been called so often, and what has become of it.
#[derive(Default)]
struct Work {
    slot_state: Arc<SlotState>,
    calls: sync::AtomicU32,
    /// Calls after which it is done.
    expected: u32,
    /// And how.
    panics: bool,
    /// When it is dropped.
    panics_late: bool,
    waker: AtomicWaker,
    /// Polls that have come to their end.
    polls: sync::AtomicU32,
    /// What follows is not seen by the checker.
    is_polled: AtomicBool,
    is_done: AtomicBool,
    dropped: AtomicU32,
    /// It was polled by two at once, or after its end.
    ill: AtomicBool,
}

impl Work {
    fn new(slot_state: &Arc<SlotState>, expected: u32) -> Arc<Self> {
        Arc::new(Self { slot_state: slot_state.clone(), expected, ..Self::default() })
    }

    fn call(&self) {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.waker.wake();
    }

    /// The task that does it.
    fn task(self: &Arc<Self>) -> Task {
        Task::new(&self.slot_state, Doing(self.clone()))
    }

    /// The thread of a runtime that polls a task until it ends. True where that panics, which the runtime catches.
    fn run(self: &Arc<Self>) -> JoinHandle<bool> {
        let task = self.task();
        spawn(move || catch_unwind(AssertUnwindSafe(|| block_on(task))).is_err())
    }

    /// One who runs it, once.
    fn driver(self: &Arc<Self>) -> JoinHandle<bool> {
        let work = self.clone();
        spawn(move || run_by_caller(&work.slot_state))
    }

    /// Waits until the task has polled it, and runs it then to its end, unless the task comes
    /// first: a runtime may poll for no reason.
    fn run_to_its_end(&self) {
        while self.polls.load(Ordering::Acquire) == 0 {
            yield_now();
        }
        self.calls.store(self.expected, Ordering::Release);
        while !run_by_caller(&self.slot_state) && self.dropped.load(Ordering::Relaxed) == 0 {
            yield_now();
        }
    }

    fn finish(&self) {
        assert!(!self.ill.load(Ordering::Relaxed), "one polls it at a time, until it is done");
        assert_eq!(self.dropped.load(Ordering::Relaxed), 1, "it is dropped once");
    }
}

struct Doing(Arc<Work>);

impl Future for Doing {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let work = &*self.0;
        if work.is_polled.swap(true, Ordering::Relaxed) {
            work.ill.store(true, Ordering::Relaxed);
        }
        work.waker.register(cx.waker());
        let done = work.calls.load(Ordering::Acquire) >= work.expected;
        work.polls.fetch_add(1, Ordering::AcqRel);
        if !done {
            work.is_polled.store(false, Ordering::Relaxed);
            return Poll::Pending;
        }
        work.is_done.store(true, Ordering::Relaxed);
        if work.panics {
            // Not `panic!`, of which the checker's hook would tell.
            resume_unwind(Box::new("as planned"));
        }
        Poll::Ready(())
    }
}

impl Drop for Doing {
    /// What users' drops do may need the slot, and who runs it.
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
        run_by_caller(&self.0.slot_state);
        if self.0.panics_late {
            resume_unwind(Box::new("as planned"));
        }
    }
}

/// Whoever has the work: the task hears of every call.
pub fn a_task_that_is_called_while_a_caller_runs_it() {
    check(Effort::Changes(3), || {
        let work = Work::new(&Arc::default(), 2);
        let (task, driver) = (work.run(), work.driver());
        work.call();
        work.call();
        driver.join().expect("it did not panic");
        assert!(!task.join().expect("it did not panic"));
        work.finish();
    });
}

/// As before; one of them comes in vain.
pub fn a_task_that_two_callers_run() {
    check(Effort::Changes(2), || {
        let work = Work::new(&Arc::default(), 1);
        let (task, driver) = (work.run(), work.driver());
        run_by_caller(&work.slot_state);
        work.call();
        driver.join().expect("it did not panic");
        assert!(!task.join().expect("it did not panic"));
        work.finish();
    });
}

/// Whoever has the work drops it.
pub fn a_task_that_is_dropped_while_a_caller_runs_it() {
    check(Effort::Changes(4), || {
        let work = Work::new(&Arc::default(), 2);
        let driver = work.driver();
        work.calls.store(1, Ordering::Release);
        poll_once_and_drop(work.task());
        driver.join().expect("it did not panic");
        work.finish();
    });
}

/// The runtime catches what the drop of a task does, and who runs it hears nothing of it either.
pub fn work_whose_drop_panics_while_a_caller_runs_it() {
    check(Effort::Changes(4), || {
        let work = Arc::new(Work { expected: 1, panics_late: true, ..Work::default() });
        let driver = work.driver();
        let task = work.task();
        let _ = catch_unwind(AssertUnwindSafe(|| poll_once_and_drop(task)));
        driver.join().expect("it did not panic");
        work.finish();
    });
}

pub(super) fn poll_once_and_drop(mut task: Task) {
    let _ = block_on(poll_fn(|cx| Poll::Ready(Pin::new(&mut task).poll(cx))));
    drop(task);
}

/// The task of work that is done ends.
pub fn work_that_ends_while_a_caller_runs_it() {
    check(Effort::Changes(4), || {
        let work = Work::new(&Arc::default(), 1);
        let task = work.run();
        work.run_to_its_end();
        assert!(!task.join().expect("it did not panic"));
        work.finish();
    });
}

/// The panic goes to the task, and not to who drove it.
pub fn work_that_panics_while_a_caller_runs_it() {
    check(Effort::Changes(4), || {
        let work = Arc::new(Work { expected: 1, panics: true, ..Work::default() });
        let task = work.run();
        work.run_to_its_end();
        assert!(task.join().expect("it was caught"), "the runtime has it");
        work.finish();
    });
}

/// Who runs the one before does not touch the next, and who runs the next polls it alone.
pub fn the_next_task_of_a_slot() {
    check(Effort::Changes(3), || {
        let slot_state = Arc::default();
        let (before, next) = (Work::new(&slot_state, 1), Work::new(&slot_state, 1));
        let driver = before.driver();
        let task = spawn({
            let (before, next) = (before.clone(), next.clone());
            move || {
                poll_once_and_drop(before.task());
                block_on(next.task());
            }
        });
        next.call();
        driver.join().expect("it did not panic");
        task.join().expect("it did not panic");
        before.finish();
        next.finish();
    });
}

/// The hook of a worker whose slot is enabled meanwhile: the one before goes on to its end, whoever
/// has its work.
pub fn a_task_that_goes_on_beside_the_next_of_its_slot() {
    check(Effort::Changes(2), || {
        let slot_state = Arc::default();
        let (before, next) = (Work::new(&slot_state, 1), Work::new(&slot_state, 1));
        let (driver, task) = (before.driver(), before.run());
        let next_task = next.run();
        before.call();
        next.call();
        driver.join().expect("it did not panic");
        for task in [task, next_task] {
            assert!(!task.join().expect("it did not panic"));
        }
        for work in [before, next] {
            work.finish();
            assert!(work.is_done.load(Ordering::Relaxed), "it was not cut off");
        }
    });
}

/// A worker that does what those of `wakes` do, and may be dropped where it waits.
struct Worker {
    pool: Arc<Pool>,
    number: usize,
    /// Otherwise it is awake.
    lies_down: bool,
}

impl Worker {
    async fn work(mut self) {
        while !self.pool.is_over() {
            while self.pool.claim_one() {
                step_aside().await;
            }
            if !self.pool.is_over() {
                self.lies_down = true;
                let park_token = self.pool.park(self.number, Some(own_waker().await));
                self.pool.woken(self.number, park_token).await;
                self.lies_down = false;
            }
        }
    }
}

impl Drop for Worker {
    /// The product's drop of a `InFlight`.
    fn drop(&mut self) {
        match self.lies_down {
            true => self.pool.wake.forget(self.number, &self.pool.watchdog),
            false => self.pool.wake.leave(&self.pool.watchdog),
        }
    }
}

/// As the product's: others have a turn, and then it is polled again.
pub(super) async fn step_aside() {
    let mut stepped = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The task of a worker that is awake before anything else happens.
fn spawn_task(pool: &Arc<Pool>, number: usize, slot_state: &Arc<SlotState>) -> Task {
    pool.wake.enter(&pool.watchdog);
    let worker = Worker { pool: pool.clone(), number, lies_down: false };
    Task::new(slot_state, worker.work())
}

/// The steps of the product's `announce_in_place`.
pub(super) fn announce_in_place(pool: &Pool, shard: usize, slots: &[Arc<SlotState>]) {
    pool.wake.mark(shard);
    if let Some(picked) = pool.wake.pick_for(Some(shard), &pool.watchdog)
        && !slots.get(picked.worker).is_some_and(|slot_state| run_by_caller(slot_state))
    {
        picked.wake();
    }
}

/// Point 7, where callers poll the worker: it is polled by its caller, or woken, or sees the bit.
pub fn callers_and_a_worker_that_parks() {
    check(Effort::Changes(2), || {
        let (pool, slots) = (Pool::new(1, 1, 2), [Arc::new(SlotState::default())]);
        let task = spawn_task(&pool, 0, &slots[0]);
        let worker = spawn(move || block_on(task));
        let caller = spawn({
            let (pool, slots) = (pool.clone(), slots.clone());
            move || announce_in_place(&pool, 0, &slots)
        });
        announce_in_place(&pool, 1, &slots);
        pool.finish([worker, caller]);
    });
}

/// Point 8, where its caller polls it: a wake-up that it was given goes to another, or was of use.
pub fn a_caller_and_a_worker_that_is_dropped() {
    check(Effort::Changes(3), || {
        let (pool, slots) = (Pool::new(2, 1, 1), [Arc::new(SlotState::default())]);
        let other = pool.asleep(1);
        let task = spawn_task(&pool, 0, &slots[0]);
        let dropped = spawn(move || poll_once_and_drop(task));
        announce_in_place(&pool, 0, &slots);
        pool.finish([other, dropped]);
    });
}
