//! A pool that changes its size while it works.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use greenroom::{ManageError, NotAccepted, Restarts, Stop, prelude::*};

const SOON: Duration = Duration::from_secs(60);

/// Sleeps for so many milliseconds; panics when told `u64::MAX`. Answers with its slot.
struct Sleeper;

impl Actor for Sleeper {
    type Message = u64;
    type Reply = usize;
    type Error = ();

    async fn handle(&mut self, ms: u64, cx: &mut Context<Self>) -> Result<usize, ()> {
        assert!(ms < u64::MAX, "on purpose");
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        Ok(cx.slot())
    }
}

#[tokio::test(start_paused = true)]
async fn p13_a_pool_grows_and_shrinks_while_all_its_workers_are_busy() {
    let pool = Pool::new(|_| Sleeper).workers(2).mailbox(10).spawn().await.unwrap();
    for _ in 0..4 {
        pool.send(10_000).await.unwrap();
    }
    let grown = pool.manage().resize(4).unwrap();
    assert_eq!((grown.added(), grown.size()), (&[2, 3][..], 4));
    assert_eq!(grown.done(SOON).await.started, [2, 3]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.in_hand, stats.queued, stats.capacity), (4, 4, 0, 40));
    let shrunk = pool.manage().resize(1).unwrap();
    assert_eq!(shrunk.removed(), [3, 2, 1]);
    let early = shrunk.done(Duration::from_secs(1)).await;
    assert_eq!(
        (early.left.len(), early.pending.len()),
        (0, 3),
        "each finishes what it has in hand"
    );
    assert_eq!(pool.stats().capacity, 10);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(pool.stats().handled, 4);
    assert_eq!(pool.stats().live, 1);
}

#[tokio::test(start_paused = true)]
async fn p15_idle_workers_leave_first_and_more_than_there_are_is_all() {
    let pool = Pool::new(|_| Sleeper).workers(3).spawn().await.unwrap();
    pool.manage().resize(3).unwrap().done(SOON).await;
    let busy = pool.address();
    let busy = tokio::spawn(async move { busy.call(1_000).await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let removed = pool.manage().remove(2).unwrap();
    let idle = removed.removed().to_vec();
    assert_eq!(removed.done(Duration::from_millis(1)).await.left.len(), 2);
    let slot = busy.await.unwrap().unwrap();
    assert!(!idle.contains(&slot), "the busy one stays");
    let rest = pool.manage().remove(10).unwrap();
    assert_eq!((rest.removed(), rest.size()), (&[slot][..], 0));
    rest.done(SOON).await;
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    pool.manage().add(1).unwrap().done(SOON).await;
    assert_eq!(pool.call(0).await, Ok(0), "the lowest slot is taken again");
}

#[tokio::test(start_paused = true)]
async fn p15_a_pool_without_workers_holds_messages_where_it_is_told_to() {
    let pool =
        Pool::new(|_| Sleeper).workers(0).capacity(2).hold_when_empty().spawn().await.unwrap();
    pool.try_send(0).unwrap();
    pool.try_send(0).unwrap();
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::Full);
    pool.manage().add(1).unwrap().done(SOON).await;
    let report = pool.stop(Stop::within(SOON)).await;
    assert_eq!((report.stats.handled, report.left_over.len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn p05_an_empty_pool_rejects_and_is_revived_by_its_first_worker() {
    let pool = Pool::new(|_| Sleeper).workers(0).spawn().await.unwrap();
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(pool.send(0).await.unwrap_err().without_message(), NotAccepted::NoWorkers);
    pool.manage().add(2).unwrap().done(SOON).await;
    assert!(pool.call(0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn p16_starts_that_fail_are_told_and_the_bounds_hold() {
    let broken = Arc::new(AtomicBool::new(false));
    let fails = broken.clone();
    let factory = move |slot| match slot == 2 && fails.load(Ordering::SeqCst) {
        true => Err("no connection"),
        false => Ok(Sleeper),
    };
    let pool = Pool::try_new(factory).workers(1).bounds(1..=4).spawn().await.unwrap();
    let beyond = pool.manage().add(4).unwrap_err();
    assert_eq!(beyond, ManageError::OutOfBounds { asked: 5, bounds: 1..=4 });
    assert!(matches!(pool.manage().remove(1), Err(ManageError::OutOfBounds { asked: 0, .. })));
    broken.store(true, Ordering::SeqCst);
    let report = pool.manage().add(3).unwrap().done(SOON).await;
    assert_eq!(report.started, [1, 3]);
    assert_eq!(report.failed, [(2, "no connection".to_owned())]);
    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(SOON).await;
    let stats = pool.stats();
    assert_eq!((stats.configured, stats.idle), (4, 4), "the size recovers");
}

#[tokio::test(start_paused = true)]
async fn p19_a_disabled_slot_is_brought_back_by_enable() {
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(2).restarts(restarts).spawn().await.unwrap();
    pool.manage().resize(2).unwrap().done(SOON).await;
    assert_eq!(pool.manage().enable(0).unwrap_err(), ManageError::NotDisabled(0));
    for _ in 0..2 {
        assert!(pool.call(u64::MAX).await.is_err());
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(pool.try_send(0).unwrap_err().without_message(), NotAccepted::NoWorkers);
    assert_eq!(pool.stats().live, 0);
    pool.manage().enable(1).unwrap().done(SOON).await;
    assert_eq!(pool.call(0).await, Ok(1));
    assert_eq!(pool.manage().enable(7).unwrap_err(), ManageError::NoSuchSlot(7));
}

#[tokio::test(start_paused = true)]
async fn p22_after_a_stop_management_says_that_the_pool_is_not_running() {
    let pool = Pool::new(|_| Sleeper).spawn().await.unwrap();
    let manage = pool.manage();
    manage.stop(Stop::Now).await;
    for refused in [manage.add(1), manage.remove(1), manage.resize(9), manage.enable(0)] {
        assert_eq!(refused.unwrap_err(), ManageError::NotRunning);
    }
}

#[tokio::test(start_paused = true)]
async fn p15_a_worker_leaves_between_restarts_and_while_it_starts() {
    let restarts =
        Restarts { max: 9, backoff: greenroom::Backoff::new(SOON, SOON), ..Restarts::default() };
    let pool = Pool::new(|_| Sleeper).workers(1).restarts(restarts).spawn().await.unwrap();
    for _ in 0..2 {
        assert!(pool.call(u64::MAX).await.is_err());
    }
    let left = pool.manage().remove(1).unwrap().done(Duration::from_millis(10)).await;
    assert_eq!(left.left, [0], "it does not wait for the end of its backoff");
}
