//! Pools that shut, open again and end while others send, park, move messages and wait: each
//! message has one outcome, and nobody sleeps for ever.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use greenroom_queue::{backlog::KeyBounds, deque::Deque, stamp::Stamp};

use super::player::{Handler, Key, Numbers, Pool};
use crate::pool::core::{
    drain::give_back_queued, park::park as park_again, serve::take_back_handed,
    shut::count_accepted,
};
use crate::{
    ExitReason, ReplyPort,
    checker::{Effort, JoinHandle, block_on, check, spawn, yield_now},
    delivery::Extra,
    pool::{core::Plan, lifecycle::Acceptance, pool_payload::Queued, worker::in_flight::Source},
};

fn plan(workers: usize) -> Plan {
    Plan {
        workers,
        shards: 1,
        capacity: 8,
        awake: workers,
        keyed: false,
        hashes: 1,
        quick: false,
        bounds: KeyBounds::NONE,
        credit: 1,
    }
}

fn pool(workers: usize) -> Arc<Pool> {
    Pool::until_stopped(plan(workers), |_| Handler::Returns)
}

type Threads<T> = Vec<JoinHandle<T>>;

fn thread<T: Send + 'static>(
    pool: &Arc<Pool>,
    work: impl FnOnce(&Arc<Pool>) -> T + Send + 'static,
) -> JoinHandle<T> {
    let pool = pool.clone();
    spawn(move || work(&pool))
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("it did not panic")
}

/// The worker of a slot has ended, and is not started again.
fn disable(pool: &Pool, slot: usize) {
    pool.core.disable(slot, &ExitReason::Normal);
}

/// The worker of a slot has gone, as it was told.
fn leave(pool: &Pool, slot: usize) {
    pool.core.left(slot, &ExitReason::Normal);
}

/// A pool with one worker, and a slot for another.
fn pool_with_an_empty_slot() -> Arc<Pool> {
    let pool = pool(2);
    pool.core.let_leave(1);
    leave(&pool, 1);
    pool
}

fn entry(number: u32, extra: Box<Extra<(), ()>>) -> Queued<Numbers, Key> {
    let (message, stamp) = (number, Stamp::default());
    Queued::<Numbers, Key> { message, extra: Some(extra), key: None, hash: 0, urgent: false, stamp }
}

/// A message waits with the clock for its next attempt.
fn park(pool: &Pool, number: u32) {
    let entry = entry(number, Extra::parked(None));
    park_again(&pool.core, 0, Source::None, Deque::only(entry), std::time::Duration::ZERO);
}

/// A call is handed to a worker that does not come for it. It is counted where its caller is told
/// that it has no reply.
fn hand(pool: &Pool, number: u32, told: &Arc<AtomicU32>) {
    pool.core.queue.permits.take_back();
    pool.core.queue.shards[0].inbox.lock().accepted += 1;
    let port = ReplyPort::new(told);
    pool.core.handed.lock().push_back(entry(number, Extra::new(Some(port))));
}

/// Messages that wait for any worker.
fn waiting(pool: &Pool) -> Vec<u32> {
    let shard = &pool.core.queue.shards[0];
    let outbox = shard.outbox.lock();
    let inbox = shard.inbox.lock();
    outbox.queue.iter().chain(inbox.queue.iter()).map(|entry| entry.message).collect()
}

fn letters(pool: &Pool) -> Vec<u32> {
    pool.core.letters.lock().clone()
}

fn left_over(pool: &Pool) -> Vec<u32> {
    let kept = pool.core.left_over.take();
    let messages = kept.iter().filter_map(|delivery| delivery.message).collect();
    pool.core.left_over.give_back(kept);
    messages
}

/// Whether it accepts messages: its gate, its permits and its shards say the same.
fn acceptance(pool: &Pool) -> Acceptance {
    let acceptance = *pool.core.frame.lifecycle.gate.lock();
    let is_open = acceptance == Acceptance::Open;
    assert_eq!(pool.core.queue.permits.is_closed(), !is_open);
    assert_eq!(pool.core.queue.shards[0].inbox.lock().closed, !is_open);
    acceptance
}

/// No message waits anywhere, and none has left its permit behind.
fn assert_empty(pool: &Pool) {
    assert!(waiting(pool).is_empty());
    assert!(pool.core.frame.clock.is_empty());
    assert!(pool.core.handed.lock().is_empty());
    assert_eq!(pool.core.queue.permits.in_use(&*pool.core), 0);
}

/// Of these, the numbers that were accepted.
fn sender(pool: &Arc<Pool>, numbers: &'static [u32]) -> JoinHandle<Vec<u32>> {
    thread(pool, |pool| {
        numbers.iter().copied().filter(|number| pool.send(0, *number).is_ok()).collect()
    })
}

