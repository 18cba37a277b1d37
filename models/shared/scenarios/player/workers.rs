//! Threads of workers, and what becomes of a worker's place.

use std::sync::Arc;

use greenroom_queue::{
    discard::discard,
    sync::{Ordering, fence, run_on},
};

use super::{PoolOf, message::Keyed, worker::Player};
use crate::pool::core::mail::{clear_mailbox, take_mailbox};
use crate::pool::core::{place::release, take::take_ready};
use crate::{
    ExitReason,
    checker::{JoinHandle, block_on, spawn},
    pool::{membership::slot_state::LEAVE, worker::in_flight::RunState},
};

impl<K: Keyed> PoolOf<K> {
    /// A worker that is awake before anything else happens.
    pub(crate) fn worker(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.frame.clock.watchdog);
        let pool = self.clone();
        spawn(move || Player::new(&pool, worker, RunState::Awake).work())
    }

    /// As `worker`, with a task that a stop waits for. A worker that is told to leave is gone
    /// afterwards.
    pub(crate) fn member(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.frame.clock.watchdog);
        self.task(move |pool| {
            Player::new(pool, worker, RunState::Awake).work();
            if pool.core.frame.membership.slots.at(worker).has(LEAVE) {
                pool.core.left(worker, &ExitReason::Normal);
            }
        })
    }

    /// What a stop waits for: the steps of the product's `TaskGuard`, but for the last one in a
    /// pool that nobody stops.
    pub(crate) fn task(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) -> JoinHandle<()> {
        self.core.frame.lifecycle.running.fetch_add(1, Ordering::Relaxed);
        let pool = self.clone();
        spawn(move || {
            work(&pool);
            pool.core.frame.lifecycle.running.fetch_sub(1, Ordering::SeqCst);
            pool.core.frame.lifecycle.progress.notify_waiters();
        })
    }

    /// As `worker`, on another thread of the runtime than the others.
    pub(crate) fn worker_elsewhere(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        self.core.queue.wake.enter(&self.core.frame.clock.watchdog);
        let pool = self.clone();
        spawn(move || {
            run_on(2);
            Player::new(&pool, worker, RunState::Awake).work();
        })
    }

    /// A worker whose handler has waited before anything else happens, and that goes on where
    /// handlers usually do.
    pub(crate) fn uncounted(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            Player::new(&pool, worker, RunState::Uncounted).work();
        })
    }

    /// A worker that sleeps before anything else happens.
    pub(crate) fn sleeper(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let park_token = self.core.queue.wake.park(worker, None);
        let pool = self.clone();
        spawn(move || {
            let mut player = Player::new(&pool, worker, RunState::Parked);
            block_on(player.sleep(park_token, false));
            player.work();
        })
    }

    /// Starts the next message and has done with it, where there is one: what a worker does,
    /// without one that sleeps.
    pub(crate) fn start_one(&self, worker: usize) -> bool {
        let Some((source, entry)) = take_ready(&self.core, worker, &mut 0) else {
            return false;
        };
        let started = &self.core.frame.membership.slots.at(worker).started;
        started.store(started.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let first = self.ledger().handled.insert(entry.message);
        assert!(first, "every message is handled once");
        discard(entry.key);
        release(&self.core.queue, worker, source);
        fence(Ordering::SeqCst);
        self.core.serve_waiters();
        true
    }

    /// The worker of a slot has gone; the slot is the next worker's from here on. What is left in
    /// the mailbox is seen to by the thread that is begun.
    pub(crate) fn leave(self: &Arc<Self>, slot: usize) -> JoinHandle<()> {
        let taken = take_mailbox(&self.core, slot);
        let pool = self.clone();
        spawn(move || {
            if let Some(taken) = taken {
                clear_mailbox(&pool.core, taken, &ExitReason::Normal);
            }
        })
    }

    /// Takes a message out of a worker's mailbox, whose room is needed. Its permit goes back.
    pub(crate) fn evict(&self, worker: usize) {
        if self.core.mailbox(worker).evict().is_some() {
            self.core.queue.permits.give(1, &*self.core);
        }
    }
}
