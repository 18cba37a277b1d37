//! Keyed pools: the drain token, granted, passed on and taken away; lanes; parking.

use greenroom_queue::backlog::KeyBounds;

use super::player::{Handler, PlainPool, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::core::Plan,
};

fn plan(workers: usize, awake: usize) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity: 8,
        awake,
        keyed: true,
        hashes: 1,
        quick: false,
        bounds: KeyBounds::NONE,
        credit: 1,
    }
}

/// Keys with hashes of their own: most messages have nothing to be compared with.
fn near(workers: usize, awake: usize) -> Plan {
    Plan { hashes: 4, ..plan(workers, awake) }
}

/// Nothing is left where nobody looks.
pub fn one_worker_drains_what_one_sends() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.send(0, 11).expect("it is open");
        pool.send(0, 12).expect("it is open");
        pool.finish([worker]);
    });
}

/// Point 7: what is queued without a look at the shard lies in one whose token somebody holds, or is about to.
pub fn a_fast_push_and_a_worker_that_lets_go_of_the_token() {
    check(Effort::Changes(3), || {
        let plan = Plan { credit: 4, ..plan(1, 1) };
        let pool = Pool::new(plan, 4, |_| Handler::Returns);
        pool.send(0, 11).expect("it is open");
        pool.send(0, 12).expect("it is open");
        assert!(pool.core.queue.shards[0].inbox.lock().is_fast(), "somebody is bound to look");
        let worker = pool.worker(0);
        pool.send(0, 13).expect("it is open");
        // Time enough for a worker that searches to park.
        (0..2).for_each(|_| yield_now());
        pool.send(0, 14).expect("it is open");
        pool.finish([worker]);
    });
}

/// One of them holds the token; the other comes in vain, and is not needed.
pub fn two_workers_take_turns_with_the_token() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(plan(2, 2), 2, |_| Handler::Returns);
        let threads = [pool.worker(0), pool.worker(1)];
        pool.send(0, 11).expect("it is open");
        pool.send(0, 12).expect("it is open");
        pool.finish(threads);
    });
}

/// The token is passed on, and the lane keeps the order of its key.
pub fn a_key_that_suspends_gets_a_lane() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 2), 5, |number| match number {
            11 | 21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sleeper(1), pool.sleeper(2), pool.sender(0, &[21, 22])];
        for number in [11, 12, 13] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// The same where that is usual: the lane is there before the handler is polled, and its worker goes on in the shard.
