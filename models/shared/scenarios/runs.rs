//! Runs of quick messages in keyed pools: the holder of the token steps from one to the next, as long as nothing is to be
//! weighed, and leaves it to the longer way wherever a key waits, something urgent has come, or the token has gone.

use std::sync::Arc;

use greenroom_queue::backlog::KeyBounds;

use super::player::{Handler, Pool};
use crate::{
    checker::{Effort, JoinHandle, check, spawn, yield_now},
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
        quick: true,
        bounds: KeyBounds::NONE,
        credit: 1,
    }
}

/// Sends these before anything else happens.
fn send_all(pool: &Pool, numbers: impl IntoIterator<Item = u32>) {
    numbers.into_iter().for_each(|number| pool.send(0, number).expect("it is open"));
}

/// A watchdog that looks so often.
fn watch(pool: &Arc<Pool>, times: usize) -> JoinHandle<()> {
    let pool = pool.clone();
    spawn(move || {
        for _ in 0..times {
            pool.tick();
            yield_now();
        }
    })
}

/// Nothing is left where nobody looks.
pub fn one_worker_that_steps_and_a_sender() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(plan(1, 1), 3, |_| Handler::Returns);
        pool.send(0, 11).expect("it is open");
        let worker = pool.worker(0);
        send_all(&pool, [12, 21]);
        pool.finish([worker]);
    });
}

/// The watchdog finds the token where it was, twice; the holder, back again, runs the lane of its
/// key.
pub fn a_token_is_taken_between_two_steps() {
    check(Effort::Changes(2), || taken_between_two_steps([11, 12, 21]));
}

/// As before, where it had a message without a key: it runs nothing, and nothing tells but the token's number.
pub fn a_token_without_a_key_is_taken_between_two_steps() {
    check(Effort::Changes(2), || taken_between_two_steps([1, 11, 12]));
}

fn taken_between_two_steps(numbers: [u32; 3]) {
    let pool = Pool::new(plan(2, 2), numbers.len(), |number| match number {
        11 => Handler::Computes,
        _ => Handler::Returns,
    });
    send_all(&pool, numbers);
    let threads = [pool.sleeper(1), pool.worker(0)];
    yield_now();
    pool.tick();
    pool.tick();
    pool.finish(threads);
}

/// As before, with handlers that compute, and messages that come meanwhile.
pub fn a_token_is_taken_from_who_steps() {
    check(Effort::Large, || {
        let pool = Pool::new(Plan { capacity: 12, ..plan(3, 2) }, 10, |number| match number {
            1 | 12 | 21 => Handler::Computes,
            31 => Handler::Suspends,
            _ => Handler::Returns,
        });
        send_all(&pool, [11, 1, 12, 13]);
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(0, &[21, 2, 22, 31, 32]),
            watch(&pool, 5),
        ];
        pool.send(0, 14).expect("it is open");
        pool.finish(threads);
    });
}

/// Behind a message whose handler suspends, those of its key wait in a lane; nobody steps past them.
pub fn a_key_that_suspends_in_a_run() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 2), 8, |number| match number {
            12 | 21 => Handler::Suspends,
            13 => Handler::Fails,
            _ => Handler::Returns,
        });
        send_all(&pool, [11, 12, 13, 31]);
        let threads =
            [pool.worker(0), pool.sleeper(1), pool.sleeper(2), pool.sender(0, &[21, 22, 14])];
        pool.send(0, 32).expect("it is open");
        pool.wait_and_come_due();
        pool.finish(threads);
    });
}

/// They end the run, in the same shard and in another, and every key keeps one owner.
pub fn urgent_messages_in_a_run() {
    check(Effort::Large, || {
        let plan = Plan { shards: 2, capacity: 12, ..plan(3, 2) };
        let pool = Pool::new(plan, 11, |number| match number {
            12 | 931 => Handler::Suspends,
            911 | 32 => Handler::Computes,
            _ => Handler::Returns,
        });
        send_all(&pool, [11, 12, 13]);
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(0, &[911, 21, 921]),
            pool.sender(1, &[31, 931, 32, 33, 941]),
            watch(&pool, 3),
        ];
        pool.finish(threads);
    });
}

/// K04: a key that has had its quota gives way to those behind it, in the outbox and in the inbox, and loses nothing.
pub fn a_key_with_many_messages_in_a_run() {
    check(Effort::Large, || {
        let plan = Plan { capacity: 64, hashes: 4, ..plan(2, 2) };
        let pool = Pool::new(plan, 26, |number| match number {
            504 | 511 => Handler::Suspends,
            21 => Handler::Computes,
            _ => Handler::Returns,
        });
        send_all(&pool, 500..518);
        let threads = [
            pool.worker(0),
            pool.sleeper(1),
            pool.sender(0, &[11, 12, 21, 518, 519, 13]),
            watch(&pool, 3),
        ];
        send_all(&pool, [31, 32]);
        pool.finish(threads);
    });
}

/// A message ends the pool whose key has nothing in its lane; who steps in its shard meanwhile does not step on to that key.
pub fn a_message_that_ends_the_pool_and_a_worker_that_steps() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2), 5, |number| match number {
            11 => Handler::EndsPool,
            _ => Handler::Returns,
        });
        send_all(&pool, [11, 21, 22, 12]);
        let threads = [pool.worker(0), pool.worker(1), pool.sender(0, &[13])];
        pool.finish_early(threads);
    });
}
