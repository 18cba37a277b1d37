//! Scripted workers do what their script says, and write down what they see.

use std::time::Duration;

use greenroom::{
    Backoff, CallError, Restarts, Stop,
    prelude::*,
    test_util::{Behavior, Scripted},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_scripted_worker_does_each_of_its_deeds() {
    let worker = Scripted::new(|word: &&str| match *word {
        "reply" => Behavior::reply(1),
        "slow" => Behavior::reply(2).after(60 * SECOND),
        "fail" => Behavior::fail("no"),
        "panic" => Behavior::panic("boom"),
        "drop" => Behavior::drop_port(),
        "look" => Behavior::panic("looked").looking(),
        _ => Behavior::never(),
    });
    let log = worker.log();
    let restarts = Restarts { max: 9, ..Restarts::default() };
    let pool = Pool::new(move |_| worker.clone()).workers(1).restarts(restarts);
    let pool = pool.poison_limit(9).failure_policy(greenroom::FailureTable::default());
    let pool = pool.spawn().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(pool.call("reply").await, Ok(1));
    let began = tokio::time::Instant::now();
    assert_eq!(pool.call("slow").await, Ok(2));
    assert_eq!(began.elapsed(), 60 * SECOND);
    assert_eq!(pool.call("fail").await, Err(CallError::Failed("no")));
    assert_eq!(pool.call("panic").await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call("drop").await, Err(CallError::Dropped));
    assert_eq!(pool.call_timeout("never", SECOND).await, Err(CallError::TimedOut));
    assert_eq!((log.in_hand(), log.most_in_hand(), log.starts()), (1, 1, 2));
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(report.left_over.is_empty(), "it had taken the message out");
    assert_eq!(log.in_hand(), 0, "it was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_worker_that_only_looks_gets_the_message_again() {
    let worker = Scripted::<u8, (), &str>::new(|_| Behavior::fail("not yet").looking());
    let log = worker.log();
    let pool = Pool::new(move |_| worker.clone()).workers(1);
    let pool = pool.retry(3, Backoff::new(SECOND, SECOND)).seed(1);
    let pool = pool.spawn().await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(pool.call(1).await, Err(CallError::Failed("not yet")));
    let attempts: Vec<u32> = log.seen().iter().map(|seen| seen.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
}
