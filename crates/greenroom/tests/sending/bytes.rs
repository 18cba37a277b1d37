//! The bound on bytes that wait in a pool (keyed-pools.md, K10).

use std::{sync::Arc, time::Duration};

use greenroom::{
    Actor, Address, Answer, Backoff, Context, Delivery, NotAccepted, Overflow, Pool, PoolBuilder,
    SendError, SpawnError, Stop, TrySendError, policy::RoundRobin,
};
use tokio::sync::Semaphore;

use crate::sending::settle::settle;

/// A key and a size.
type Page = (u64, usize);

/// Handles a page for each permit.
#[derive(Clone)]
struct Press(Arc<Semaphore>);

impl Actor for Press {
    type Message = Page;
    type Reply = usize;
    type Error = ();

    async fn handle(&mut self, page: Page, _cx: &mut Context<Self>) -> Result<usize, ()> {
        self.0.acquire().await.map_err(drop)?.forget();
        Ok(page.1)
    }
}

fn press(bytes: usize) -> (PoolBuilder<Press>, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let each = Press(gate.clone());
    (Pool::new(move |_| each.clone()).workers(1).max_bytes(bytes, |page: &Page| page.1), gate)
}

const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

#[tokio::test(start_paused = true)]
async fn k10_bytes_that_wait_are_bounded_and_free_when_they_are_started() {
    let (builder, gate) = press(100);
    let pool = builder.ordered_by(|page: &Page| page.0).spawn().await.unwrap();
    pool.send((0, 90)).await.unwrap();
    settle().await;
    assert_eq!(pool.stats().queued_bytes, Some(0), "it is in hand");
    pool.try_send((1, 60)).unwrap();
    assert!(matches!(pool.try_send((2, 41)), Err(TrySendError::Full((2, 41)))));
    pool.try_send((3, 40)).unwrap();
    assert_eq!(pool.stats().queued_bytes, Some(100));
    let address = pool.address();
    let waiting = tokio::spawn(async move { address.send((4, 50)).await });
    settle().await;
    assert!(!waiting.is_finished());
    assert!(pool.try_send((5, 1)).is_err(), "nobody overtakes who waits");
    gate.add_permits(1);
    settle().await;
    assert!(waiting.await.unwrap().is_ok());
    assert_eq!(pool.stats().queued_bytes, Some(90));
    gate.add_permits(10);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.queued_bytes), (4, Some(0)));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_a_message_larger_than_the_bound_passes_alone() {
    let (builder, gate) = press(100);
    let pool = builder.spawn().await.unwrap();
    pool.try_send((0, 1_000_000)).unwrap();
    assert!(pool.try_send((1, 1)).is_err());
    settle().await;
    pool.try_send((1, 1)).unwrap();
    assert!(pool.try_send((2, 1_000)).is_err());
    gate.add_permits(10);
    settle().await;
    assert_eq!(pool.call((2, 1_000)).await, Ok(1_000));
}

#[tokio::test(start_paused = true)]
async fn k10_every_way_in_counts_bytes() {
    let (builder, _gate) = press(100);
    let pool = builder.spawn().await.unwrap();
    pool.send((0, 1)).await.unwrap();
    settle().await;
    let mut many = [(1, 40), (2, 40), (3, 40)].into();
    assert_eq!(pool.try_send_many(&mut many), Ok(2));
    let permit = pool.try_reserve().unwrap();
    assert_eq!(permit.send((4, 30)).unwrap_err().without_message(), NotAccepted::Full);
    let permit = pool.try_reserve().unwrap();
    assert!(permit.send((4, 20)).is_ok());
    let call = pool.call_with((5, 1), greenroom::Envelope::new().timeout(Duration::from_secs(1)));
    assert_eq!(call.await, Err(SendError::Full((5, 1)).into()));
    assert_eq!(pool.stats().queued_bytes, Some(100));
    let report = pool.stop(Stop::within(Duration::ZERO)).await;
    assert_eq!((report.stats.queued_bytes, report.left_over.len()), (Some(0), 3));
}

#[tokio::test(start_paused = true)]
async fn k10_who_waits_for_bytes_hears_of_the_end_and_can_go() {
    let (builder, _gate) = press(10);
    let pool = builder.spawn().await.unwrap();
    pool.send((0, 1)).await.unwrap();
    settle().await;
    pool.send((1, 10)).await.unwrap();
    let send = |page| {
        let address = pool.address();
        tokio::spawn(async move { address.send(page).await })
    };
    let (gone, waits) = (send((2, 9)), send((3, 9)));
    settle().await;
    gone.abort();
    settle().await;
    assert!(!waits.is_finished());
    let report = pool.stop(Stop::within(Duration::ZERO)).await;
    let refused = waits.await.unwrap().unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    assert_eq!(report.left_over, [(1, 10)]);
}

