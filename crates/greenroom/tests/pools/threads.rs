//! Pools with their own threads.

use std::{
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use greenroom::{SpawnError, prelude::*};

/// Blocks its thread until all have arrived, then returns the thread's name.
struct Blocker(Arc<Barrier>);

impl Actor for Blocker {
    type Message = ();
    type Reply = String;
    type Error = ();

    async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<String, ()> {
        self.0.wait();
        Ok(thread::current().name().unwrap_or_default().to_owned())
    }
}

/// Thread names end at a NUL, and tokio panics on one.
#[tokio::test]
async fn p30_a_pool_with_a_nul_in_its_name_has_threads_too() {
    let alone = Arc::new(Barrier::new(1));
    let pool = Pool::new(move |_| Blocker(alone.clone())).name("block\0ers").workers(1);
    let pool = pool.dedicated_threads(1).spawn().await.unwrap();
    assert_eq!(pool.call(()).await.unwrap(), "blockers");
}

/// The test's runtime has one thread: if a handler blocked it, no other handler would ever reach
/// the barrier.
#[tokio::test]
async fn p30_handlers_that_block_hold_up_nobody_outside_of_the_pool() {
    let barrier = Arc::new(Barrier::new(3));
    let shared = barrier.clone();
    let pool = Pool::new(move |_| Blocker(shared.clone())).name("blockers").workers(2);
    let pool = Arc::new(pool.dedicated_threads(2).spawn().await.unwrap());
    let call = |_| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.call(()).await })
    };
    let calls: Vec<_> = (0..2).map(call).collect();
    while pool.stats().in_hand < 2 {
        tokio::task::yield_now().await;
    }
    let (ticks, ticking) = tokio::sync::oneshot::channel();
    tokio::spawn(async move { ticks.send(()) });
    ticking.await.unwrap();
    tokio::task::spawn_blocking(move || barrier.wait()).await.unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "blockers");
    }
    assert!(pool.stop(Stop::within(Duration::from_secs(60))).await.wedged.is_empty());
}

#[tokio::test]
async fn p30_the_threads_go_with_the_pool_also_where_it_is_just_dropped() {
    let barrier = Arc::new(Barrier::new(1));
    let watched = Arc::downgrade(&barrier);
    let pool = Pool::new(move |_| Blocker(barrier.clone())).dedicated_threads(1);
    let pool = pool.spawn().await.unwrap();
    assert!(pool.call(()).await.is_ok());
    drop(pool);
    while watched.upgrade().is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn p30_absurd_numbers_of_threads_are_errors() {
    for threads in [0, 1_025] {
        let barrier = Arc::new(Barrier::new(1));
        let pool = Pool::new(move |_| Blocker(barrier.clone())).dedicated_threads(threads);
        let error = pool.spawn().await.unwrap_err();
        assert!(matches!(error, SpawnError::OutOfRange { setting: "dedicated threads", .. }));
    }
}
