//! The bound behind one key: who waits for room there, and when messages are counted.
//!
//! Keys 1, 5 and 9 have the same hash, so they share a bound; between them there is no order.

use greenroom_queue::{backlog::KeyBounds, permits::Refused};

use super::player::{Handler, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::core::Plan,
};

fn plan(workers: usize, awake: usize, bound: usize) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity: 8,
        awake,
        keyed: true,
        hashes: 4,
        quick: false,
        bounds: KeyBounds { waiting: bound, parked: 8, apart: false },
        credit: 1,
    }
}

/// Who waits behind its key is woken by the worker that starts the message before it.
pub fn a_sender_behind_its_key_and_the_only_worker() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, 1), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        assert_eq!(pool.send_in_turn(11), Ok(()));
        assert_eq!(pool.send_in_turn(12), Ok(()));
        pool.finish([worker]);
        pool.check_counts();
    });
}

/// Several places become free before those who wait have come: each wakes the next.
pub fn three_senders_behind_a_key_and_a_worker() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(1, 1, 2), 9, |_| Handler::Returns);
        let threads = [
            pool.sender_in_turn(&[11, 12, 13]),
            pool.sender_in_turn(&[51, 52, 53]),
            pool.sender_in_turn(&[91, 92, 93]),
            pool.worker(0),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// As before, in a pool that is full as well, with a worker that suspends, so that keys have lanes.
pub fn senders_behind_a_key_in_a_pool_that_is_full() {
    check(Effort::Large, || {
        let plan = Plan { capacity: 2, ..plan(2, 1, 1) };
        let pool = Pool::new(plan, 8, |number| match number {
            11 | 21 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [
            pool.sender_in_turn(&[11, 12, 13]),
            pool.sender_in_turn(&[51, 52]),
            pool.sender_in_turn(&[21, 22, 23]),
            pool.worker(0),
            pool.sleeper(1),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// Who goes away, wherever it is, passes on what it was told.
pub fn two_who_wait_behind_a_key_and_one_of_them_goes() {
    check(Effort::Large, || {
        for waits in [0, 1, 2] {
            let pool = Pool::new(plan(1, 1, 1), 4, |_| Handler::Returns);
            assert_eq!(pool.try_send(11), Ok(()));
            let threads = [pool.sender_in_turn(&[51]), pool.sender_in_turn(&[91]), pool.worker(0)];
            if !pool.send_with_patience(12, waits) {
                assert_eq!(pool.send_in_turn(12), Ok(()));
            }
            pool.finish(threads);
            pool.check_counts();
        }
    });
}

/// The first in line has looked once more, and waits for room in the pool when it goes: whoever stands behind it has not been
/// told of the message that was started before anybody stood there.
pub fn the_first_in_line_goes_before_it_has_looked_again() {
    check(Effort::Large, || {
        let plan = Plan { capacity: 2, ..plan(1, 1, 1) };
        let pool = Pool::new(plan, 0, |_| Handler::Returns);
        assert_eq!(pool.try_send(11), Ok(()));
        let worker = spawn({
            let pool = pool.clone();
            move || {
                assert!(pool.start_one(0));
                let _ = [21, 31].map(|number| pool.try_send(number));
                while pool.start_one(0) {}
            }
        });
        let waiter = pool.sender_in_turn(&[51]);
        pool.send_with_patience(91, 0);
        worker.join().expect("it did not panic");
        while pool.start_one(0) {}
        waiter.join().expect("it did not panic");
        while pool.start_one(0) {}
        pool.check_counts();
    });
}

/// Whoever waits behind a key while the pool closes hears of it.
pub fn two_who_wait_behind_a_key_and_a_pool_that_closes() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(1, 1, 1), 0, |_| Handler::Returns);
        assert_eq!(pool.try_send(11), Ok(()));
        let waiters = [51, 91].map(|number| {
            let pool = pool.clone();
            spawn(move || assert_eq!(pool.send_in_turn(number), Err(Refused::Closed)))
        });
        pool.core.close();
        waiters.into_iter().for_each(|waiter| waiter.join().expect("it did not panic"));
        assert_eq!(pool.try_send(52), Err(Refused::Closed));
    });
}

/// As before, with one that waits.
pub fn one_who_waits_behind_a_key_and_a_pool_that_closes() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1, 1), 0, |_| Handler::Returns);
        assert_eq!(pool.try_send(11), Ok(()));
        let closer = spawn({
            let pool = pool.clone();
            move || pool.core.close()
        });
        assert_eq!(pool.send_in_turn(51), Err(Refused::Closed));
        closer.join().expect("it did not panic");
    });
}

/// Who does not wait finds no room as long as somebody stands in line, and takes none away from who does.
pub fn one_who_waits_behind_a_key_and_one_who_tries() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, 1), 0, |_| Handler::Returns);
        assert_eq!(pool.try_send(11), Ok(()));
        let waiter = pool.sender_in_turn(&[51]);
        assert!(pool.start_one(0));
        let queued = match pool.try_send(91) {
            Ok(()) => 2,
            Err(Refused::KeyFull | Refused::Full) => 1,
            Err(other) => unreachable!("{other:?}"),
        };
        for _ in 0..queued {
            while !pool.start_one(0) {
                yield_now();
            }
        }
        waiter.join().expect("it did not panic");
        pool.check_counts();
    });
}

/// Credit for messages that are not counted, and messages whose permits were taken before: together no more than the bound.
/// Counting begins and ends beside senders and a worker.
pub fn counting_that_begins_and_ends_beside_senders() {
    check(Effort::Large, || {
        let plan = Plan { credit: 2, ..plan(1, 1, 2) };
        let pool = Pool::new(plan, 10, |_| Handler::Returns);
        let threads = [
            pool.sender_in_turn(&[11, 12, 13]),
            pool.sender_in_turn(&[51, 52, 53]),
            pool.sender_in_turn(&[91, 21, 92, 22]),
            pool.worker(0),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// As before, with messages without keys, urgent ones, lanes, and a watchdog that takes the token
/// away.
pub fn counting_beside_lanes_and_messages_that_fail() {
    check(Effort::Large, || {
        let plan = Plan { credit: 2, ..plan(2, 2, 3) };
        let pool = Pool::new(plan, 11, |number| match number {
            11 | 51 => Handler::Suspends,
            12 => Handler::Fails,
            52 => Handler::Computes,
            _ => Handler::Returns,
        });
        let threads = [
            pool.sender_in_turn(&[11, 12, 13, 911]),
            pool.sender_in_turn(&[51, 52, 1, 53]),
            pool.sender_in_turn(&[21, 91, 92]),
            pool.worker(0),
            pool.worker(1),
            spawn({
                let pool = pool.clone();
                move || (0..4).for_each(|_| pool.tick())
            }),
        ];
        pool.wait_and_come_due();
        pool.finish(threads);
        pool.check_counts();
    });
}
