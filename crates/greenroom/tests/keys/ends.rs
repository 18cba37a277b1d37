//! The effect of a message that has failed for good on its pool or its last worker (K08).

use std::time::Duration;

use greenroom::{DeadLetterReason, FailureTable, FinalAction, Restarts, Rule};

use super::clerk::{
    Clerk, Job, PATIENCE,
    Wish::{Fail, FailLater, Nothing, Open, Panic},
    parking, settle,
};

#[tokio::test(start_paused = true)]
async fn k08_a_policy_may_park_and_stop_too() {
    let clerk = Clerk::new();
    let table = FailureTable {
        error: Rule::Once(FinalAction::ParkKey),
        panic: Rule::Once(FinalAction::StopPool),
        ..FailureTable::default()
    };
    let pool = clerk.forgetful_pool().ordered_by(|job: &Job| job.0).failure_policy(table);
    let pool = pool.spawn().await.unwrap();
    // Nothing is left of the message: it is a dead letter, and its key waits anyway.
    pool.send((1, 0, Fail)).await.unwrap();
    pool.send((1, 1, Nothing)).await.unwrap();
    settle().await;
    assert_eq!((pool.stats().dead_lettered, pool.stats().queued), (1, 1));
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 1)]);
    pool.send((2, 0, Panic)).await.unwrap();
    pool.erase().ended().await;
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.dead_letters.of(DeadLetterReason::Panicked), 1);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_stop_pool_ends_it_and_gives_back_what_is_queued() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).ordered_by(|job: &Job| job.0);
    let pool = pool.on_final_failure(FinalAction::StopPool).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    for key in 2..5 {
        pool.send((key, 0, Nothing)).await.unwrap();
    }
    pool.erase().ended().await;
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.stats.dead_lettered, 1);
    assert_eq!(report.left_over.len() + clerk.handled().len(), 3);
    assert!(pool.send((9, 0, Nothing)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn k08_p19_a_parked_key_goes_with_the_last_worker() {
    let clerk = Clerk::new();
    let none = Restarts { max: 0, ..Restarts::default() };
    let pool = parking(&clerk).workers(1).restarts(none).max_parked(1).spawn().await.unwrap();
    pool.send((1, 0, Panic)).await.unwrap();
    settle().await;
    assert_eq!(pool.stats().dead_letters.of(DeadLetterReason::NoWorkers), 1);
    pool.admin().enable(0).unwrap().done(Duration::from_secs(1)).await;
    assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 0);
    assert_eq!(pool.call((1, 1, Nothing)).await, Ok(1), "nothing is parked any more");
    pool.send((1, 2, Nothing)).await.unwrap();
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k01_k08_a_pool_that_stops_because_of_a_message_starts_no_later_one_of_its_key() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(2).ordered_by(|job: &Job| job.0);
    let pool = pool.on_final_failure(FinalAction::StopPool).spawn().await.unwrap();
    pool.send((1, 0, FailLater)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    settle().await;
    // While the first message fails, the worker of these messages steps aside, to look for more
    // right afterwards.
    pool.send((2, 0, Nothing)).await.unwrap();
    pool.send((2, 1, Open)).await.unwrap();
    pool.erase().ended().await;
    let report = pool.stop(PATIENCE).await;
    assert_eq!(clerk.handled(), [(2, 0), (2, 1)]);
    assert_eq!(report.left_over, [(1, 1, Nothing)]);
    assert!(report.stats.ledger_holds(), "{:?}", report.stats);
}
