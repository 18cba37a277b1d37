//! A message that has failed for good parks its key, and an operator decides (K08).

use std::{sync::Arc, time::Duration};

use greenroom::{
    Backoff, CallError, DeadLetterReason, FailureTable, FinalAction, NotAccepted, PoolEvents, Rule,
    SendError, TrySendError, pool_events::Kind, topic::Event,
};

use super::clerk::{
    Clerk, Job, PATIENCE,
    Wish::{Fail, FailUntil, Nothing, Panic, Wait},
    parking, settle,
};

#[tokio::test(start_paused = true)]
async fn k08_a_message_that_fails_for_good_parks_its_key_and_no_other() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    pool.send((1, 1, Nothing)).await.unwrap();
    pool.send((2, 0, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0)]);
    let keys = pool.keys::<u64>().unwrap();
    let parked = keys.parked();
    assert!(keys.is_parked(&1) && !keys.is_parked(&2));
    assert_eq!((parked.len(), *parked[0].key, parked[0].waiting), (1, 1, 1));
    assert_eq!(parked[0].reason, DeadLetterReason::Failed);
    let stats = pool.stats();
    assert_eq!((stats.waiting, stats.queued, stats.dead_lettered), (1, 1, 0));
    assert!(stats.ledger_holds(), "{stats:?}");
    assert!(keys.release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0), (1, 1)]);
    let letters = pool.dead_letters();
    let letter = letters.remove(letters.list(None, 1)[0].id).unwrap();
    assert_eq!((letter.message, letter.reason), (Some((1, 0, Fail)), DeadLetterReason::Failed));
    assert_eq!((letter.error.as_deref(), letter.attempts), (Some("no 0"), 1));
    assert!(!keys.release(&1) && !keys.is_parked(&1), "it is not parked any more");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_who_wants_to_know_is_told_which_message_parks_its_key_and_why() {
    let clerk = Clerk::new();
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = told.clone();
    let pool = parking(&clerk).on_parked(move |message, error: Option<&String>, panic| {
        let message = message.map(|job| (job.0, job.1));
        tell.lock().unwrap().push((message, error.cloned(), panic.map(str::to_owned)));
    });
    let pool = pool.spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    pool.send((2, 0, Panic)).await.unwrap();
    settle().await;
    let mut told = told.lock().unwrap().clone();
    told.sort();
    let failed = (Some((1, 0)), Some("no 0".to_owned()), None);
    assert_eq!(told, [failed, (Some((2, 0)), None, Some("boom 0".to_owned()))]);
}

#[tokio::test(start_paused = true)]
async fn k08_a_decision_about_one_failure_is_none_about_the_next() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    for number in 0..3 {
        pool.send((1, number, Fail)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let failed_at = || keys.status(&1, String::clone).unwrap().failed_at.unwrap();
    let first = failed_at();
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(keys.release_if(&1, first));
    settle().await;
    let second = failed_at();
    assert!(second > first);
    assert!(!keys.release_if(&1, first) && !keys.replay_if(&1, first));
    assert!(keys.remove_if(&1, first).is_none(), "another message has failed by now");
    let letters = pool.dead_letters().list(None, 9).len();
    assert_eq!((letters, keys.parked()[0].waiting), (1, 1));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(keys.replay_if(&1, second));
    settle().await;
    let third = failed_at();
    assert!(third > second, "it has failed once more");
    assert_eq!(keys.remove_if(&1, third).map(|line| line.len()), Some(2));
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_a_parked_key_is_replayed_in_its_order() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, FailUntil(2))).await.unwrap();
    for number in 1..4 {
        pool.send((1, number, Nothing)).await.unwrap();
    }
    settle().await;
    assert!(clerk.handled().is_empty());
    assert!(pool.keys::<u64>().unwrap().replay(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    assert_eq!(pool.keys::<u64>().unwrap().counts().parked, 0);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.accepted), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn k08_the_line_of_a_parked_key_can_be_taken_out() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    for number in 0..3 {
        pool.send((1, number, Fail)).await.unwrap();
    }
    settle().await;
    let keys = pool.keys::<u64>().unwrap();
    let line = keys.remove(&1).unwrap();
    assert_eq!(line, [(1, 0, Fail), (1, 1, Fail), (1, 2, Fail)]);
    assert_eq!(keys.remove(&1), None);
    pool.send((1, 3, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(1, 3)]);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.returned, stats.handled), (3, 1));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_a_removed_line_gives_its_room_back() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).capacity(3).max_per_key(3).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    pool.send((1, 2, Nothing)).await.unwrap();
    settle().await;
    assert!(matches!(pool.try_send((2, 0, Nothing)), Err(TrySendError::Full(_))));
    let waiting = tokio::spawn({
        let address = pool.address();
        async move { address.send((2, 1, Nothing)).await }
    });
    settle().await;
    assert_eq!(pool.keys::<u64>().unwrap().remove(&1).unwrap().len(), 3);
    waiting.await.unwrap().unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn k08_h04_callers_of_a_parked_key_are_told_at_once() {
    let clerk = Clerk::new();
    let pool = Arc::new(parking(&clerk).spawn().await.unwrap());
    let call = |number, wish| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.call((1, number, wish)).await })
    };
    // One that fails, and one in line behind it.
    let (failing, behind) = (call(0, Fail), call(1, Nothing));
    assert_eq!(failing.await.unwrap(), Err(CallError::Parked));
    assert_eq!(behind.await.unwrap(), Err(CallError::Parked));
    // A message that comes later.
    assert_eq!(pool.call((1, 2, Nothing)).await, Err(CallError::Parked));
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    assert_eq!(clerk.handled(), [(1, 1), (1, 2)], "they had stayed in line");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_so_many_wait_behind_a_parked_key_and_then_new_ones_are_refused() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).max_parked(5).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    for number in 1..=5 {
        pool.try_send((1, number, Nothing)).unwrap();
    }
    let refused = pool.try_send((1, 6, Nothing));
    assert!(matches!(refused, Err(TrySendError::Parked((1, 6, Nothing)))));
    let refused = pool.send((1, 6, Nothing)).await.unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Parked);
    assert_eq!(pool.call((1, 6, Nothing)).await, Err(SendError::Parked((1, 6, Nothing)).into()));
    pool.try_send((2, 0, Nothing)).unwrap();
    settle().await;
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    let expected: Vec<_> = std::iter::once((2, 0)).chain((1..=5).map(|n| (1, n))).collect();
    assert_eq!(clerk.handled(), expected);
    pool.try_send((1, 7, Nothing)).unwrap();
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!((stats.handled, stats.rejected), (7, 3));
}

