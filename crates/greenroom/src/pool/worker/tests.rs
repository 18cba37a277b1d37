//! Workers, tested from inside.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use greenroom_queue::pacing::turn::MESSAGES;

use super::*;
use crate::{
    Pool, Restarts, Stop,
    pool::{
        frame::{end::end as end_pool, task_guard::start_clock},
        membership::slot_state::{HAND_OVER, MAIL, SIGNAL},
        pool_payload::Key,
    },
};

struct Worker;

impl Actor for Worker {
    type Message = u64;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<(), ()> {
        match number % 10 {
            0 => panic!("on purpose"),
            1 => return Err(()),
            2..5 => tokio::time::sleep(Duration::from_millis(number % 7)).await,
            5 => tokio::task::yield_now().await,
            _ => {}
        }
        Ok(())
    }
}

async fn messages_of_all_kinds(seed: u64) -> Arc<Core<Worker, u64>> {
    let restarts = Restarts { max: 1_000_000, ..Restarts::default() };
    let pool = Pool::new(|_| Worker).workers(5).restarts(restarts);
    let core = pool.ordered_by(|number: &u64| number % 3).spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    for number in 0..200 {
        pool.send(number * seed).await.unwrap();
    }
    // Long enough for every restart; the pool is not stopped by its last address.
    tokio::time::sleep(Duration::from_secs(100_000)).await;
    std::mem::forget(pool);
    core
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_parks_just_as_the_pool_ends_is_woken_again() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let core = Pool::new(|_| Worker).workers(1).restarts(restarts).spawn_core().await.unwrap();
    let mut in_flight = InFlight::new(core.clone(), 0);
    core.push_and_wait_for_the_last_worker().await;
    in_flight.worker.wake_up();
    end_pool(&*core);
    let (mut actor, mut cx) = (Worker, context(&core, 0));
    let idle = idle(&mut in_flight, &core, &mut actor, &mut cx);
    let up = tokio::time::timeout(Duration::from_secs(1), idle).await;
    assert!(up.is_ok(), "it would sleep for ever");
}

#[tokio::test(start_paused = true)]
async fn a_driver_says_what_comes_before_messages_in_order() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Worker).workers(1).concurrency(1).restarts(restarts);
    let core = pool.spawn_core().await.unwrap();
    let mut in_flight = InFlight::new(core.clone(), 0);
    core.push_and_wait_for_the_last_worker().await;
    in_flight.worker.wake_up();
    let mut driver = Driver::new(&core.settings);
    assert_eq!(driver.next(&mut in_flight, false), Step::Pass);
    driver.passed(false);
    assert_eq!(driver.next(&mut in_flight, false), Step::Pass, "it did not come");
    driver.passed(true);
    assert_eq!(driver.next(&mut in_flight, false), Step::Park, "nothing waits");
    driver.unparked();
    assert_eq!(driver.next(&mut in_flight, false), Step::Pass, "it was given back");
    assert_eq!(driver.next(&mut in_flight, true), Step::Exit);
    in_flight.slot_state.order(SIGNAL);
    assert_eq!(driver.next(&mut in_flight, true), Step::Hear);
    end_pool(&*core);
    assert_eq!(driver.next(&mut in_flight, true), Step::End);
}

/// The signal was handled after the next message if it came as the worker looked for one.
#[tokio::test]
async fn a03_a_signal_comes_before_a_message_also_if_the_worker_was_about_to_look() {
    let pool = Pool::new(|_| Worker).workers(1).quick_handlers(true);
    let core = pool.spawn_core().await.unwrap();
    start_clock(&core.erased());
    core.frame.membership.abort(&[0]);
    while core.frame.lifecycle.running.load(Ordering::SeqCst) > 1 {
        step_aside().await;
    }
    let address = crate::Address::new(core.clone());
    let (mut actor, mut cx) = (Worker, context(&core, 0));
    let mut in_flight = InFlight::new(core.clone(), 0);
    in_flight.worker.wake_up();
    let mut driver = Driver::new(&core.settings);
    (0..3).for_each(|_| address.try_send(9).unwrap());
    assert_eq!(driver.next(&mut in_flight, false), Step::Run);
    let attempts = attempt(&core, &mut in_flight, &mut actor, &mut cx).await;
    driver.ran(&mut in_flight, attempts);
    assert_eq!(driver.next(&mut in_flight, false), Step::Search);
    in_flight.slot_state.order(SIGNAL);
    address.try_send(9).unwrap();
    assert_eq!(driver.next(&mut in_flight, false), Step::Hear);
}

impl Core<Worker, std::convert::Infallible> {
    /// A message that panics disables the only slot; a test can then play its worker.
    async fn push_and_wait_for_the_last_worker(self: &Arc<Self>) {
        start_clock(&self.erased());
        let address = crate::Address::new(self.clone());
        address.send(0).await.unwrap();
        while self.frame.lifecycle.running.load(Ordering::SeqCst) > 1 {
            step_aside().await;
        }
        std::mem::forget(address);
    }
}