/// As `sender`, to one worker, and to no later one of its slot.
fn mailer(pool: &Arc<Pool>, slot: usize, numbers: &'static [u32]) -> JoinHandle<Vec<u32>> {
    let mailbox = pool.core.mailbox(slot);
    thread(pool, move |pool| {
        let is_accepted = |number: &u32| pool.mail_to(&mailbox, *number).is_ok();
        numbers.iter().copied().filter(is_accepted).collect()
    })
}

/// The clock of a pool that does not stand still, until the pool has ended.
fn clock(pool: &Arc<Pool>) -> JoinHandle<()> {
    pool.task(|pool| {
        while !pool.core.frame.lifecycle.ended.load(Ordering::SeqCst) {
            pool.come_due();
            yield_now();
        }
    })
}

/// The product's `ready`, without a deadline, of one worker.
async fn wait_for_a_start(pool: &Pool) {
    let is_closed = || pool.core.frame.lifecycle.check_running().is_err();
    pool.core.frame.membership.starts.reach(1, is_closed).await;
}

/// The product's `wait_until`, without a deadline.
async fn wait_until(pool: &Pool, mut done: impl FnMut() -> bool) {
    loop {
        let progress = pool.core.frame.lifecycle.next_progress();
        if done() {
            return;
        }
        progress.await;
    }
}

/// The product's `stop`, which waits until all is done.
fn stop(pool: &Pool, done: impl FnMut() -> bool) {
    pool.core.close();
    block_on(wait_until(pool, done));
    pool.core.end();
    let running = &pool.core.frame.lifecycle.running;
    block_on(wait_until(pool, || running.load(Ordering::SeqCst) == 0));
    give_back_queued(&pool.core);
}

/// Each message that was accepted has been handled, given back or dead-lettered, and no other.
fn assert_one_outcome_each(pool: &Pool, mut accepted: Vec<u32>) {
    let mut outcomes = pool.handled();
    outcomes.extend(left_over(pool));
    outcomes.extend(letters(pool));
    outcomes.sort_unstable();
    accepted.sort_unstable();
    assert_eq!(outcomes, accepted);
}

/// Whichever is the later under the gate sees the other: the pool is open, and leaves to its worker
/// what it accepts from then on.
pub fn the_last_worker_goes_as_another_joins() {
    check(Effort::Changes(3), || {
        let pool = pool(1);
        pool.send(0, 1).expect("it is open");
        let goes = thread(&pool, |pool| disable(pool, 0));
        pool.core.hire();
        pool.send(0, 2).expect("it has a worker");
        join(goes);
        assert_eq!(acceptance(&pool), Acceptance::Open);
        let mut outcomes = letters(&pool);
        outcomes.extend(waiting(&pool));
        assert_eq!(outcomes, [1, 2], "the second is the worker's");
        assert!(waiting(&pool).contains(&2), "the second is the worker's");
        let in_use = pool.core.queue.permits.in_use(&*pool.core);
        assert_eq!(in_use, waiting(&pool).len(), "no permit is lost, and none is there twice");
    });
}

/// In the end none is left: the pool is shut, and nothing waits in it.
pub fn a_worker_joins_as_the_last_goes_and_goes_as_well() {
    check(Effort::Changes(3), || {
        let pool = pool(1);
        let goes = thread(&pool, |pool| disable(pool, 0));
        pool.core.hire();
        pool.send(0, 1).expect("it has a worker");
        disable(&pool, 0);
        join(goes);
        assert_eq!(acceptance(&pool), Acceptance::Deserted);
        assert_eq!(letters(&pool), [1]);
        assert_empty(&pool);
    });
}

/// The pool has been without a worker, and the next one is told to leave before the pool is opened
/// for it: it stays shut.
pub fn a_worker_is_told_to_leave_as_it_joins() {
    check(Effort::Changes(3), || {
        let pool = pool(1);
        disable(&pool, 0);
        let joins = thread(&pool, |pool| pool.core.hire());
        while pool.core.frame.membership.live.load(Ordering::SeqCst) == 0 {
            yield_now();
        }
        pool.core.let_leave(0);
        join(joins);
        assert_eq!(acceptance(&pool), Acceptance::Deserted);
    });
}

/// One message is sent meanwhile, and another comes due: it is on its way from the clock to its
/// queue, where the drain finds it, or who brings it sees that the pool is ruined.
pub fn the_last_worker_goes_as_a_message_is_sent_and_another_comes_due() {
    check(Effort::Changes(2), || {
        let pool = pool(1);
        park(&pool, 1);
        let threads =
            [thread(&pool, |pool| disable(pool, 0)), thread(&pool, |pool| pool.come_due())];
        let is_accepted = pool.send(0, 2).is_ok();
        threads.into_iter().for_each(join);
        let mut letters = letters(&pool);
        letters.sort_unstable();
        assert_eq!(letters, if is_accepted { vec![1, 2] } else { vec![1] });
        assert_eq!(acceptance(&pool), Acceptance::Deserted);
        assert_empty(&pool);
    });
}

