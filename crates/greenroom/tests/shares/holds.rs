//! A held share, and the attempt that probes (Q06).

use std::time::Duration;

use greenroom::{Backoff, Stop, shares::ShareState};
use tokio::time::Instant;

use super::clerk::{Clerk, Job, Wish, flood, job, settle};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn q06_a_held_share_starts_nothing_until_then_and_one_attempt_probes() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(8).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.hold("acme", Instant::now() + SECOND);
    flood(&pool, "acme", 20, 50).await;
    flood(&pool, "bolt", 20, 50).await;
    settle(900).await;
    assert_eq!((clerk.counts().get("acme"), clerk.counts()["bolt"]), (None, 20));
    assert!(matches!(shares.status("acme").state, ShareState::Held(_)));
    settle(110).await;
    assert_eq!(clerk.counts()["acme"], 1);
    assert_eq!(shares.status("acme").state, ShareState::Probing);
    settle(500).await;
    assert_eq!(clerk.counts()["acme"], 20);
    assert_eq!(clerk.begins("acme")[..3], [1_000, 1_050, 1_050]);
}

#[tokio::test(start_paused = true)]
async fn q06_a_probe_that_is_told_to_wait_holds_the_share_again() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(8).spawn().await.unwrap();
    let again = Job { wish: Wish::Hold(SECOND), ..job("acme", 1, 10) };
    pool.admin().shares().unwrap().hold("acme", Instant::now() + SECOND);
    pool.send(again).await.unwrap();
    settle(1).await;
    flood(&pool, "acme", 20, 10).await;
    settle(1_989).await;
    assert_eq!(clerk.begins("acme"), [1_000]);
    settle(1_000).await;
    assert_eq!(clerk.begins("acme")[..3], [1_000, 2_010, 2_020]);
}

#[tokio::test(start_paused = true)]
async fn q06_the_message_that_failed_waits_with_its_share() {
    let clerk = Clerk::new();
    let pool =
        clerk.keyed(8).retry(2, Backoff::new(SECOND / 10, SECOND / 10)).spawn().await.unwrap();
    let told = Job { wish: Wish::Hold(SECOND), ..job("acme", 1, 0) };
    pool.send(told).await.unwrap();
    settle(1).await;
    flood(&pool, "acme", 3, 0).await;
    settle(900).await;
    assert_eq!(clerk.begins("acme"), [0]);
    settle(3_000).await;
    assert_eq!(clerk.counts()["acme"], 5);
    assert!(pool.stop(Stop::within(SECOND)).await.left_over.is_empty());
}

#[tokio::test(start_paused = true)]
async fn q06_a_probe_that_ends_with_its_worker_lets_the_others_follow() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(4).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.hold("acme", Instant::now() + SECOND);
    pool.send(Job { wish: Wish::Panic, ..job("acme", 1, 10) }).await.unwrap();
    flood(&pool, "acme", 5, 10).await;
    settle(3_000).await;
    assert_eq!(clerk.counts()["acme"], 6);
}

#[tokio::test(start_paused = true)]
async fn q06_a_stop_gives_back_what_a_held_share_has_not_started() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(4).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.hold("acme", Instant::now() + 100 * SECOND);
    flood(&pool, "acme", 5, 10).await;
    settle(10).await;
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(report.left_over.len(), 5);
    assert!(clerk.attempts().is_empty());
}
