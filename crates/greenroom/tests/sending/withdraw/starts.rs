//! Messages whose turn to start comes when they are no longer wanted.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Backoff, CallError, FailureTable, FinalAction, Rule,
    batch::{Batch, Batches},
    policy::RoundRobin,
    prelude::*,
};

use crate::sending::{room::assert_room, settle::settle};

use super::clerk::{
    Clerk, Job, PATIENCE,
    Wish::{Fail, FailOnce, Nothing, Wait},
    assert_settled, by_key,
};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn what_is_not_wanted_is_not_started_wherever_it_waits() {
    for kind in 0..5 {
        let clerk = Clerk::default();
        let pool = clerk.choosy_pool().workers(2);
        let pool = match kind {
            0 => pool.spawn().await.unwrap(),
            1 => pool.ordered_by(by_key).max_per_key(10).spawn().await.unwrap(),
            2 => pool.sticky_by(by_key).mailbox(10).spawn().await.unwrap(),
            3 => pool.dispatch(RoundRobin::new()).mailbox(10).spawn().await.unwrap(),
            _ => {
                pool.retry(2, Backoff::new(HOUR, HOUR)).quick_handlers(true).spawn().await.unwrap()
            }
        };
        for number in 0..8 {
            let wish = if number < 2 { Wait(10) } else { Nothing };
            pool.send((0, number, wish)).await.unwrap();
        }
        settle().await;
        clerk.wants_from(5);
        let stats = pool.stop(PATIENCE).await.stats;
        let mut begun = clerk.begun();
        begun.sort_unstable();
        let was_begun = |number: u32| number < 2 && begun.contains(&number) || number >= 5;
        let expected: Vec<u32> = (0..8).filter(|number| was_begun(*number)).collect();
        assert_eq!(begun, expected, "kind {kind}");
        assert_settled(&stats, 8 - expected.len() as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn callers_hear_it_and_nothing_goes_past_the_question() {
    for quick in [false, true] {
        let clerk = Clerk::default();
        let pool = clerk.choosy_pool();
        let pool = if quick { pool.quick_handlers(true) } else { pool };
        let pool = pool.spawn().await.unwrap();
        settle().await;
        for round in 0..40 {
            clerk.wants_from(0);
            assert_eq!(pool.call((0, 1, Nothing)).await, Ok(1));
            clerk.wants_from(2);
            assert_eq!(pool.call((0, 1, Nothing)).await, Err(CallError::Withdrawn), "{round}");
            assert_eq!(pool.call((0, 2, Nothing)).await, Ok(2));
        }
        assert_settled(&pool.stop(PATIENCE).await.stats, 40);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_another_attempt_is_asked_about_before_that() {
    for keyed in [false, true] {
        let clerk = Clerk::default();
        let pool = clerk.choosy_pool().retry(3, Backoff::new(HOUR, HOUR));
        let pool = match keyed {
            true => pool.ordered_by(by_key).spawn().await.unwrap(),
            false => pool.spawn().await.unwrap(),
        };
        pool.send((7, 1, FailOnce(0))).await.unwrap();
        settle().await;
        assert_eq!(pool.stats().waiting, 1);
        clerk.wants_from(2);
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!(clerk.begun(), [1]);
        assert_settled(&stats, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_and_is_not_wanted_any_more_waits_for_nothing() {
    let park = FailureTable { error: Rule::Once(FinalAction::ParkKey), ..FailureTable::default() };
    for parks in [false, true] {
        let clerk = Clerk::default();
        let pool = match parks {
            true => clerk.choosy_pool().retry_with(Job::clone, park),
            false => clerk.choosy_pool().retry(3, Backoff::new(HOUR, HOUR)),
        };
        let pool = pool.ordered_by(by_key).spawn().await.unwrap();
        let address = pool.address();
        let call = tokio::spawn(async move { address.call((7, 1, FailOnce(10))).await });
        settle().await;
        clerk.wants_from(2);
        assert_eq!(call.await.unwrap(), Err(CallError::Withdrawn));
        settle().await;
        let counts = pool.keys::<u64>().unwrap().counts();
        assert_eq!((counts.parked, counts.retrying, pool.stats().waiting), (0, 0, 0));
        assert_room(&pool, 10);
        assert_eq!(pool.call((7, 2, Nothing)).await, Ok(2), "its key goes on");
        assert_settled(&pool.stop(PATIENCE).await.stats, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_good_is_what_it_was_before() {
    let clerk = Clerk::default();
    let pool = clerk.choosy_pool().spawn().await.unwrap();
    let address = pool.address();
    let call = tokio::spawn(async move { address.call((7, 1, FailOnce(10))).await });
    settle().await;
    clerk.wants_from(2);
    assert_eq!(call.await.unwrap(), Err(CallError::Failed("not now")));
    assert_eq!(pool.call((7, 2, Fail)).await, Err(CallError::Failed("no")));
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.failed, stats.withdrawn), (2, 0));
}

/// Handles several at once.
#[derive(Clone, Default)]
struct Scribe {
    begun: Arc<Mutex<Vec<Vec<u32>>>>,
    wanted_from: Arc<AtomicU32>,
}

impl Actor for Scribe {
    type Message = Batch<(u64, u32)>;
    type Reply = Vec<Result<u32, &'static str>>;
    type Error = &'static str;

    async fn handle(
        &mut self,
        rows: Self::Message,
        _cx: &mut Context<Self>,
    ) -> Result<Self::Reply, Self::Error> {
        self.begun.lock().unwrap().push(rows.iter().map(|row| row.1).collect());
        Ok(rows.iter().map(|row| Ok(row.1)).collect())
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_collects_gives_up_what_is_not_wanted_and_goes_on_with_the_rest() {
    // The first wanted number, the messages handled then, and whether that takes less than a
    // quarter of the time.
    for (wanted_from, left, soon) in
        [(2, vec![2, 3], false), (1, vec![1, 2, 3], false), (9, vec![], true)]
    {
        let scribe = Scribe::default();
        let (each, wanted) = (scribe.clone(), scribe.wanted_from.clone());
        let batches = Batches::of(10).within(Duration::from_secs(100));
        let pool = Pool::batched(move |_slot| each.clone(), batches).workers(2).capacity(10);
        let pool = pool.starts_if(move |row: &(u64, u32)| row.1 >= wanted.load(Ordering::SeqCst));
        let pool = pool.ordered_by(|row: &(u64, u32)| row.0).spawn().await.unwrap();
        let calls: Vec<_> = (0..4)
            .map(|number| {
                let address = pool.address();
                tokio::spawn(async move { address.call((7, number)).await })
            })
            .collect();
        settle().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!((pool.stats().in_hand, pool.stats().queued), (4, 0), "they are collected");
        let began = tokio::time::Instant::now();
        scribe.wanted_from.store(wanted_from, Ordering::SeqCst);
        assert_eq!(pool.admin().withdraw(|row| row.1 < wanted_from), 0, "nothing waits");
        for (number, call) in (0..).zip(calls) {
            let expected =
                if number < wanted_from { Err(CallError::Withdrawn) } else { Ok(number) };
            assert_eq!(call.await.unwrap(), expected);
        }
        assert_eq!(began.elapsed() < Duration::from_secs(26), soon);
        let begun: Vec<Vec<u32>> = scribe.begun.lock().unwrap().clone();
        assert_eq!(begun.concat(), left);
        // The key is free.
        assert_eq!(pool.call((7, 100)).await, Ok(100));
        let withdrawn = u64::from(wanted_from.min(4));
        assert_settled(&pool.stop(PATIENCE).await.stats, withdrawn);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_panics_counts_as_the_handler_that_does() {
    let clerk = Clerk::default();
    let pool = clerk.pool().starts_if(|job: &Job| {
        assert_ne!(job.1, 1, "on purpose");
        true
    });
    let pool = pool.spawn().await.unwrap();
    assert!(matches!(pool.call((0, 1, Nothing)).await, Err(CallError::Panicked(_))));
    assert_eq!(pool.call((0, 2, Nothing)).await, Ok(2));
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.restarts, stats.withdrawn), (1, 1, 0));
    assert!(stats.ledger_holds());
}
