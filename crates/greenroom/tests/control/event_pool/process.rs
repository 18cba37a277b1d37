//! The outcomes of messages: replies, keys, order (H04, H05, H07).

use std::time::Duration;

use greenroom::{
    CallError, DeadLetterReason, EventPool, FinalAction, SendError, Stop, TrySendError,
    event_pool::Keyed, pool_events::Kind,
};

use super::stage::{Clerk, Do, MILLI, SECOND, clerks, numbers, sizes, told};

/// Whether the second message of a key waits for the first.
pub(crate) async fn in_order(pool: &EventPool<Clerk>) -> bool {
    pool.submit(Some(17), Do::Sleep(10 * SECOND)).await.unwrap();
    let second = pool.process(Some(17), Do::Reply(2));
    let waited = tokio::time::timeout(SECOND, second).await.is_err();
    // If keys stick to workers, at least one of many keys belongs to another worker.
    let others = (18..50).map(|key| async move {
        tokio::time::timeout(SECOND, pool.process(Some(key), Do::Reply(3))).await
    });
    let others = futures_util::future::join_all(others).await;
    assert!(others.contains(&Ok(Ok(3))), "another key waits for nobody");
    waited
}

#[tokio::test(start_paused = true)]
async fn h04_process_waits_for_what_the_handler_says() {
    let pool = clerks(sizes(2, 10)).0.spawn().await.unwrap();
    assert_eq!(pool.process(Some(1), Do::Reply(7)).await, Ok(7));
    assert_eq!(pool.process(None, Do::Reply(8)).await, Ok(8), "no key is required");
    assert_eq!(pool.process(Some(1), Do::Fail).await, Err(CallError::Failed("no such order")));
    assert!(matches!(pool.process(Some(1), Do::Panic).await, Err(CallError::Panicked(_))));
    pool.submit(Some(1), Do::Sleep(SECOND)).await.unwrap();
    assert_eq!(pool.clone().process(Some(1), Do::Reply(9)).await, Ok(9), "after what came before");
}

#[tokio::test(start_paused = true)]
async fn h04_a_missing_key_is_an_error_where_one_is_required() {
    let pool = clerks(sizes(2, 10)).0.key_required().spawn().await.unwrap();
    let keyed = Keyed { key: None, message: Do::Reply(7) };
    let Err(CallError::NotAccepted(SendError::KeyRequired(back))) =
        pool.process(None, Do::Reply(7)).await
    else {
        panic!()
    };
    assert_eq!(back, keyed);
    let Err(SendError::KeyRequired(back)) = pool.submit(None, Do::Reply(7)).await else { panic!() };
    assert_eq!(back, keyed);
    let Err(TrySendError::KeyRequired(back)) = pool.try_submit(None, Do::Reply(7)) else {
        panic!()
    };
    assert_eq!(back, keyed);
    assert_eq!(pool.process(Some(0), Do::Reply(7)).await, Ok(7));
    assert_eq!(pool.stats().pool.accepted, 1);
}

#[tokio::test(start_paused = true)]
async fn h04_who_waits_for_a_result_gets_one_whatever_happens() {
    let stopped = || Err(CallError::Stopped);
    for (stop, expected) in [
        (Stop::within(SECOND), [stopped(), stopped(), stopped()]),
        (Stop::Now, [Ok(0), stopped(), stopped()]),
        (Stop::within(200 * SECOND), [Ok(0), Ok(1), Ok(2)]),
    ] {
        let pool = clerks(sizes(1, 10)).0.spawn().await.unwrap();
        let calls: Vec<_> = [Do::Sleep(100 * SECOND), Do::Reply(1), Do::Reply(2)]
            .map(|what| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.process(Some(1), what).await })
            })
            .into_iter()
            .collect();
        tokio::time::sleep(MILLI).await;
        pool.stop(stop).await;
        for (call, expected) in calls.into_iter().zip(expected) {
            assert_eq!(call.await.unwrap(), expected, "{stop:?}");
        }
        for key in [Some(1), None] {
            let later = pool.process(key, Do::Reply(3)).await;
            assert!(matches!(later, Err(CallError::NotAccepted(SendError::Stopped(_)))));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h04_who_waits_behind_a_parked_key_gets_a_result_at_once() {
    let (builder, done, _) = clerks(sizes(2, 20));
    let builder = builder.with(|pool| pool.on_final_failure(FinalAction::ParkKey));
    let pool = builder.spawn().await.unwrap();
    pool.submit(Some(1), Do::Sleep(SECOND)).await.unwrap();
    let calls: Vec<_> = [Do::Fail, Do::Reply(2)]
        .map(|what| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.process(Some(1), what).await })
        })
        .into_iter()
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(CallError::Parked), "it failed, and who waits behind");
    }
    assert_eq!(
        pool.process(Some(1), Do::Reply(3)).await,
        Err(CallError::Parked),
        "who comes later"
    );
    assert_eq!(pool.process(Some(2), Do::Reply(4)).await, Ok(4), "another key");
    assert_eq!(pool.stats().pool.parked, 3);
    assert!(pool.pool().keys::<u64>().unwrap().release(&1));
    tokio::time::sleep(SECOND).await;
    assert_eq!((numbers(&done), pool.stats().pool.parked), (vec![4, 2, 3], 0));
}

