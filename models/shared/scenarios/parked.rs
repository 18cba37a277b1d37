//! Keys that wait for an operator, and lanes whose workers want to be told of more.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use greenroom_queue::{backlog::KeyBounds, permits::Refused};

use super::player::{Handler, Pool};
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
        hashes: 4,
        quick: false,
        bounds: KeyBounds { waiting: 8, parked: 8, apart: false },
        credit: 1,
    }
}

/// What comes while it is parked waits behind it in order; others go on.
pub fn a_key_that_is_parked_and_released() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 1), 6, |number| match number {
            11 => Handler::ParksKey,
            12 | 21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sleeper(1), pool.sender_in_turn(&[11, 12, 13])];
        let others = pool.sender_in_turn(&[21, 22, 51]);
        pool.wait_for_parked();
        pool.release(1);
        pool.finish(threads.into_iter().chain([others]));
        pool.check_counts();
    });
}

/// As before; what has failed is handled first when it is replayed.
pub fn a_key_that_is_parked_and_replayed() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2), 5, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.worker(1), pool.sender_in_turn(&[11, 12, 13])];
        let others = pool.sender_in_turn(&[51, 52]);
        pool.wait_for_parked();
        pool.replay(1);
        pool.finish(threads.into_iter().chain([others]));
        pool.check_counts();
    });
}

/// A key whose worker has lost the token is parked all the same.
pub fn a_key_that_is_parked_by_who_has_lost_the_token() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2), 5, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        let ticks = spawn({
            let pool = pool.clone();
            move || (0..6).for_each(|_| pool.tick())
        });
        let threads = [pool.worker(0), pool.worker(1), ticks, pool.sender_in_turn(&[11, 12, 13])];
        let others = pool.sender_in_turn(&[21, 22]);
        pool.wait_for_parked();
        pool.release(1);
        pool.finish(threads.into_iter().chain([others]));
        pool.check_counts();
    });
}

/// The line of a parked key is taken out while messages come: each is in it, or handled.
pub fn a_parked_key_whose_line_is_taken_out() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 1), 5, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sleeper(1), pool.sender_in_turn(&[11, 12, 13])];
        let others = pool.sender_in_turn(&[21, 51]);
        pool.wait_for_parked();
        let line = pool.remove(1);
        assert!([11, 12, 13].starts_with(&line), "{line:?}");
        pool.finish(threads.into_iter().chain([others]));
        pool.check_counts();
    });
}

/// Senders that wait behind a key that is parked look again: there is room, or they are told, and come back later.
pub fn senders_that_wait_behind_a_key_that_is_parked() {
    check(Effort::Large, || {
        let plan = Plan { bounds: KeyBounds { waiting: 1, parked: 8, apart: false }, ..plan(1, 1) };
        let pool = Pool::new(plan, 5, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        assert_eq!(pool.try_send(11), Ok(()));
        let senders = [12, 51, 91, 21].map(|number| {
            let pool = pool.clone();
            spawn(move || {
                while let Err(refused) = pool.send_in_turn(number) {
                    assert_eq!(refused, Refused::Parked);
                    yield_now();
                }
            })
        });
        let worker = pool.worker(0);
        pool.wait_for_parked();
        pool.release(1);
        senders.into_iter().for_each(|sender| sender.join().expect("it did not panic"));
        pool.finish([worker]);
        pool.check_counts();
    });
}

/// Whoever waits for a reply behind a parked key is told so, before or after its message has come to the line.
pub fn callers_of_a_key_that_is_parked() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 1), 3, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        let told = Arc::new(AtomicU32::new(0));
        let threads = [pool.worker(0), pool.sleeper(1)];
        let caller = spawn({
            let (pool, told) = (pool.clone(), told.clone());
            move || {
                assert_eq!(pool.try_send(11), Ok(()));
                assert_eq!(pool.try_call(12, &told), Ok(()));
                assert_eq!(pool.try_call(13, &told), Ok(()));
            }
        });
        caller.join().expect("it did not panic");
        pool.wait_for_parked();
        while told.load(Ordering::Relaxed) < 2 {
            crate::checker::yield_now();
        }
        pool.release(1);
        pool.finish(threads);
        assert_eq!(told.load(Ordering::Relaxed), 2);
    });
}

/// Who collects a batch is told under no lock; the token stays meanwhile with who tells.
pub fn a_token_stays_with_who_tells_a_collector() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 3), 7, |number| match number {
            11 | 12 => Handler::Collects,
            21 => Handler::Computes,
            _ => Handler::Returns,
        });
        let ticks = spawn({
            let pool = pool.clone();
            move || (0..8).for_each(|_| pool.tick())
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.worker(2),
            ticks,
            pool.sender_in_turn(&[11, 21, 12, 13]),
            pool.sender_in_turn(&[31, 32, 33]),
        ];
        pool.finish(threads);
    });
}
