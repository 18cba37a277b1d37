//! Caps and rates (Q04), changes while messages wait (Q09), and memory (Q10).

use std::time::Duration;

use greenroom::{
    Stop,
    autoscale::Autoscale,
    limits::Rate,
    shares::{ShareLimits, ShareState},
};

use super::clerk::{Clerk, flood, job, settle};

const HOUR: Duration = Duration::from_secs(3_600);

fn capped(most: usize) -> ShareLimits {
    ShareLimits::default().in_hand(most)
}

#[tokio::test(start_paused = true)]
async fn q04_no_more_attempts_are_in_hand_than_the_cap_of_a_share() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(16).share_limits(capped(5)).share("bolt", capped(100)).spawn().await;
    let pool = pool.unwrap();
    flood(&pool, "acme", 200, 10).await;
    flood(&pool, "bolt", 200, 10).await;
    settle(100).await;
    let status = pool.admin().shares().unwrap().status("acme");
    assert_eq!((status.in_hand, status.state), (5, ShareState::Full));
    assert_eq!(
        status.to_string(),
        format!("share acme: 5 of 5 in hand; {} waiting", status.waiting)
    );
    assert_eq!(clerk.most_in_hand("acme"), 5);
    assert_eq!(clerk.most_in_hand("bolt"), 11, "a cap above the workers caps nothing");
    assert!(pool.stop(Stop::within(Duration::from_secs(10))).await.left_over.is_empty());
    assert_eq!(clerk.counts()["acme"], 200);
}

#[tokio::test(start_paused = true)]
async fn q04_no_more_attempts_are_started_than_the_rate_of_a_share() {
    let clerk = Clerk::new();
    let slow = ShareLimits::default().rate(Rate::per_second(20));
    let pool = clerk.keyed(16).share("acme", slow).spawn().await.unwrap();
    flood(&pool, "acme", 200, 1).await;
    flood(&pool, "bolt", 2_000, 1).await;
    settle(1_000).await;
    assert_eq!(clerk.counts()["acme"], 21, "two at once, and one each 50 ms");
    assert_eq!(clerk.counts()["bolt"], 2_000);
    settle(2_010).await;
    assert_eq!(clerk.counts()["acme"], 62);
    let state = pool.admin().shares().unwrap().status("acme").state;
    assert!(matches!(state, ShareState::Rate(_)), "{state:?}");
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q04_a_rate_below_one_an_hour() {
    let clerk = Clerk::new();
    let rare = ShareLimits::default().rate(Rate::new(1, 2 * HOUR));
    let pool = clerk.keyless(2).share("acme", rare).spawn().await.unwrap();
    flood(&pool, "acme", 3, 1).await;
    settle(10_000 * 1_000).await;
    assert_eq!(clerk.begins("acme"), [0, 7_200_000]);
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q04_a_cap_of_none_pauses() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(2).share("acme", capped(0)).spawn().await.unwrap();
    flood(&pool, "acme", 5, 1).await;
    settle(1_000).await;
    let shares = pool.admin().shares().unwrap();
    assert_eq!(shares.status("acme").state, ShareState::Paused);
    assert!(clerk.attempts().is_empty());
    shares.set("acme", capped(1)).unwrap();
    settle(10).await;
    assert_eq!(clerk.counts()["acme"], 5);
}

#[tokio::test(start_paused = true)]
async fn q04_what_waits_for_a_cap_holds_no_worker_and_no_attempt() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(1).share("acme", capped(0)).spawn().await.unwrap();
    flood(&pool, "acme", 50, 1).await;
    for _ in 0..5 {
        pool.call(job("bolt", 1, 1)).await.unwrap();
    }
    assert_eq!(clerk.counts().get("acme"), None);
    assert_eq!(pool.stats().depth(), 50);
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q04_autoscale_does_not_grow_for_what_waits_for_a_cap() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(4).share_limits(capped(2)).autoscale(Autoscale::between(4, 64));
    let pool = pool.spawn().await.unwrap();
    flood(&pool, "acme", 5_000, 100).await;
    settle(60_000).await;
    assert_eq!(clerk.most_in_hand("acme"), 2);
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q09_weights_change_while_messages_wait() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(10).spawn().await.unwrap();
    flood(&pool, "acme", 20_000, 5).await;
    flood(&pool, "bolt", 20_000, 5).await;
    settle(500).await;
    let shares = pool.admin().shares().unwrap();
    shares.set("acme", ShareLimits::default().weight(4)).unwrap();
    settle(1_000).await;
    let (acme, bolt) = (clerk.in_hand("acme", 550, 1_450), clerk.in_hand("bolt", 550, 1_450));
    assert!(acme > bolt * 36 / 10 && acme < bolt * 44 / 10, "{acme:?} and {bolt:?}");
    shares.unset("acme");
    settle(1_000).await;
    let (acme, bolt) = (clerk.in_hand("acme", 1_600, 2_400), clerk.in_hand("bolt", 1_600, 2_400));
    assert!(acme.abs_diff(bolt) < acme / 10, "{acme:?} and {bolt:?}");
    pool.stop(Stop::Now).await;
}

#[tokio::test(start_paused = true)]
async fn q09_what_is_set_by_hand_is_listed_and_ends_with_it() {
    let clerk = Clerk::new();
    let pool =
        clerk.keyed(2).share("paid", ShareLimits::default().weight(3)).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.set("acme", capped(1)).unwrap();
    shares.set("paid", capped(9)).unwrap();
    let mut listed = shares.list();
    listed.sort_by(|a, b| a.share.cmp(&b.share));
    let names: Vec<_> = listed.iter().map(|one| (one.share.to_string(), one.is_set)).collect();
    assert_eq!(names, [("acme".to_owned(), true), ("paid".to_owned(), true)]);
    shares.unset("acme");
    shares.unset("paid");
    let left = shares.list();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].limits.weighs(), 3);
    assert!(shares.set("acme", ShareLimits::default().weight(0)).is_err());
}

#[tokio::test(start_paused = true)]
async fn q09_a_pause_ends_when_the_share_is_resumed() {
    let clerk = Clerk::new();
    let pool = clerk.keyless(2).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.pause("acme");
    flood(&pool, "acme", 5, 1).await;
    flood(&pool, "bolt", 5, 1).await;
    settle(100).await;
    assert_eq!((clerk.counts().get("acme"), clerk.counts()["bolt"]), (None, 5));
    assert_eq!(shares.status("acme").waiting, 5);
    shares.resume("acme");
    settle(100).await;
    assert_eq!(clerk.counts()["acme"], 5);
}

#[tokio::test(start_paused = true)]
async fn q10_shares_that_were_seen_once_leave_nothing() {
    let clerk = Clerk::new();
    let limits = ShareLimits::default().rate(Rate::per_second(1));
    let pool = clerk.keyless(16).shared_by(|job: &super::clerk::Job| job.key);
    let pool = pool.share_limits(limits).spawn().await.unwrap();
    flood(&pool, "each", 20_000, 1).await;
    let shares = pool.admin().shares().unwrap();
    assert!(shares.list().len() > 10_000);
    settle(10_000).await;
    assert_eq!(clerk.attempts().len(), 20_000);
    assert_eq!(shares.list(), []);
}
