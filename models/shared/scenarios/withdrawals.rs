//! Messages that are withdrawn beside senders and workers: nothing is lost, nothing overtakes, and
//! whoever waits hears of it.

use greenroom_queue::backlog::KeyBounds;

use super::player::{Handler, PlainPool, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::core::Plan,
};

fn plan(workers: usize, awake: usize, keyed: bool) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity: 8,
        awake,
        keyed,
        hashes: 2,
        quick: false,
        bounds: KeyBounds { waiting: 8, parked: 8, apart: false },
        credit: 1,
    }
}

/// Its shard looks empty meanwhile, and is announced afterwards: nobody parks for ever.
pub fn a_withdrawal_and_the_only_worker() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, false), 2, |_| Handler::Returns);
        pool.send(0, 1).expect("it is open");
        let threads = [pool.worker(0), pool.withdrawer(1, &[2])];
        pool.send(0, 2).expect("it is open");
        pool.finish(threads);
    });
}

/// The same with keys, where the worker has the token.
pub fn a_withdrawal_and_the_only_worker_with_keys() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1, true), 2, |_| Handler::Returns);
        pool.send(0, 11).expect("it is open");
        let threads = [pool.worker(0), pool.withdrawer(1, &[21])];
        pool.send(0, 12).expect("it is open");
        pool.finish(threads);
    });
}

/// Whoever waits for room gets that of a message that is withdrawn.
pub fn a_withdrawal_and_one_who_waits_for_room() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(Plan { capacity: 1, ..plan(1, 1, false) }, 2, |_| Handler::Returns);
        pool.send(0, 1).expect("it is open");
        let sender = spawn({
            let pool = pool.clone();
            move || pool.send(0, 2).expect("it is open")
        });
        assert_eq!(pool.withdraw(|number| *number == 1), [1]);
        sender.join().expect("it did not panic");
        pool.finish([pool.worker(0)]);
    });
}

/// What stays of keys keeps its order, whoever owns them meanwhile.
pub fn keys_of_which_messages_are_withdrawn() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(3, 2, true), 10, |number| match number {
            11 | 22 => Handler::Suspends,
            13 => Handler::Computes,
            23 => Handler::Fails,
            _ => Handler::Returns,
        });
        let ticks = spawn({
            let pool = pool.clone();
            move || (0..6).for_each(|_| pool.tick())
        });
        let due = spawn({
            let pool = pool.clone();
            move || {
                // It may be withdrawn instead.
                while !pool.has_handled(23) {
                    pool.come_due();
                    yield_now();
                }
            }
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sleeper(2),
            ticks,
            due,
            pool.sender_in_turn(&[11, 12, 13, 14, 15]),
            pool.sender_in_turn(&[21, 22, 23, 24, 25]),
            pool.withdrawer(3, &[12, 14, 21, 23, 24]),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// The same with keys that are compared where they lie, where handlers usually wait.
pub fn plain_keys_of_handlers_that_usually_wait() {
    check(Effort::Large, || {
        let pool = PlainPool::new(plan(3, 2, true), 10, |_| Handler::Suspends);
        pool.core.queue.wake.set_waits(true);
        let threads = [
            pool.uncounted(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender_in_turn(&[11, 12, 13, 14, 15]),
            pool.sender_in_turn(&[21, 22, 23, 24, 25]),
            pool.withdrawer(3, &[12, 14, 21, 23, 24]),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// Urgent ones come first still, in their order, and are not forgotten.
pub fn urgent_messages_that_are_withdrawn() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(2, 2, true), 8, |number| match number {
            11 => Handler::Suspends,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.sleeper(1),
            pool.sender_in_turn(&[11, 12, 13]),
            pool.sender_in_turn(&[911, 912, 913, 921, 922]),
            pool.withdrawer(2, &[12, 912, 921]),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// Who waits behind a key has the room of what is withdrawn there.
pub fn senders_that_wait_behind_a_key() {
    check(Effort::Large, || {
        let bounds = KeyBounds { waiting: 1, parked: 8, apart: false };
        let pool = Pool::new(Plan { bounds, ..plan(1, 1, true) }, 5, |_| Handler::Returns);
        let threads = [
            pool.sender_in_turn(&[11, 12, 13]),
            pool.sender_in_turn(&[51, 52]),
            pool.withdrawer(2, &[11, 12, 51]),
            pool.worker(0),
        ];
        pool.finish(threads);
        pool.check_counts();
    });
}

/// An operator who lets a key go on waits for its line, and finds it whole.
pub fn a_key_that_is_parked_and_released() {
    check(Effort::Large, || {
        let bounds = KeyBounds { waiting: 8, parked: 8, apart: true };
        let pool = Pool::new(Plan { bounds, ..plan(2, 1, true) }, 5, |number| match number {
            11 => Handler::ParksKey,
            _ => Handler::Returns,
        });
        let threads = [pool.worker(0), pool.sleeper(1), pool.sender_in_turn(&[11, 12, 13])];
        let others = [pool.sender_in_turn(&[21, 51]), pool.withdrawer(3, &[12, 21])];
        pool.wait_for_parked();
        pool.release(1);
        pool.finish(threads.into_iter().chain(others));
        pool.check_counts();
    });
}
