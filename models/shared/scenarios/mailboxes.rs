//! What is for one worker alone: its own mailbox, and urgent messages.

use greenroom_queue::backlog::KeyBounds;

use super::player::{Handler, Pool};
use crate::{
    checker::{Effort, check, spawn, yield_now},
    pool::core::Plan,
};

fn plan(workers: usize, awake: usize) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity: 4,
        awake,
        keyed: false,
        hashes: 1,
        quick: false,
        bounds: KeyBounds::NONE,
        credit: 1,
    }
}

/// The worker finds its mail when it parks, or is called.
pub fn mail_for_a_worker_that_parks() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(plan(1, 1), 1, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.mail(0, 1).expect("it is open");
        pool.finish([worker]);
    });
}

/// A place in the mailbox is free once its message is taken, and who waits for it is told.
pub fn one_who_waits_for_a_place_in_a_mailbox() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.mail(0, 1).expect("it is open");
        pool.mail(0, 2).expect("it is open");
        pool.finish([worker]);
    });
}

/// A message that is taken out for want of room leaves a place, and who waits for it is told.
pub fn one_who_waits_for_a_place_and_a_message_that_is_evicted() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1), 1, |_| Handler::Returns);
        pool.mail(0, 1).expect("it is open");
        let evicting = spawn({
            let pool = pool.clone();
            move || pool.evict(0)
        });
        pool.mail(0, 2).expect("it is open");
        let worker = pool.worker(0);
        pool.finish([evicting, worker]);
    });
}

/// A worker that leaves hands its mail over to others; nothing is lost between the two.
pub fn mail_for_a_worker_that_leaves() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(2, 1), 1, |_| Handler::Returns);
        let other = pool.sleeper(1);
        let mailbox = pool.core.mailbox(0);
        let leaving = pool.leave(0);
        if pool.mail_to(&mailbox, 1).is_err() {
            pool.send(0, 1).expect("the pool is open");
        }
        pool.finish([other, leaving]);
    });
}

/// What comes for the next worker of a slot while the mailbox of the one before is cleared is not
/// forgotten with it.
pub fn mail_for_the_next_worker_of_a_slot() {
    check(Effort::Large, || {
        let pool = Pool::new(plan(1, 1), 2, |_| Handler::Returns);
        drop(pool.core.mailbox(0));
        let threads = [pool.leave(0), pool.worker(0)];
        pool.mail(0, 1).expect("it is open");
        pool.signal(0);
        pool.finish(threads);
    });
}

/// Whoever makes a mailbox while the pool closes finds it closed, or it is closed behind him.
pub fn a_mailbox_that_is_made_while_the_pool_closes() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1), 0, |_| Handler::Returns);
        let closing = spawn({
            let pool = pool.clone();
            move || pool.core.close()
        });
        let mailbox = pool.core.mailbox(0);
        closing.join().expect("it did not panic");
        assert!(mailbox.is_closed(), "it would accept what nobody handles");
    });
}

/// A worker hears of a signal when it parks, or is called.
pub fn a_signal_for_a_worker_that_parks() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(plan(1, 1), 1, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.signal(0);
        pool.finish([worker]);
    });
}

/// Neither hides the other: each has an order of its own.
pub fn a_signal_beside_mail() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(1, 1), 2, |_| Handler::Returns);
        let threads = [pool.worker(0), pool.mailer(0, &[1])];
        pool.signal(0);
        pool.finish(threads);
    });
}

/// A message that its worker puts back is found by who parks, be it the same.
pub fn mail_that_is_put_back_for_any_other() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(plan(2, 1), 1, |_| Handler::PutsBack);
        let threads = [pool.worker(0), pool.sleeper(1)];
        pool.mail(0, 1).expect("it is open");
        pool.finish(threads);
    });
}

/// Both ways in, and a worker that searches between them.
pub fn mail_and_messages_for_anybody() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(plan(2, 2), 2, |_| Handler::Returns);
        let threads = [pool.worker(0), pool.worker(1), pool.mailer(0, &[1])];
        pool.send(0, 2).expect("it is open");
        pool.finish(threads);
    });
}

/// Mail that failed goes back to its worker.
pub fn mail_that_comes_back() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1), 1, |_| Handler::Fails);
        let worker = pool.worker(0);
        pool.mail(0, 1).expect("it is open");
        pool.wait_and_come_due();
        pool.finish([worker]);
    });
}

/// Urgent messages are taken past the queue; its bit may be left over, and none of them is.
pub fn urgent_messages_beside_the_queue() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(plan(1, 1), 2, |_| Handler::Returns);
        let worker = pool.worker(0);
        pool.send(0, 1).expect("it is open");
        pool.send(0, 901).expect("it is open");
        pool.finish([worker]);
    });
}

/// As before, with two who take them.
pub fn urgent_messages_and_two_workers() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(plan(2, 2), 2, |_| Handler::Returns);
        let threads = [pool.worker(0), pool.worker(1)];
        pool.send(0, 901).expect("it is open");
        pool.send(0, 1).expect("it is open");
        pool.finish(threads);
    });
}

/// Point 15: a worker goes to urgent messages of another shard in the middle of its own, and every key keeps one owner.
pub fn urgent_messages_of_another_shard_in_a_keyed_pool() {
    check(Effort::Large, || {
        let plan = Plan { shards: 2, keyed: true, ..plan(3, 2) };
        let pool = Pool::new(plan, 8, |number| match number {
            11 | 931 => Handler::Suspends,
            12 | 932 => Handler::Computes,
            _ => Handler::Returns,
        });
        let threads = [
            pool.worker(0),
            pool.worker(1),
            pool.sleeper(2),
            pool.sender(0, &[11, 12, 911, 21]),
            pool.sender(1, &[31, 931, 932, 941]),
        ];
        for _ in 0..3 {
            pool.tick();
            yield_now();
        }
        pool.finish(threads);
    });
}

/// Urgent messages of a key that has a lane come first there, whoever owns it.
pub fn urgent_messages_of_a_key_that_waits_in_a_lane() {
    check(Effort::Large, || {
        let plan = Plan { keyed: true, ..plan(3, 2) };
        let pool = Pool::new(Plan { capacity: 8, ..plan }, 7, |number| match number {
            11 | 912 | 22 => Handler::Suspends,
            21 => Handler::Fails,
            _ => Handler::Returns,
        });
        let threads =
            [pool.worker(0), pool.worker(1), pool.sleeper(2), pool.sender(0, &[11, 12, 911, 912])];
        for number in [21, 22, 921] {
            pool.send(0, number).expect("it is open");
        }
        pool.wait_and_come_due();
        pool.finish(threads);
    });
}