#[tokio::test(start_paused = true)]
async fn k10_a18_a_timer_waits_in_line_where_bytes_are_full() {
    for capacity in [10, 1] {
        let (builder, gate) = press(100);
        let pool = builder.capacity(capacity).spawn().await.unwrap();
        pool.send((0, 1)).await.unwrap();
        settle().await;
        pool.send((1, 90)).await.unwrap();
        let _timer = pool.send_after((2, 50), Duration::from_secs(1));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(pool.stats().accepted, 2, "there is no room");
        gate.add_permits(10);
        settle().await;
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!((stats.handled, stats.queued_bytes), (3, Some(0)));
    }
}

/// Hands its pages on, waiting at most a second.
struct Mover(Address<Page, usize, ()>);

impl Actor for Mover {
    type Message = Page;
    type Reply = usize;
    type Error = ();

    async fn handle(&mut self, _: Page, _cx: &mut Context<Self>) -> Result<usize, ()> {
        unreachable!("receive does it")
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Page, usize, ()>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<usize>, ()> {
        let forwarded =
            tokio::time::timeout(Duration::from_secs(1), delivery.forward(&self.0)).await;
        forwarded.map_err(drop)?.map_err(drop)?;
        Ok(Answer::Deferred)
    }
}

#[tokio::test(start_paused = true)]
async fn k10_a_message_that_was_not_handed_on_takes_no_bytes_there() {
    let (builder, _gate) = press(100);
    let to = builder.capacity(1).spawn().await.unwrap();
    to.send((0, 1)).await.unwrap();
    settle().await;
    to.send((1, 10)).await.unwrap();
    let address = to.address();
    let movers = Pool::new(move |_| Mover(address.clone())).workers(1);
    let hour = Duration::from_secs(3_600);
    let movers = movers.retry(3, Backoff::new(hour, hour)).spawn().await.unwrap();
    movers.send((2, 50)).await.unwrap();
    settle().await;
    assert_eq!(to.stats().queued_bytes, Some(60), "it waits for its place there");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(movers.stats().retries, 1);
    assert_eq!(to.stats().queued_bytes, Some(10));
}

#[tokio::test(start_paused = true)]
async fn k10_p07_bytes_follow_the_overflow_policy() {
    for (overflow, sent, dead) in
        [(Overflow::Reject, Err(NotAccepted::Full), 0), (Overflow::DropOldest, Ok(()), 2)]
    {
        let (builder, _gate) = press(100);
        let pool = builder.overflow(overflow).spawn().await.unwrap();
        pool.send((0, 1)).await.unwrap();
        settle().await;
        for number in 1..=4 {
            pool.send((number, 25)).await.unwrap();
        }
        let late = pool.send((5, 50)).await.map_err(|error| error.without_message());
        assert_eq!((late, pool.stats().dead_lettered), (sent, dead));
        assert_eq!(pool.stats().queued_bytes, Some(100));
        let stats = pool.stop(Stop::within(Duration::ZERO)).await.stats;
        assert!(stats.ledger_holds(), "{stats:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn k10_bytes_are_bounded_where_a_policy_chooses_as_well() {
    let (builder, gate) = press(100);
    let pool = builder.workers(2).dispatch(RoundRobin::new()).spawn().await.unwrap();
    pool.send((0, 1)).await.unwrap();
    pool.send((0, 1)).await.unwrap();
    settle().await;
    pool.try_send((1, 60)).unwrap();
    assert!(pool.try_send((2, 60)).is_err());
    let address = pool.address();
    let waiting = tokio::spawn(async move { address.send((2, 60)).await });
    settle().await;
    gate.add_permits(2);
    assert!(waiting.await.unwrap().is_ok());
    gate.add_permits(2);
    assert_eq!(pool.stop(PATIENCE).await.stats.handled, 4);
}

#[tokio::test]
async fn k10_a_bound_of_no_bytes_is_refused() {
    let none = press(0).0.spawn().await.unwrap_err();
    assert!(matches!(none, SpawnError::OutOfRange { setting: "max bytes", .. }), "{none}");
}

/// The sender was told that there were no workers, although the pool had one.
#[tokio::test(start_paused = true)]
async fn k10_p15_who_waits_for_bytes_goes_on_in_a_pool_that_has_a_worker_again() {
    let (builder, gate) = press(100);
    let pool = builder.spawn().await.unwrap();
    pool.send((0, 90)).await.unwrap();
    settle().await;
    pool.send((0, 90)).await.unwrap();
    let address = pool.address();
    let waiting = tokio::spawn(async move { address.send((1, 50)).await });
    settle().await;
    let admin = pool.admin();
    let changes = (admin.remove(1).unwrap(), admin.add(1).unwrap());
    gate.add_permits(10);
    assert!(waiting.await.unwrap().is_ok());
    changes.1.done(Duration::from_secs(1)).await;
    assert_eq!(pool.stop(PATIENCE).await.stats.handled, 3);
}
