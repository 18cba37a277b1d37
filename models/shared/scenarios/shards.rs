//! Pools without keys: the swap of the inbox, the ready bits and those of affinity, and waiting for
//! room.

use greenroom_queue::{backlog::KeyBounds, permits::Refused, sync::run_on};

use super::player::{Handler, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::core::Plan,
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

/// Quick handlers: a shard to which a worker keeps is left to it, and is not left alone.
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

/// The same where that is usual: nobody keeps to a shard, and none is left alone.
pub fn two_workers_whose_handlers_usually_wait() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(2, 2, 8), 2, |_| Handler::Suspends);
        pool.core.queue.wake.set_waits(true);
        let threads = [pool.worker(0), pool.sleeper(1)];
        pool.send(0, 1).expect("it is open");
        pool.send(0, 2).expect("it is open");
        pool.finish(threads);
    });
}

/// The same with workers that do not count as awake: none keeps what others are not told of.
pub fn a_sender_and_two_uncounted_workers() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(2, 1, 8), 2, |number| match number {
            1 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [pool.uncounted(0), pool.uncounted(1)];
        for number in [1, 2] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// What is usual changes to and fro while workers do not count as awake: in the end, none does.
pub fn uncounted_workers_and_what_is_usual_changes() {
    check(Effort::Large, || {
        let plan = Plan { shards: 2, ..plan(3, 2, 4) };
        let pool = Pool::new(plan, 8, |number| match number {
            1 | 2 | 11 | 13 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [
            pool.uncounted(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(1, &[11, 12, 13, 14]),
            spawn({
                let pool = pool.clone();
                move || {
                    for waits in [false, true, false, true] {
                        yield_now();
                        pool.core.queue.wake.set_waits(waits);
                    }
                }
            }),
        ];
        for number in [1, 2, 3, 4] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// A shard with messages whose worker goes: who leaves looks afterwards.
pub fn a_worker_that_releases_its_affinity_and_leaves_work_behind() {
    check(Effort::Changes(2), || {
        let plan = Plan { quick: true, ..plan(2, 2, 8) };
        let pool = Pool::new(plan, 1, |_| Handler::Returns);
        let worker = pool.worker(0);
        let leaving = spawn({
            let pool = pool.clone();
            pool.core.queue.wake.enter(&pool.core.frame.clock.watchdog);
            move || {
                if let Some((index, true)) = pool.core.queue.wake.acquire_affinity(0, false) {
                    pool.core.queue.wake.release_affinity(index);
                }
                pool.core.queue.wake.leave(&pool.core.frame.clock.watchdog);
            }
        });
        pool.send(0, 1).expect("it is open");
        pool.finish([worker, leaving]);
    });
}

/// What goes back to the front of a queue is found there.
pub fn a_message_that_comes_back_and_a_worker_that_parks() {
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

/// Permits at once for which a third message in a row is queued without a look at anything else.
const FAST: u64 = 4;

/// Sends two messages, of which the second finds the shard scheduled.
fn send_until_it_is_fast(pool: &Pool) {
    for number in [1, 2] {
        pool.send(0, number).expect("it is open");
    }
    assert!(
        pool.core.queue.shards[0].inbox.lock().is_fast(),
        "a worker is bound to look at the shard"
    );
}

/// Point 7: what is queued without a look at the shard lies in one at which somebody is bound to look.
pub fn a_fast_push_and_a_worker_that_finds_the_shard_empty() {
    check(Effort::Changes(3), || {
        let plan = Plan { credit: FAST, ..plan(1, 1, 8) };
        let pool = Pool::new(plan, 4, |_| Handler::Returns);
        send_until_it_is_fast(&pool);
        let worker = pool.worker(0);
        pool.send(0, 3).expect("it is open");
        // Time enough for a worker that searches to park.
        (0..2).for_each(|_| yield_now());
        pool.send(0, 4).expect("it is open");
        pool.finish([worker]);
    });
}

/// As before, with quick handlers, two workers, and permits that are used up now and then.
pub fn fast_pushes_and_workers_that_come_and_go() {
    check(Effort::Large, || {
        let plan = Plan { quick: true, shards: 2, credit: FAST, ..plan(3, 2, 6) };
        let pool = Pool::new(plan, 12, |number| match number {
            3 | 13 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(0, &[1, 2, 3, 4]),
            pool.sender(1, &[11, 12, 13, 14]),
        ];
        run_on(2);
        for number in [5, 6, 7, 8] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// Point 9: permits for the fast path are found by who waits. As many as the bound are accepted,
/// though no worker starts any, and not one more.
pub fn a_fast_push_and_one_who_waits_for_room() {
    check(Effort::Changes(3), || {
        let plan = Plan { shards: 2, credit: FAST, ..plan(1, 1, 4) };
        let pool = Pool::new(plan, 0, |_| Handler::Returns);
        send_until_it_is_fast(&pool);
        let other = pool.sender(1, &[11]);
        pool.send(0, 3).expect("it is open");
        other.join().expect("it did not panic");
        let queued: usize =
            pool.core.queue.shards.iter().map(|shard| shard.inbox.lock().queued()).sum();
        assert_eq!(queued, 4, "there was room for all");
        assert_eq!(pool.try_send(4), Err(Refused::Full), "and for no more");
    });
}

/// Point 14: a pool that closes takes the permits for the fast path along.
pub fn a_fast_push_and_a_pool_that_closes() {
    check(Effort::Changes(3), || {
        let plan = Plan { credit: FAST, ..plan(1, 1, 8) };
        let pool = Pool::new(plan, 0, |_| Handler::Returns);
        send_until_it_is_fast(&pool);
        let closing = spawn({
            let pool = pool.clone();
            move || pool.core.close()
        });
        let accepted = 2 + usize::from(pool.send(0, 3).is_ok());
        closing.join().expect("it did not panic");
        assert!(pool.send(0, 4).is_err(), "it is closed");
        assert_eq!(
            pool.core.queue.shards[0].inbox.lock().queued(),
            accepted,
            "what comes back is not here"
        );
        let in_use = pool.core.queue.permits.in_use(&*pool.core);
        assert_eq!(in_use, accepted, "no permit is lost, and none is there twice");
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