#[tokio::test(start_paused = true)]
async fn k08_a_thousand_wait_behind_a_parked_key_unless_said_otherwise() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).capacity(100_000).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    let accepted = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(accepted, 1_000);
}

#[tokio::test(start_paused = true)]
async fn k08_panics_timeouts_and_poison_park_the_key_too() {
    for (limit, poison, reason) in [
        (None, 9, DeadLetterReason::Panicked),
        (None, 1, DeadLetterReason::Poisoned),
        (Some(Duration::from_secs(1)), 9, DeadLetterReason::TimedOut),
    ] {
        let clerk = Clerk::new();
        let wish = if limit.is_some() { Wait } else { Panic };
        let pool = parking(&clerk).poison_limit(poison);
        let pool = match limit {
            Some(limit) => pool.time_limit(limit).spawn().await.unwrap(),
            None => pool.spawn().await.unwrap(),
        };
        pool.send((1, 0, wish)).await.unwrap();
        pool.send((1, 1, Nothing)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let keys = pool.keys::<u64>().unwrap();
        assert_eq!(keys.parked()[0].reason, reason);
        assert!(clerk.handled().is_empty());
        assert!(keys.release(&1));
        settle().await;
        assert_eq!(clerk.handled(), [(1, 1)]);
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k08_retries_come_before_parking_and_are_counted_anew_after_a_replay() {
    let clerk = Clerk::new();
    let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(1));
    let each = clerk.pool().retry(3, backoff).ordered_by(|job: &Job| job.0);
    let pool = each.on_final_failure(FinalAction::ParkKey).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(clerk.attempts_of(1, 0), 3);
    let keys = pool.keys::<u64>().unwrap();
    assert_eq!(keys.counts().parked, 1);
    assert!(keys.replay(&1));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((clerk.attempts_of(1, 0), keys.counts().parked), (6, 1));
    // A stop does not wait for an operator.
    let began = tokio::time::Instant::now();
    let report = pool.stop(PATIENCE).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(report.left_over, [(1, 0, Fail)]);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k08_it_is_told_when_a_key_is_parked_and_when_it_goes_on() {
    let clerk = Clerk::new();
    let notices = PoolEvents::new(100);
    let mut told = notices.subscribe();
    let pool = parking(&clerk).pool_events(notices).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    assert!(pool.keys::<u64>().unwrap().release(&1));
    settle().await;
    let mut of_keys = Vec::new();
    while let Some(event) = told.try_recv() {
        if let Event::Item(notice) = event {
            of_keys.push(notice.what.kind());
        }
    }
    of_keys.retain(|kind| matches!(kind, Kind::KeyParked | Kind::KeyReleased));
    assert_eq!(of_keys, [Kind::KeyParked, Kind::KeyReleased]);
}

#[tokio::test(start_paused = true)]
async fn k08_k11_a_key_is_parked_also_where_its_message_is_gone_and_was_measured() {
    let clerk = Clerk::new();
    let table = FailureTable { error: Rule::Once(FinalAction::ParkKey), ..FailureTable::default() };
    let pool = clerk.forgetful_pool().ordered_by(|job: &Job| job.0).failure_policy(table);
    let pool = pool.quick_handlers(false).spawn().await.unwrap();
    for key in 0..40 {
        pool.send((key, 0, Fail)).await.unwrap();
        pool.send((key, 1, Nothing)).await.unwrap();
        settle().await;
    }
    let keys = pool.keys::<u64>().unwrap();
    assert_eq!((keys.parked().len(), pool.stats().restarts), (40, 0));
    assert!((0..40).all(|key| keys.release(&key)));
    settle().await;
    assert_eq!(clerk.handled().len(), 40);
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}