/// Its mail is on its way to the queue of the pool.
pub fn the_last_worker_goes_as_the_mail_of_another_is_passed_on() {
    check(Effort::Changes(3), || {
        let pool = pool(2);
        pool.mail(0, 1).expect("it is open");
        pool.core.let_leave(0);
        let leaves = thread(&pool, |pool| leave(pool, 0));
        disable(&pool, 1);
        join(leaves);
        assert_eq!(letters(&pool), [1]);
        assert_empty(&pool);
    });
}

/// It was handed to a worker, which does not take it.
pub fn the_last_worker_goes_as_a_message_is_taken_back_from_it() {
    check(Effort::Changes(3), || {
        let (pool, told) = (pool(1), Arc::default());
        hand(&pool, 1, &told);
        let takes_back = thread(&pool, |pool| take_back_handed(&pool.core, 0));
        disable(&pool, 0);
        join(takes_back);
        assert_eq!((letters(&pool), told.load(Ordering::Relaxed)), (vec![1], 1));
        assert_empty(&pool);
    });
}

/// The worker sees that the pool closes and tells the stop, or the stop sees what it has counted.
/// Its handler has suspended: between the count and the look it takes no lock.
pub fn a_worker_rests_as_its_pool_is_stopped() {
    check(Effort::Changes(2), || {
        let pool = Pool::until_stopped(plan(1), |_| Handler::Suspends);
        let worker = pool.worker(0);
        let stops = thread(&pool, |pool| {
            pool.core.close();
            block_on(wait_until(pool, || count_accepted(&pool.core) == pool.settled()));
            pool.core.end();
        });
        let is_accepted = pool.send(0, 1).is_ok();
        [worker, stops].into_iter().for_each(join);
        assert_eq!(pool.has_handled(1), is_accepted);
        assert_eq!(acceptance(&pool), Acceptance::Closed);
    });
}

/// It is in the idle list and is woken, or it sees the end.
pub fn a_worker_parks_as_its_pool_ends() {
    check(Effort::Changes(4), || {
        let pool = pool(1);
        let worker = pool.worker(0);
        pool.core.end();
        join(worker);
        assert_eq!(pool.core.queue.wake.awake(), 0, "whoever was awake has left");
    });
}

/// It waits until it is to be started again, and hears of the end or sees it.
pub fn a_worker_is_between_two_starts_as_its_pool_ends() {
    check(Effort::Changes(5), || {
        let pool = pool(1);
        let waits = thread(&pool, |pool| block_on(pool.core.over(0)));
        pool.core.end();
        join(waits);
    });
}

/// As before, with a worker that is told to leave.
pub fn a_worker_is_between_two_starts_as_it_is_told_to_leave() {
    check(Effort::Changes(5), || {
        let pool = pool(1);
        let waits = thread(&pool, |pool| block_on(pool.core.over(0)));
        pool.core.let_leave(0);
        join(waits);
    });
}

/// Who waits for workers to start hears that the pool closes, or sees it.
pub fn workers_are_waited_for_as_the_pool_closes() {
    check(Effort::Changes(4), || {
        let pool = pool(1);
        let waits = thread(&pool, |pool| block_on(wait_for_a_start(pool)));
        pool.core.close();
        join(waits);
    });
}

/// The start is counted before it is told: who waits for it hears of it, or sees it.
pub fn workers_are_waited_for_as_one_starts() {
    check(Effort::Changes(4), || {
        let pool = pool(1);
        let waits = thread(&pool, |pool| block_on(wait_for_a_start(pool)));
        pool.core.frame.membership.starts.one_more();
        join(waits);
    });
}

/// It is on its way from a worker to the queue: it is found there, or given back by who brings it.
pub fn a_message_is_taken_back_from_a_worker_as_its_pool_ends() {
    check(Effort::Changes(4), || {
        let (pool, told) = (pool(1), Arc::default());
        hand(&pool, 1, &told);
        let takes_back = thread(&pool, |pool| take_back_handed(&pool.core, 0));
        pool.core.close();
        pool.core.end();
        give_back_queued(&pool.core);
        join(takes_back);
        assert_eq!((left_over(&pool), told.load(Ordering::Relaxed)), (vec![1], 1));
        assert!(waiting(&pool).is_empty());
    });
}

/// It rested, and its mail is on its way to the others as an operator removes it: it is found
/// there, or given back.
pub fn the_mail_of_a_worker_is_passed_on_as_its_pool_ends() {
    check(Effort::Changes(3), || {
        let pool = pool(2);
        pool.mail(0, 1).expect("it is open");
        let leaves = thread(&pool, |pool| leave(pool, 0));
        pool.core.close();
        pool.core.end();
        give_back_queued(&pool.core);
        join(leaves);
        assert_eq!(left_over(&pool), [1]);
        assert!(waiting(&pool).is_empty());
    });
}

