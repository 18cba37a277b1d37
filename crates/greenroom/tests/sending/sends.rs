//! Sending: bounds, room, and the effect of a cancelled send.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context as TaskContext, Waker},
};

use futures_util::FutureExt;
use greenroom::{NotAccepted, TrySendError, prelude::*};
use tokio::sync::Semaphore;

/// Handles a message when it gets a ticket.
struct Gated(Arc<Semaphore>);

impl Actor for Gated {
    type Message = u64;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, _: u64, _cx: &mut Context<Self>) -> Result<(), Infallible> {
        if let Ok(ticket) = self.0.acquire().await {
            ticket.forget();
        }
        Ok(())
    }
}

async fn gated(workers: usize, capacity: usize) -> (Pool<Gated>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let of = gate.clone();
    let pool = Pool::new(move |_| Gated(of.clone())).quick_factory();
    let pool = pool.workers(workers).capacity(capacity);
    (pool.spawn().await.unwrap(), gate)
}

/// Lets the workers take what they can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn poll_once<F: Future>(future: F) -> std::task::Poll<F::Output> {
    pin!(future).poll(&mut TaskContext::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a04_many_senders_together_get_the_capacity_and_not_one_message_more() {
    for (workers, capacity) in [(1, 1), (3, 10), (4, 1_000), (16, 20_000)] {
        let (pool, _gate) = gated(workers, capacity).await;
        (0..workers as u64).for_each(|number| pool.try_send(number).unwrap());
        while pool.stats().in_hand < workers as u64 {
            tokio::task::yield_now().await;
        }
        let senders: Vec<_> = (0..7).map(|_| pool.address()).collect();
        let mut accepted = 0;
        let mut refused = 0;
        // One after the other, so that each leaves credit behind in its shard, which the next one
        // must reclaim.
        while refused < senders.len() {
            for sender in &senders {
                match sender.try_send(0) {
                    Ok(()) => accepted += 1,
                    Err(TrySendError::Full(_)) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert_eq!(accepted, capacity, "{workers} workers");
        assert_eq!(pool.stats().queued, capacity as u64);
    }
}

#[tokio::test]
async fn a05_a_cancelled_send_that_let_others_run_has_queued_nothing() {
    let (pool, _gate) = gated(1, 100_000).await;
    let mut stepped_aside = 0;
    for number in 0..10_000 {
        let accepted = pool.stats().accepted;
        if poll_once(pool.send(number)).is_pending() {
            stepped_aside += 1;
            assert_eq!(pool.stats().accepted, accepted, "the future is gone");
        }
    }
    assert!(stepped_aside > 10, "a sender that never lets workers run");
    assert!(pool.stats().ledger_holds());
}

#[tokio::test]
async fn a05_a_cancelled_wait_for_room_has_queued_nothing_and_its_room_goes_to_the_next() {
    let (pool, gate) = gated(1, 1).await;
    pool.send(0).await.unwrap();
    settle().await;
    pool.send(1).await.unwrap();
    let (first, second) = (pool.address(), pool.address());
    let mut first = Box::pin(first.send(2));
    let mut second = Box::pin(second.send(3));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    gate.add_permits(1);
    settle().await;
    drop(first);
    assert!(poll_once(second.as_mut()).is_ready());
    assert_eq!(pool.stats().accepted, 3);
}

#[tokio::test]
async fn a05_send_many_waits_for_room_and_a_cancelled_one_leaves_what_it_has_not_queued() {
    let (pool, gate) = gated(1, 4).await;
    pool.send(0).await.unwrap();
    settle().await;
    let mut messages: VecDeque<u64> = (1..=10).collect();
    assert!(poll_once(pool.send_many(&mut messages)).is_pending());
    assert_eq!(messages, (5..=10).collect::<VecDeque<_>>());
    assert_eq!(pool.stats().accepted, 5);
    gate.add_permits(100);
    pool.send_many(&mut messages).await.unwrap();
    assert!(messages.is_empty());
    settle().await;
    assert_eq!(pool.stats().handled, 11);
}

#[tokio::test]
async fn a05_send_many_to_a_stopped_pool_leaves_all() {
    let (pool, gate) = gated(1, 4).await;
    gate.add_permits(1);
    let address = pool.address();
    pool.stop(Stop::Now).await;
    let mut messages: VecDeque<u64> = (0..3).collect();
    assert_eq!(address.send_many(&mut messages).await, Err(NotAccepted::Stopped));
    assert_eq!(messages.len(), 3);
}

#[tokio::test]
async fn a05_a_key_function_that_panics_after_a_wait_for_room_leaves_the_message() {
    let (gate, careless) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicBool::new(false)));
    let (of, strict) = (gate.clone(), careless.clone());
    let pool = Pool::new(move |_| Gated(of.clone())).quick_factory().workers(1).capacity(1);
    let pool = pool.ordered_by(move |number: &u64| {
        assert!(!strict.load(Ordering::Relaxed), "no key");
        *number
    });
    let pool = pool.spawn().await.unwrap();
    pool.send(0).await.unwrap();
    while pool.stats().in_hand < 1 {
        tokio::task::yield_now().await;
    }
    let mut messages: VecDeque<u64> = (1..=3).collect();
    let sending = AssertUnwindSafe(pool.send_many(&mut messages)).catch_unwind();
    let (sent, ()) = tokio::join!(sending, async {
        // The first has the only room; the second waits, and its key function is called when the
        // first is started.
        careless.store(true, Ordering::Relaxed);
        gate.add_permits(1);
    });
    assert!(sent.is_err());
    assert_eq!(messages, [2, 3]);
    assert_eq!((pool.stats().accepted, pool.try_reserve().is_ok()), (2, true));
}

#[tokio::test]
async fn a05_a_key_function_that_panics_leaves_the_message_with_its_sender() {
    let gate = Arc::new(Semaphore::new(100));
    let pool = Pool::new(move |_| Gated(gate.clone())).ordered_by(|number: &u64| {
        assert_ne!(*number, 3, "no key");
        *number
    });
    let pool = pool.spawn().await.unwrap();
    let mut messages: VecDeque<u64> = (1..=5).collect();
    let sending = AssertUnwindSafe(|| pool.try_send_many(&mut messages));
    assert!(std::panic::catch_unwind(sending).is_err());
    assert_eq!(messages, [3, 4, 5]);
    settle().await;
    assert_eq!((pool.stats().accepted, pool.stats().handled), (2, 2));
}
