//! The code that selects messages, and the code that drops them, is user code: it panics, and calls
//! the pool.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{Backoff, prelude::*};

use crate::sending::{room::assert_room, settle::settle};

use super::clerk::{
    Clerk, PATIENCE,
    Wish::{Nothing, Wait},
    assert_settled, by_key, open,
};

#[tokio::test(start_paused = true)]
async fn a_choice_that_panics_loses_nothing() {
    for keyed in [false, true] {
        let clerk = Clerk::default();
        let pool = clerk.pool().retry(2, Backoff::new(Duration::ZERO, Duration::ZERO));
        let pool = open(pool, keyed).await;
        pool.send((0, 100, Wait(100))).await.unwrap();
        settle().await;
        for number in 0..8 {
            pool.send((0, number, Nothing)).await.unwrap();
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            pool.admin().withdraw(|job| match job.1 {
                4 => panic!("on purpose"),
                number => number.is_multiple_of(2),
            })
        }));
        assert!(panicked.is_err());
        let stats = pool.stats();
        assert!(stats.ledger_holds(), "{stats:?}");
        assert_eq!((stats.queued, stats.withdrawn), (6, 2), "0 and 2 had been chosen");
        assert_room(&pool, 4);
        assert_eq!(pool.admin().withdraw(|job| job.1 == 5), 1, "it can be done again");
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!(clerk.handled(), [100, 1, 3, 4, 6, 7], "keyed: {keyed}");
        assert_settled(&stats, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_choice_may_use_the_pool() {
    let clerk = Clerk::default();
    let pool = clerk.pool().ordered_by(by_key).max_per_key(10).spawn().await.unwrap();
    pool.send((0, 100, Wait(100))).await.unwrap();
    settle().await;
    for number in 0..4 {
        pool.send((0, number, Nothing)).await.unwrap();
    }
    let (admin, keys) = (pool.admin(), pool.keys::<u64>().unwrap());
    let withdrawn = pool.admin().withdraw(|job| {
        assert!(admin.stats().ledger_holds());
        assert!(!keys.is_parked(&0) && keys.counts().running == 1);
        assert_eq!(admin.withdraw(|_| true), 0, "it finds nothing");
        if job.1 == 2 {
            pool.try_send((0, 10, Nothing)).unwrap();
        }
        job.1 == 1
    });
    assert_eq!(withdrawn, 1);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [100, 0, 2, 3, 10]);
    assert_settled(&stats, 1);
}

/// A message whose end is counted, and may be loud.
struct Loud(Arc<AtomicU32>, u32);

impl Drop for Loud {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(!self.1.is_multiple_of(2), "on purpose");
    }
}

/// Drops what it gets.
struct Forgets;

impl Actor for Forgets {
    type Message = Loud;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: Loud, _cx: &mut Context<Self>) -> Result<(), ()> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        std::mem::forget(message);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn messages_whose_drop_panics_are_withdrawn_like_others() {
    let pool = Pool::new(|_slot| Forgets).workers(1).capacity(10).spawn().await.unwrap();
    let dropped = Arc::new(AtomicU32::new(0));
    pool.send(Loud(dropped.clone(), 99)).await.unwrap();
    settle().await;
    for number in 0..10 {
        pool.send(Loud(dropped.clone(), number)).await.unwrap();
    }
    assert_eq!(pool.admin().withdraw(|message| message.1 < 7), 7);
    assert_eq!(dropped.load(Ordering::SeqCst), 7, "at once");
    assert_room(&pool, 7);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.withdrawn, stats.restarts), (4, 7, 0));
    assert!(stats.ledger_holds());
}
