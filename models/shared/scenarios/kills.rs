//! Workers that are killed: by an order, which a worker finds by itself, and by the abort of its
//! task, whichever it meets first. The next one begins, and neither a wake-up nor what was
//! announced or handed over is lost.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use greenroom_queue::{
    sync::{AtomicBool, AtomicWaker, Mutex, Notify, Ordering},
    wake::own_waker,
};

use super::{
    handoff::{Counter, Task, compare_told},
    wakes::{Pool, step_aside},
};
use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn},
    pool::membership::slot_state::{KILLED, SlotState},
};

/// What a runtime is told of a task.
#[derive(Default)]
struct Abort {
    asked: AtomicBool,
    waker: AtomicWaker,
}

impl Abort {
    fn abort(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// The steps of the product's `kill`.
    fn kill(&self, slot_state: &SlotState) {
        slot_state.order(KILLED);
        self.abort();
    }
}

/// A task that is dropped at its next poll once that was asked for.
struct Abortable {
    task: Option<Task>,
    abort: Arc<Abort>,
}

impl Future for Abortable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.abort.waker.register(cx.waker());
        if self.abort.asked.load(Ordering::SeqCst) {
            drop(self.task.take());
        }
        match &mut self.task {
            Some(task) => task.as_mut().poll(cx),
            None => Poll::Ready(()),
        }
    }
}

/// The only slot of a pool, whose first worker may be killed.
struct Slot {
    pool: Arc<Pool>,
    slot_state: SlotState,
    abort: Arc<Abort>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// The next task, for the runtime to begin.
    next: Option<Task>,
    /// The last worker has gone.
    over: bool,
}

/// How the worker counts.
enum Counts {
    NotYet,
    Awake,
    LiesDown,
}

struct Worker {
    slot: Arc<Slot>,
    counts: Counts,
}

impl Slot {
    /// Waits until one is announced.
    fn open() -> Arc<Self> {
        Arc::new(Self {
            pool: Pool::new(1, 1, 1),
            slot_state: SlotState::default(),
            abort: Arc::default(),
            state: Mutex::default(),
            changed: Notify::default(),
        })
    }

    fn task(self: &Arc<Self>) -> Task {
        let worker = Worker { slot: self.clone(), counts: Counts::NotYet };
        Box::pin(worker.work())
    }

    /// The thread of a runtime.
    fn run(self: &Arc<Self>) -> JoinHandle<()> {
        let (slot, abort) = (self.clone(), self.abort.clone());
        let first = Abortable { task: Some(self.task()), abort };
        spawn(move || {
            block_on(first);
            while let Some(task) = block_on(slot.next()) {
                block_on(task);
            }
        })
    }

    async fn next(&self) -> Option<Task> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock();
                if state.next.is_some() || state.over {
                    return state.next.take();
                }
            }
            changed.await;
        }
    }

    fn killer(self: &Arc<Self>) -> JoinHandle<()> {
        let slot = self.clone();
        spawn(move || slot.abort.kill(&slot.slot_state))
    }
}

impl Worker {
    fn is_over(&self) -> bool {
        self.slot.pool.is_over() || self.slot.slot_state.has(KILLED)
    }

    async fn work(mut self) {
        let slot = self.slot.clone();
        slot.pool.wake.enter(&slot.pool.watchdog);
        self.counts = Counts::Awake;
        while !self.is_over() {
            while !self.is_over() && slot.pool.claim_one() {
                step_aside().await;
            }
            if !self.is_over() {
                self.counts = Counts::LiesDown;
                let park_token = slot.pool.park(0, Some(own_waker().await));
                if slot.slot_state.has_orders() {
                    slot.pool.wake.call(0, &slot.pool.watchdog);
                }
                slot.pool.woken(0, park_token).await;
                self.counts = Counts::Awake;
            }
        }
    }
}

impl Drop for Worker {
    /// The product's drop of a `InFlight`, and then that of an `ExitGuard`.
    fn drop(&mut self) {
        let (slot, slot_state) = (&self.slot, &self.slot.slot_state);
        match self.counts {
            Counts::NotYet => {}
            Counts::Awake => slot.pool.wake.leave(&slot.pool.watchdog),
            Counts::LiesDown => slot.pool.wake.forget(0, &slot.pool.watchdog),
        }
        let goes_on = slot_state.has(KILLED) && !slot.pool.is_over();
        if goes_on {
            slot_state.done(KILLED);
        }
        let next = goes_on.then(|| slot.task());
        let mut state = slot.state.lock();
        state.over = next.is_none();
        state.next = next;
        drop(state);
        slot.changed.notify_one();
    }
}

/// Awake, on its way to park, or idle: it ends, and the next one finds what was announced.
pub fn a_worker_that_is_killed_wherever_it_is() {
    check(Effort::Changes(3), || {
        let slot = Slot::open();
        let threads = [slot.run(), slot.killer()];
        slot.pool.send(0);
        slot.pool.finish(threads);
    });
}

/// It is answered by the worker, or by another after all.
pub fn a_message_that_is_handed_to_a_worker_that_is_killed() {
    check(Effort::Changes(2), || {
        let (counter, task) = Counter::with(false, 2);
        let other = counter.pool.asleep(1);
        let abort = Arc::new(Abort::default());
        let killed = Abortable { task: Some(task), abort: abort.clone() };
        let killed = spawn(move || block_on(killed));
        let slot_state = counter.slot_state.clone();
        let killer = spawn(move || abort.kill(&slot_state));
        let told = block_on(counter.hand_and_wait(0));
        counter.announce();
        counter.pool.finish([other, killed, killer]);
        counter.assert_shut();
        compare_told(0, told);
    });
}