#[tokio::test(start_paused = true)]
async fn h05_a_business_error_is_not_a_crash_and_a_panic_is() {
    let (builder, _, mut receiver) = clerks(sizes(1, 10));
    let pool = builder.spawn().await.unwrap();
    for _ in 0..10 {
        assert_eq!(pool.process(Some(1), Do::Fail).await, Err(CallError::Failed("no such order")));
    }
    let stats = pool.stats().pool;
    assert_eq!((stats.failed, stats.restarts, stats.dead_lettered), (10, 0, 0));
    assert_eq!(told(&mut receiver), [], "ten errors are nothing to tell");
    // No caller waits for it: the error is a dead letter.
    pool.submit(Some(1), Do::Fail).await.unwrap();
    tokio::time::sleep(SECOND).await;
    let stats = pool.stats().pool;
    assert_eq!((stats.dead_letters.of(DeadLetterReason::Failed), stats.restarts), (1, 0));
    assert_eq!(told(&mut receiver), [Kind::DeadLetter]);
    assert!(pool.process(Some(1), Do::Panic).await.is_err());
    tokio::time::sleep(SECOND).await;
    assert_eq!(pool.stats().pool.restarts, 1);
    assert!(told(&mut receiver).contains(&Kind::WorkerRestarted));
}

#[tokio::test(start_paused = true)]
async fn h07_a_sender_waits_while_the_inbox_is_full_and_nothing_is_lost() {
    let (builder, done, mut receiver) = clerks(sizes(1, 4));
    let pool = builder.spawn().await.unwrap();
    for episode in 1..=3 {
        pool.submit(Some(1), Do::Sleep(SECOND)).await.unwrap();
        tokio::time::sleep(MILLI).await;
        let before = tokio::time::Instant::now();
        for number in 0..7 {
            pool.submit(Some(10 + number), Do::Reply(10 * episode + number)).await.unwrap();
        }
        assert!(before.elapsed() > 900 * MILLI, "it waited until there was room");
        tokio::time::sleep(10 * SECOND).await;
        let stats = pool.stats().pool;
        assert_eq!(stats.inbox_full, episode, "one change from not full to full");
        assert_eq!(stats.queued, 0);
        assert!(stats.inbox_full_waits >= episode, "{stats:?}");
        assert_eq!(told(&mut receiver), [Kind::MailboxFull, Kind::MailboxDrained], "one event");
    }
    assert!(pool.stats().pool.inbox_full_waits <= 9, "those that found room did not wait");
    let expected: Vec<u64> =
        (1..=3).flat_map(|episode| (0..7).map(move |n| 10 * episode + n)).collect();
    assert_eq!(numbers(&done), expected);
}

#[tokio::test(start_paused = true)]
async fn h07_each_sender_that_waits_counts_and_the_change_to_full_once() {
    let pool = clerks(sizes(1, 2)).0.spawn().await.unwrap();
    pool.submit(Some(1), Do::Sleep(SECOND)).await.unwrap();
    tokio::time::sleep(MILLI).await;
    let senders: Vec<_> = (0..10_u64)
        .map(|number| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.process(Some(10 + number), Do::Reply(number)).await })
        })
        .collect();
    tokio::time::sleep(MILLI).await;
    let stats = pool.stats().pool;
    assert_eq!((stats.inbox_full, stats.inbox_full_waits), (1, 8));
    for sender in senders {
        assert!(sender.await.unwrap().is_ok());
    }
    assert!(pool.pool().reserve().await.is_ok());
    let stats = pool.stats().pool;
    assert_eq!((stats.inbox_full, stats.inbox_full_waits), (1, 8), "there is room again");
    assert!(tokio::time::timeout(Duration::ZERO, fill(&pool)).await.is_err());
    assert_eq!(pool.stats().pool.inbox_full, 2);
}

/// Sends until there is no room.
async fn fill(pool: &EventPool<Clerk>) {
    for key in 0.. {
        pool.submit(Some(key), Do::Sleep(SECOND)).await.unwrap();
    }
}
