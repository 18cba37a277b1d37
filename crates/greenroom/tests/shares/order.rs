//! Order per key, retries, parking, resizing and withdrawals stay as they are (Q05).

use std::{collections::BTreeMap, time::Duration};

use greenroom::{Backoff, CallError, FinalAction, Stop, shares::ShareLimits};

use super::clerk::{Clerk, Job, Wish, flood, job, settle};

const SECOND: Duration = Duration::from_secs(1);

/// Numbers of each key, in the order of their attempts.
fn by_key(clerk: &Clerk) -> BTreeMap<u64, Vec<u32>> {
    let mut keys: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for attempt in clerk.attempts() {
        keys.entry(attempt.job.key).or_default().push(attempt.job.number);
    }
    keys
}

#[tokio::test(start_paused = true)]
async fn q05_messages_of_a_key_stay_in_order_and_one_at_a_time() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(8).share("acme", ShareLimits::default().in_hand(3)).spawn().await;
    let pool = pool.unwrap();
    for number in 0..30 {
        for key in 0..20 {
            let tenant = if key % 2 == 0 { "acme" } else { "bolt" };
            pool.send(Job { number, ..job(tenant, key, u64::from(number) % 4) }).await.unwrap();
        }
    }
    assert!(pool.stop(Stop::within(60 * SECOND)).await.left_over.is_empty());
    for (key, numbers) in by_key(&clerk) {
        assert!(numbers.iter().copied().eq(0..30), "key {key}: {numbers:?}");
    }
    let mut ended = BTreeMap::new();
    for attempt in clerk.attempts() {
        let before = ended.insert(attempt.job.key, attempt.ended.unwrap()).unwrap_or_default();
        assert!(attempt.began >= before, "one at a time");
    }
}

#[tokio::test(start_paused = true)]
async fn q05_a_key_waits_for_the_share_of_the_message_at_its_head() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(4).spawn().await.unwrap();
    let shares = pool.admin().shares().unwrap();
    shares.pause("acme");
    for (number, tenant) in ["bolt", "acme", "bolt"].into_iter().enumerate() {
        pool.send(Job { number: number as u32, ..job(tenant, 7, 1) }).await.unwrap();
    }
    settle(100).await;
    assert_eq!(clerk.tenants(), ["bolt"]);
    shares.resume("acme");
    settle(100).await;
    assert_eq!(by_key(&clerk)[&7], [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn q05_a_message_is_attempted_again_at_its_place_in_line() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(2).retry(3, Backoff::new(SECOND, SECOND)).spawn().await.unwrap();
    pool.send(Job { wish: Wish::Fail, ..job("acme", 1, 1) }).await.unwrap();
    pool.send(Job { number: 1, ..job("acme", 1, 1) }).await.unwrap();
    flood(&pool, "bolt", 10, 1).await;
    settle(5_000).await;
    assert_eq!(by_key(&clerk)[&1], [0, 0, 0, 1]);
    assert_eq!(clerk.counts()["bolt"], 10);
}

#[tokio::test(start_paused = true)]
async fn q05_a_message_without_a_key_is_attempted_again() {
    let clerk = Clerk::new();
    let pool = clerk.keyless(2).retry(3, Backoff::new(SECOND, SECOND)).spawn().await.unwrap();
    pool.send(Job { wish: Wish::Fail, ..job("acme", 1, 1) }).await.unwrap();
    flood(&pool, "acme", 3, 1).await;
    settle(5_000).await;
    assert_eq!(clerk.counts()["acme"], 6);
    assert_eq!(pool.stats().depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn q05_a_parked_key_waits_for_its_operator() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(2).on_final_failure(FinalAction::ParkKey).spawn().await.unwrap();
    pool.send(Job { wish: Wish::Fail, ..job("acme", 1, 1) }).await.unwrap();
    settle(10).await;
    assert_eq!(pool.call(job("acme", 1, 1)).await, Err(CallError::Parked));
    assert_eq!(pool.call(job("acme", 2, 1)).await, Ok(()));
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle(10).await;
    assert_eq!(clerk.counts()["acme"], 3);
}

#[tokio::test(start_paused = true)]
async fn q05_a_pool_grows_and_shrinks_while_shares_wait() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(2).share_limits(ShareLimits::default().in_hand(6)).spawn().await;
    let pool = pool.unwrap();
    flood(&pool, "acme", 300, 10).await;
    flood(&pool, "bolt", 300, 10).await;
    settle(100).await;
    pool.admin().resize(20).unwrap().done(SECOND).await;
    settle(100).await;
    assert_eq!(clerk.most_in_hand("acme"), 6);
    pool.admin().resize(1).unwrap().done(SECOND).await;
    assert!(pool.stop(Stop::within(60 * SECOND)).await.left_over.is_empty());
    assert_eq!((clerk.counts()["acme"], clerk.counts()["bolt"]), (300, 300));
}

#[tokio::test(start_paused = true)]
async fn q05_a_worker_that_is_killed_frees_the_place_of_its_share() {
    let clerk = Clerk::new();
    let one = ShareLimits::default().in_hand(1);
    let pool = clerk.keyed(2).share_limits(one).spawn().await.unwrap();
    pool.send(job("acme", 1, 1_000_000)).await.unwrap();
    flood(&pool, "acme", 3, 1).await;
    settle(10).await;
    assert_eq!(clerk.counts()["acme"], 1);
    for worker in pool.admin().workers() {
        worker.kill();
    }
    settle(5_000).await;
    assert_eq!(clerk.counts()["acme"], 4);
}

#[tokio::test(start_paused = true)]
async fn q05_messages_are_withdrawn_from_the_lines_of_shares() {
    let clerk = Clerk::new();
    let pool = clerk.keyed(1).share("acme", ShareLimits::default().in_hand(0)).spawn().await;
    let pool = pool.unwrap();
    flood(&pool, "acme", 10, 1).await;
    pool.call(job("bolt", 1, 1)).await.unwrap();
    let mut count = 0;
    let withdrawn = pool.admin().withdraw(|_| {
        count += 1;
        count <= 4
    });
    assert_eq!((withdrawn, pool.stats().depth()), (4, 6));
    let shares = pool.admin().shares().unwrap();
    assert_eq!(shares.status("acme").waiting, 6);
    shares.set("acme", ShareLimits::default()).unwrap();
    settle(100).await;
    assert_eq!(clerk.counts()["acme"], 6);
    assert_eq!(pool.stats().depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn q05_a_share_whose_function_panics_is_the_common_one() {
    let clerk = Clerk::new();
    let share = |job: &Job| {
        assert!(job.tenant != "odd", "a share cannot be told");
        job.tenant
    };
    let pool = clerk.keyed(1).shared_by(share).spawn().await.unwrap();
    pool.call(job("odd", 1, 1)).await.unwrap();
    pool.call(job("acme", 1, 1)).await.unwrap();
    assert_eq!(clerk.attempts().len(), 2);
}