pub fn a_key_has_its_lane_at_once_where_handlers_usually_wait() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 2), 5, |number| match number {
            11 | 21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [pool.worker(0), pool.sleeper(1), pool.sleeper(2), pool.sender(0, &[21, 22])];
        for number in [11, 12, 13] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// Workers that do not count as awake take messages whose keys are free. A shard that is found
/// empty is not ready any more, and one in which something is queued at that moment is: who has
/// had a message without a key looks nowhere else.
pub fn a_sender_and_two_uncounted_workers_that_take_what_is_near() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(near(2, 1), 3, |_| Handler::Returns);
        pool.core.queue.wake.set_waits(true);
        let threads = [pool.uncounted(0), pool.uncounted(1)];
        for number in [1, 11, 2] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// As before, beside others, with lanes that are ready and keys that share a hash.
pub fn uncounted_workers_and_keys_that_come_again() {
    check(Effort::Large, || {
        let plan = Plan { hashes: 2, ..near(4, 2) };
        let pool = Pool::new(plan, 8, |number| match number {
            11 | 22 | 31 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [
            pool.uncounted(0),
            pool.uncounted(1),
            pool.worker(2),
            pool.sleeper(3),
            pool.sender(0, &[11, 21, 12, 22]),
        ];
        for number in [31, 41, 32, 42] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// The same with keys that are compared where they lie.
pub fn uncounted_workers_and_plain_keys() {
    check(Effort::Large, || {
        let plan = Plan { hashes: 1, ..near(3, 2) };
        let pool = PlainPool::new(plan, 6, |number| match number {
            11 | 31 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads =
            [pool.uncounted(0), pool.worker(1), pool.sleeper(2), pool.sender(0, &[11, 21, 12])];
        for number in [31, 41, 32] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// Workers of two threads and two shards: each closes its lane in a shard of the other thread and
/// looks elsewhere, and a message that came meanwhile is left to somebody.
pub fn uncounted_workers_of_two_threads() {
    check(Effort::Large, || {
        let plan = Plan { shards: 2, ..near(3, 2) };
        let pool = PlainPool::new(plan, 6, |number| match number {
            11 | 12 | 31 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [
            pool.uncounted(0),
            pool.worker_elsewhere(1),
            pool.sleeper(2),
            pool.sender(0, &[11, 21, 12]),
        ];
        for number in [31, 32, 41] {
            pool.send(1, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// What is usual changes to and fro while workers do not count as awake: in the end, none does.
/// Whoever drains a shard counts meanwhile.
pub fn uncounted_workers_and_what_is_usual_changes() {
    check(Effort::Large, || {
        let pool = Pool::new(near(3, 2), 8, |number| match number {
            11 | 12 | 21 | 31 | 32 => Handler::Suspends,
            _ => Handler::Returns,
        });
        pool.core.queue.wake.set_waits(true);
        let threads = [
            pool.uncounted(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(0, &[11, 21, 12, 22]),
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
        for number in [31, 32, 41, 42] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// What is usual changes while messages come.
pub fn two_workers_and_what_is_usual_changes() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2), 4, |number| match number {
            11 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            spawn({
                let pool = pool.clone();
                move || {
                    pool.core.queue.wake.set_waits(true);
                    yield_now();
                    pool.core.queue.wake.set_waits(false);
                }
            }),
        ];
        for number in [11, 12, 21, 13] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// Point 2: others go on behind a handler that computes, and the order of its key holds.
pub fn a_token_is_taken_from_who_computes() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2), 5, |number| match number {
            11 | 12 => Handler::Computes,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sender(0, &[11, 12, 21]),
            spawn({
                let pool = pool.clone();
                move || {
                    for _ in 0..4 {
                        pool.tick();
                        yield_now();
                    }
                }
            }),
        ];
        pool.send(0, 31).expect("it is open");
        pool.send(0, 32).expect("it is open");
        pool.finish(threads);
    });
}

/// Keys with equal hashes are compared outside the lock; meanwhile the token stays, and no lane opens unseen.
pub fn a_token_stays_with_who_compares_keys() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 3), 6, |number| match number {
            11 | 21 => Handler::Suspends,
            12 => Handler::Computes,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.worker(2),
            pool.sender(0, &[11, 12, 13]),
            spawn({
                let pool = pool.clone();
                move || (0..6).for_each(|_| pool.tick())
            }),
        ];
        for number in [21, 22, 23] {
            pool.send(0, number).expect("it is open");
        }
        pool.finish(threads);
    });
}

/// A key that is parked keeps its order, and comes back once it is due.
pub fn a_key_waits_for_its_next_attempt() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 1), 4, |number| match number {
            11 => Handler::Fails,
            21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sleeper(1), pool.sender(0, &[11, 12])];
        pool.send(0, 21).expect("it is open");
        pool.send(0, 22).expect("it is open");
        pool.wait_and_come_due();
        pool.finish(threads);
    });
}

/// Who looks for work while a message ends the pool takes none of that message's key.
pub fn a_message_that_ends_the_pool_and_a_worker_on_its_way() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 3), 7, |number| match number {
            11 => Handler::EndsPool,
            21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        for number in [11, 21, 12] {
            pool.send(0, number).expect("it is open");
        }
        let threads =
            [pool.worker(0), pool.worker(1), pool.worker(2), pool.sender(0, &[31, 13, 22, 14])];
        pool.finish_early(threads);
    });
}
