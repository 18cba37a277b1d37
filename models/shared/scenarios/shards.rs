//! Pools without keys: the swap of the inbox, the ready and the attended bits, and waiting for room.

use super::player::{Handler, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::{core::Plan, crowd::KeyBounds},
    sync::run_on,
};

fn plan(workers: usize, awake: usize, capacity: usize) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity,
        awake,
        keyed: false,
        hashes: 1,
        quick: false,
        calls: false,
        bounds: KeyBounds::NONE,
        credit: 1,
    }
}

/// Nothing is left where nobody looks.
pub fn a_sender_and_the_only_worker() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1, 8), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.send(0, 1).expect("it is open");
        pool.send(0, 2).expect("it is open");
        pool.finish([worker]);
    });
}

/// As before, with a sender that waits for room.
pub fn a_sender_at_the_bound_and_the_only_worker() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, 1), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.send(0, 1).expect("it is open");
        pool.send(0, 2).expect("it is open");
        pool.finish([worker]);
    });
}

/// Quick handlers: a shard that is attended is left to its worker, and is not left alone.
pub fn two_workers_that_keep_to_a_shard() {
    check(Effort::Changes(1), || {
        let plan = Plan { quick: true, ..plan(2, 2, 8) };
        let pool = Pool::new(plan, 2, |_| Handler::Returns);
        let threads = [pool.worker(0), pool.worker(1)];
        pool.send(0, 1).expect("it is open");
        pool.send(0, 2).expect("it is open");
        pool.finish(threads);
    });
}

/// Point 1: what lies behind a message whose handler suspends is taken by others.
pub fn two_workers_of_which_one_suspends() {
    check(Effort::Changes(2), || {
        let plan = Plan { quick: true, ..plan(2, 1, 8) };
        let pool = Pool::new(plan, 2, |_| Handler::Suspends);
        let threads = [pool.worker(0), pool.sleeper(1)];
        pool.send(0, 1).expect("it is open");
        pool.send(0, 2).expect("it is open");
        pool.finish(threads);
    });
}

/// A shard with messages whose attendant goes: who departs looks afterwards.
pub fn a_worker_that_departs_and_leaves_work_behind() {
    check(Effort::Changes(2), || {
        let plan = Plan { quick: true, ..plan(2, 2, 8) };
        let pool = Pool::new(plan, 1, |_| Handler::Returns);
        let worker = pool.worker(0);
        let leaving = spawn({
            let pool = pool.clone();
            pool.core.wake.enter(&pool.core.clock.bell);
            move || {
                if let Some((index, alone)) = pool.core.wake.attend(0, false) {
                    pool.core.wake.depart(index, alone);
                }
                pool.core.wake.leave(&pool.core.clock.bell);
            }
        });
        pool.send(0, 1).expect("it is open");
        pool.finish([worker, leaving]);
    });
}

/// What goes back to the front of a queue is found there.
pub fn a_message_that_comes_back_and_a_worker_that_lies_down() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, 8), 2, |number| match number {
            1 => Handler::Fails,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sender(0, &[1, 2])];
        pool.wait_and_come_due();
        pool.finish(threads);
    });
}

/// Senders and workers on different threads of the runtime: the one that drains from afar gives way.
pub fn a_sender_elsewhere_that_calls_a_worker_to_its_thread() {
    check(Effort::Large, || {
        let plan = Plan { quick: true, ..plan(3, 2, 4) };
        let pool = Pool::new(plan, 6, |number| match number {
            3 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.worker(1), pool.sleeper(2), pool.sender(0, &[1, 2, 3])];
        run_on(2);
        for number in [4, 5, 6] {
            pool.send(0, number).expect("it is open");
            yield_now();
        }
        pool.finish(threads);
    });
}

/// Point 14: what is accepted while the pool closes is handled; what is not comes back to its sender.
pub fn a_push_and_a_pool_that_closes() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, 8), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        let closing = spawn({
            let pool = pool.clone();
            move || pool.core.close()
        });
        let first = pool.send(0, 1);
        let second = pool.send(0, 2);
        closing.join().expect("it did not panic");
        assert!(first.is_ok() || second.is_err(), "it stays closed");
        assert!(pool.send(0, 3).is_err(), "it is closed");
        while first.is_ok() && !pool.has_handled(1) || second.is_ok() && !pool.has_handled(2) {
            yield_now();
        }
        pool.core.end();
        worker.join().expect("it did not panic");
    });
}
