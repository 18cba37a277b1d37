//! The information that a pool gives about its keys on request (K11).

use std::time::Duration;

use greenroom::{Backoff, DeadLetterReason, FailureTable, FinalAction, Rule, Stop, keys::KeyState};

use super::clerk::{
    Clerk, Job,
    Wish::{Fail, Nothing, Wait},
    settle,
};

#[tokio::test(start_paused = true)]
async fn k11_a_pool_tells_where_a_key_stands_and_why() {
    let clerk = Clerk::new();
    let backoff = Backoff::new(Duration::from_secs(10), Duration::from_secs(10));
    let row = Rule::Retry { attempts: 2, backoff, finally: FinalAction::ParkKey };
    let pool = clerk.pool().retry_with(Clone::clone, FailureTable::all(row));
    let pool = pool.ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let keys = pool.keys::<u64>().unwrap();
    let why = |key: u64| keys.status(&key, |error| error.clone());
    for (key, wish) in [(1, Wait), (2, Fail), (3, Nothing)] {
        for number in 0..3 {
            pool.send((key, number, wish)).await.unwrap();
        }
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let one = why(1).unwrap();
    assert!(
        matches!(one.state, KeyState::Running { since, .. } if since >= Duration::from_secs(1)),
        "{one}"
    );
    assert_eq!((one.waiting, one.attempt, one.last_error), (2, 1, None));
    let two = why(2).unwrap();
    let KeyState::Retrying { since, next, .. } = two.state else { panic!("{two}") };
    assert_eq!(since.as_secs(), 2);
    assert!((2..=8).contains(&next.as_secs()), "{next:?}");
    assert_eq!((two.waiting, two.attempt, two.last_error.as_deref()), (2, 1, Some("no 0")));
    assert!(two.to_string().starts_with("2 waiting; attempt 1 failed 2.0s ago, next in "), "{two}");
    assert_eq!(why(3), None, "it is done with");
    let counts = keys.counts();
    assert_eq!((counts.running, counts.retrying, counts.parked, counts.waiting), (1, 1, 0, 4));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let two = why(2).unwrap();
    let KeyState::Parked { since, reason, .. } = two.state else { panic!("{two}") };
    assert_eq!(reason, DeadLetterReason::Failed);
    assert!(since < Duration::from_secs(9));
    assert_eq!((two.attempt, two.last_error.as_deref()), (2, Some("no 0")));
    assert!(two.oldest.unwrap() >= Duration::from_secs(11));
    assert_eq!((keys.counts().parked, keys.counts().retrying), (1, 0));
    let line = keys.longest_line().unwrap();
    assert_eq!((line.key.is_some(), line.messages), (true, 2));
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_a_further_attempt_in_hand_says_which_it_is() {
    let clerk = Clerk::new();
    let pool = clerk.pool().retry(3, Backoff::new(Duration::from_secs(1), Duration::from_secs(1)));
    let slow = |job: &Job| job.0;
    let pool = pool.ordered_by(slow).time_limit(Duration::from_secs(5)).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let why = pool.keys::<u64>().unwrap().status(&1, |error| error.clone()).unwrap();
    assert!(matches!(why.state, KeyState::Running { .. }), "{why}");
    assert_eq!(why.attempt, 2);
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_a_key_that_only_lies_in_the_queue_is_seen_too() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    for number in 0..5 {
        pool.send((2, number, Nothing)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let why = keys.status(&2, |error| error.clone()).unwrap();
    assert_eq!((why.state, why.waiting, why.attempt), (KeyState::Queued, 5, 0));
    assert_eq!(keys.longest_line().unwrap().messages, 5);
    pool.stop(Stop::within(Duration::ZERO)).await;
}

#[tokio::test(start_paused = true)]
async fn k11_the_hottest_keys_by_count_and_by_time() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(10_000).ordered_by(|job: &Job| job.0).quick_handlers(false);
    let pool = pool.spawn().await.unwrap();
    for number in 0..6_000 {
        // A third of the messages have key 1, the rest have others.
        let key = if number % 3 == 0 { 1 } else { 100 + u64::from(number) };
        pool.send((key, number, Nothing)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let hot = keys.hottest_by_count(3);
    assert_eq!(*hot[0].key, 1);
    assert!((1_500..=2_500).contains(&hot[0].amount), "{hot:?}");
    pool.send((7, 0, Wait)).await.unwrap();
    for number in 1..=16 {
        pool.send((7, number, Wait)).await.unwrap();
    }
    for _ in 0..17 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        clerk.gate.add_permits(1);
    }
    settle().await;
    let hot = keys.hottest_by_time(1);
    assert_eq!(*hot[0].key, 7);
    assert!(hot[0].amount >= Duration::from_secs(4), "{hot:?}");
}

#[tokio::test]
async fn k11_keys_of_another_type_are_refused_with_both_names() {
    let clerk = Clerk::new();
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let wrong = pool.keys::<String>().unwrap_err();
    assert_eq!((wrong.asked, wrong.is), ("alloc::string::String", Some("u64")));
    let plain = clerk.pool().spawn().await.unwrap();
    let none = plain.keys::<u64>().unwrap_err();
    assert_eq!(none.to_string(), "the pool has no keys, not keys of type u64");
}

#[tokio::test(start_paused = true)]
async fn p13_administration_has_keys_dead_letters_and_a_broadcast_as_the_pool_has() {
    let clerk = Clerk::new();
    let table = FailureTable::all(Rule::Once(FinalAction::DeadLetter));
    let pool = clerk.pool().workers(2).retry_with(Clone::clone, table);
    let pool = pool.ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let admin = pool.admin();
    pool.ready(2, Duration::from_secs(1)).await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let keys = admin.keys::<u64>().unwrap();
    assert_eq!((keys.counts(), keys.counts().running), (pool.keys::<u64>().unwrap().counts(), 1));
    assert!(admin.keys::<String>().is_err());
    clerk.gate.add_permits(1);
    settle().await;

    pool.send((2, 0, Fail)).await.unwrap();
    settle().await;
    let letters = admin.dead_letters();
    assert_eq!((letters.len(), pool.dead_letters().len()), (1, 1));
    letters.replay(letters.list(None, 1)[0].id).unwrap();
    settle().await;
    assert_eq!((letters.len(), clerk.attempts_of(2, 0)), (1, 2), "it was sent, and failed again");

    assert!(admin.broadcast().send((3, 0, Nothing)).await.unwrap().is_complete());
    settle().await;
    assert_eq!(clerk.handled().iter().filter(|(key, _)| *key == 3).count(), 2);

    // The admin handle keeps nothing running; addresses made from it do.
    let all = admin.broadcast();
    drop((pool, letters));
    settle().await;
    assert!(all.try_send((4, 0, Nothing)).unwrap().is_complete());
    drop(all);
    settle().await;
    assert!(admin.add(1).is_err(), "the pool has ended");
}