/// A pool with messages everywhere, and who moves them; and what it has accepted.
fn busy_pool() -> (Arc<Pool>, Threads<()>, Threads<Vec<u32>>) {
    let pool = Pool::until_stopped(plan(2), |number| match number {
        2 | 11 => Handler::Fails,
        1 | 12 | 21 => Handler::Suspends,
        _ => Handler::Returns,
    });
    hand(&pool, 31, &Arc::default());
    let takes_back = thread(&pool, |pool| take_back_handed(&pool.core, 0));
    let tasks = vec![pool.member(0), pool.member(1), clock(&pool), takes_back];
    let senders =
        vec![sender(&pool, &[1, 2, 3]), sender(&pool, &[11, 12, 13]), mailer(&pool, 0, &[21, 22])];
    (pool, tasks, senders)
}

/// All that is accepted is handled before the pool ends.
pub fn a_pool_is_stopped_with_messages_everywhere() {
    check(Effort::Large, || {
        let (pool, tasks, senders) = busy_pool();
        stop(&pool, || count_accepted(&pool.core) == pool.settled());
        tasks.into_iter().for_each(join);
        let accepted: Vec<u32> = senders.into_iter().flat_map(join).chain([31]).collect();
        assert!(left_over(&pool).is_empty(), "it was to be handled");
        assert_one_outcome_each(&pool, accepted);
        assert!(waiting(&pool).is_empty());
    });
}

/// What is not handled is given back, wherever it was.
pub fn a_pool_is_stopped_at_once_with_messages_everywhere() {
    check(Effort::Large, || {
        let (pool, tasks, senders) = busy_pool();
        stop(&pool, || true);
        tasks.into_iter().for_each(join);
        let accepted: Vec<u32> = senders.into_iter().flat_map(join).chain([31]).collect();
        assert_one_outcome_each(&pool, accepted);
        assert!(waiting(&pool).is_empty());
    });
}

/// Its mail is on its way to the others: the stop waits for it.
pub fn a_worker_leaves_as_its_pool_is_stopped() {
    check(Effort::Large, || {
        let pool = pool(2);
        pool.mail(1, 1).expect("it is open");
        let tasks = [pool.member(0), pool.member(1)];
        let leaves = thread(&pool, |pool| pool.core.let_leave(1));
        stop(&pool, || count_accepted(&pool.core) == pool.settled());
        tasks.into_iter().chain([leaves]).for_each(join);
        assert!(left_over(&pool).is_empty(), "it was to be handled");
        assert_one_outcome_each(&pool, vec![1]);
    });
}

/// A pool that is without a worker for a while refuses messages, and keeps those that it has.
pub fn the_only_worker_leaves_and_another_takes_its_place() {
    check(Effort::Large, || {
        let pool = pool_with_an_empty_slot();
        let worker = pool.member(0);
        let senders = [sender(&pool, &[1, 2, 3]), sender(&pool, &[11, 12, 13])];
        let mailer = mailer(&pool, 0, &[21, 22]);
        pool.core.let_leave(0);
        pool.core.hire();
        let next = pool.member(1);
        let accepted: Vec<u32> = senders.into_iter().chain([mailer]).flat_map(join).collect();
        join(worker);
        while pool.handled().len() < accepted.len() {
            yield_now();
        }
        assert_eq!(acceptance(&pool), Acceptance::Open);
        pool.core.end();
        join(next);
        assert_one_outcome_each(&pool, accepted);
        assert!(letters(&pool).is_empty(), "the next worker has them");
    });
}

/// Workers are disabled and come again while messages come, fail and come due: each is handled or a
/// dead letter, and in the end the pool is shut.
pub fn workers_are_disabled_and_come_again_beside_senders() {
    check(Effort::Large, || {
        let pool = pool_with_an_empty_slot();
        park(&pool, 31);
        let comes_due = thread(&pool, |pool| pool.come_due());
        let senders = [sender(&pool, &[1, 2, 3]), sender(&pool, &[11, 12, 13])];
        let comes_and_goes = thread(&pool, |pool| {
            pool.core.hire();
            while pool.start_one(1) {}
            disable(pool, 1);
        });
        while pool.start_one(0) {}
        disable(&pool, 0);
        [comes_due, comes_and_goes].into_iter().for_each(join);
        let accepted: Vec<u32> = senders.into_iter().flat_map(join).chain([31]).collect();
        assert_eq!(acceptance(&pool), Acceptance::Deserted);
        assert_one_outcome_each(&pool, accepted);
        assert_empty(&pool);
    });
}