/// Idle workers of every kind of pool, tested from inside.
async fn idle_pools() -> Vec<(&'static str, Arc<dyn Idle>)> {
    fn pool() -> crate::PoolBuilder<Worker> {
        let restarts = Restarts { max: 1_000, backoff: NO_WAIT, ..Restarts::default() };
        Pool::new(|_| Worker).workers(2).restarts(restarts)
    }
    let key = |number: &u64| number % 3;
    vec![
        ("shared", pool().spawn_core().await.unwrap() as Arc<dyn Idle>),
        ("limited", pool().concurrency(1).spawn_core().await.unwrap()),
        ("keyed", pool().ordered_by(key).spawn_core().await.unwrap()),
        (
            "by a policy",
            pool().dispatch(crate::policy::RoundRobin::new()).spawn_core().await.unwrap(),
        ),
        ("sticky", pool().sticky_by(key).spawn_core().await.unwrap()),
    ]
}

const NO_WAIT: crate::Backoff = crate::Backoff::new(Duration::ZERO, Duration::ZERO);

trait Idle {
    /// The first worker has its own mailbox from now on.
    fn has_mailbox(&self);
    /// Gives the first worker these orders, and wakes it for them.
    fn order(&self, orders: u32);
    fn is_at_rest(&self) -> bool;
    /// True if the first worker has orders.
    fn has_orders(&self) -> bool;
}

impl<K: Key> Idle for Core<Worker, K> {
    fn has_mailbox(&self) {
        let _ = self.mailbox(0);
    }

    fn order(&self, orders: u32) {
        self.frame.membership.slots.at(0).order(orders);
        self.queue.wake.call(0, &self.frame.clock.watchdog);
    }

    fn is_at_rest(&self) -> bool {
        self.queue.wake.awake() == 0 && self.queue.wake.idle() == 2
    }

    fn has_orders(&self) -> bool {
        self.frame.membership.slots.at(0).has_orders()
    }
}

/// An order that nothing handles would have the worker wake itself for it again and again, in one
/// poll.
#[tokio::test(start_paused = true)]
async fn whatever_orders_an_idle_worker_finds_it_handles_them_and_parks_again() {
    // The orders that keep a worker in the pool: all but those to leave, to rest, and the pool's
    // end.
    let orders = [MAIL, SIGNAL, HAND_OVER, KILLED];
    for combination in 1..1 << orders.len() {
        let chosen = (0..orders.len()).filter(|place| combination & 1 << place != 0);
        let given = chosen.fold(0, |all, place| all | orders[place]);
        for (kind, pool) in idle_pools().await {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(pool.is_at_rest(), "{kind}");
            for has_mailbox in [false, true] {
                if has_mailbox {
                    pool.has_mailbox();
                }
                pool.order(given);
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert!(!pool.has_orders() && pool.is_at_rest(), "{kind}: {given:#b}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_does_not_wait_for_the_restart_of_a_worker_that_panicked() {
    let hour = Duration::from_secs(3600);
    let restarts = Restarts { backoff: crate::Backoff::new(hour, hour), ..Restarts::default() };
    let pool = Pool::new(|_| Worker).workers(2).capacity(1).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    for number in [0, 0, 9] {
        let sent = tokio::time::timeout(Duration::from_secs(1), pool.send(number)).await;
        assert!(sent.is_ok(), "the permit of the message that panicked is free");
    }
}

#[tokio::test(start_paused = true)]
async fn others_get_a_turn_while_abandoned_calls_are_skipped() {
    let pool = Pool::new(|_| Worker).workers(1).capacity(10_000).spawn().await.unwrap();
    for _ in 0..10_000 {
        let mut abandoned = pin!(pool.call(9));
        assert!(poll_fn(|task| Poll::Ready(abandoned.as_mut().poll(task))).await.is_pending());
    }
    let other = tokio::spawn(async move {
        let mut turns = 0;
        while !pool.stats().is_settled() {
            turns += 1;
            step_aside().await;
        }
        turns
    });
    assert!(other.await.unwrap() > 10_000 / MESSAGES / 2);
}

/// A handler that does not wait ends a run of those that do, and each of those counts.
#[tokio::test(start_paused = true)]
async fn handlers_of_which_one_in_sixteen_does_not_wait_usually_wait() {
    let core = Pool::new(|_| Worker).workers(1).spawn_core().await.unwrap();
    let pool = Pool::spawned(core.clone());
    core.queue.wake.set_waits(true);
    for number in 1..=1_000 {
        pool.send(if number % 16 == 0 { 9 } else { 5 }).await.unwrap();
    }
    while !pool.stats().is_settled() {
        assert!(core.queue.wake.waits(), "after {} messages", pool.stats().handled);
        step_aside().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_awake_when_nothing_happens() {
    for seed in [1, 3, 7] {
        let core = messages_of_all_kinds(seed).await;
        assert_eq!((core.queue.wake.awake(), core.queue.wake.idle()), (0, 5));
        assert!(!core.queue.wake.any_ready());
        // Workers that are dropped while they are idle or working take their count along.
        let address = crate::Address::new(core.clone());
        address.send(2).await.unwrap();
        step_aside().await;
        core.frame.membership.abort(&[0, 1, 2, 3, 4]);
        crate::pool::stop::run::stop(core.clone(), Stop::Now).await;
        assert_eq!((core.queue.wake.awake(), core.queue.wake.idle()), (0, 0));
    }
}
