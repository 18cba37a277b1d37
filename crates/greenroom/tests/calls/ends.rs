//! How calls end (A06), and calls whose caller has gone (A09).

use std::time::Duration;

use greenroom::{
    Backoff, CallError, DeadLetterReason, Envelope, Overflow, Pool, Restarts, SendError, Stop,
    policy::{About, Choice, Crew, Policy},
};
use tokio::{task::JoinHandle, time::Instant};

use crate::calls::desk::*;

#[tokio::test(start_paused = true)]
async fn a06_a_call_ends_in_failed_panicked_dropped_or_stopped() {
    let (pool, _) = Hall::own(1).await;
    assert_eq!(pool.call(Ask::Fail).await, Err(CallError::Failed("no".to_owned())));
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(pool.call(Ask::DropPort).await, Err(CallError::Dropped));
    pool.send(Ask::Sleep(10_000)).await.unwrap();
    settle().await;
    let (queued, report) = tokio::join!(pool.call(Ask::Echo(1)), pool.stop(Stop::within(SECOND)));
    assert_eq!((queued, report.left_over.len()), (Err(CallError::Stopped), 1));
    assert_eq!(pool.call(Ask::Echo(1)).await, Err(SendError::Stopped(Ask::Echo(1)).into()));
    holds(pool.stats());
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_finds_no_room_ends_in_full_dropped_or_evicted() {
    for (overflow, expected) in [
        (Overflow::Reject, SendError::Full(Ask::Echo(2))),
        (Overflow::DropNewest, SendError::Dropped),
    ] {
        let hall = Hall::default();
        let pool = hall.pool(1).capacity(1).overflow(overflow).spawn().await.unwrap();
        pool.try_send(Ask::Sleep(10)).unwrap();
        settle().await;
        pool.try_send(Ask::Echo(1)).unwrap();
        assert_eq!(pool.call(Ask::Echo(2)).await, Err(expected.into()));
        assert_eq!(pool.stats().rejected, 1);
        holds(pool.stop(SOON).await.stats);
    }
    let hall = Hall::default();
    let pool = hall.pool(1).capacity(1).overflow(Overflow::DropOldest).spawn().await.unwrap();
    pool.try_send(Ask::Sleep(10)).unwrap();
    settle().await;
    let (first, second) = tokio::join!(pool.call(Ask::Echo(1)), pool.call(Ask::Echo(2)));
    assert_eq!((first, second), (Err(CallError::Evicted), Ok(2)));
    assert_eq!(hall.dead(), [(Some(Ask::Echo(1)), DeadLetterReason::Evicted)]);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_to_a_pool_without_workers_ends_in_no_workers() {
    let hall = Hall::default();
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = hall.pool(1).restarts(restarts).spawn().await.unwrap();
    let (in_hand, queued) =
        soon(async { tokio::join!(pool.call(Ask::PanicLater), pool.call(Ask::Echo(1))) }).await;
    assert_eq!(in_hand, Err(CallError::Panicked("late boom".to_owned())));
    assert_eq!(queued, Err(CallError::NoWorkers));
    assert_eq!(pool.call(Ask::Echo(2)).await, Err(SendError::NoWorkers(Ask::Echo(2)).into()));
    holds(pool.stats());
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_killed_too_many_workers_ends_in_poisoned() {
    let hall = Hall::default();
    let pool = hall.pool(1).retry(5, Backoff::new(SECOND, SECOND)).poison_limit(2);
    let pool = pool.spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Panic).await, Err(CallError::Poisoned { kills: 2 }));
    assert_eq!(hall.dead(), [(Some(Ask::Panic), DeadLetterReason::Poisoned)]);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_ends_in_expired_at_its_deadline_and_in_timed_out_at_the_callers_limit() {
    let (pool, hall) = Hall::own(1).await;
    pool.send(Ask::Sleep(1_000)).await.unwrap();
    settle().await;
    let begun = Instant::now();
    let soon = Duration::from_millis(100);
    let (expired, timed_out, patient) = tokio::join!(
        pool.call_with(Ask::Echo(1), Envelope::new().deadline(soon)),
        pool.call_timeout(Ask::Echo(2), soon),
        pool.call_timeout(Ask::Echo(3), 2 * SECOND),
    );
    assert_eq!(expired, Err(CallError::Expired));
    assert_eq!(timed_out, Err(CallError::TimedOut));
    assert_eq!(patient, Ok(3));
    assert!(begun.elapsed() < SECOND);
    let dead = [
        (Some(Ask::Echo(1)), DeadLetterReason::Expired),
        (Some(Ask::Echo(2)), DeadLetterReason::Abandoned),
    ];
    assert_eq!(hall.dead(), dead);
    // A message that was started is handled anyway.
    assert_eq!(pool.call_timeout(Ask::Sleep(200), soon).await, Err(CallError::TimedOut));
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.dead_lettered), (3, 2));
    holds(stats);
}

/// Refuses an echo of zero.
struct Picky;

impl Policy<Ask> for Picky {
    fn choose(&self, message: &Ask, _: &About<'_>, _: &Crew<'_>) -> Choice {
        match message {
            Ask::Echo(0) => Choice::Refuse,
            _ => Choice::Any,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_the_policy_does_not_want_ends_in_refused() {
    let pool = Hall::default().pool(2).dispatch(Picky).spawn().await.unwrap();
    assert_eq!(pool.call(Ask::Echo(0)).await, Err(SendError::Refused(Ask::Echo(0)).into()));
    let urgent = pool.call_with(Ask::Echo(0), Envelope::urgent()).await;
    assert_eq!(urgent, Err(SendError::Refused(Ask::Echo(0)).into()));
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1));
    assert_eq!(pool.stats().rejected, 2);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_late_reply_never_satisfies_another_call() {
    let (pool, _) = Hall::own(1).await;
    let soon = Duration::from_millis(5);
    assert_eq!(pool.call_timeout(Ask::Later(20), soon).await, Err(CallError::TimedOut));
    // The reply to the first arrives while this one waits.
    let (second, third) = tokio::join!(pool.call(Ask::Sleep(50)), pool.call(Ask::Echo(3)));
    assert_eq!((second, third), (Ok(0), Ok(3)));
}

#[tokio::test(start_paused = true)]
async fn a06_the_death_of_the_worker_resolves_its_call_at_once_and_queued_calls_stay_queued() {
    let (pool, _) = Hall::own(1).await;
    let begun = Instant::now();
    let in_hand = async {
        let ended = pool.call(Ask::PanicLater).await;
        (ended, begun.elapsed())
    };
    let (in_hand, second, third) =
        tokio::join!(in_hand, pool.call(Ask::Panic), pool.call(Ask::Echo(3)));
    let late = CallError::Panicked("late boom".to_owned());
    assert_eq!(in_hand, (Err(late), Duration::from_millis(10)));
    assert_eq!(second, Err(CallError::Panicked("boom".to_owned())));
    assert_eq!(third, Ok(3));
    assert_eq!(pool.stats().restarts, 2);
}

#[tokio::test(start_paused = true)]
async fn a09_abandoned_calls_of_both_classes_are_skipped_and_reported() {
    for keyed in [false, true] {
        let hall = Hall::default();
        let pool = match keyed {
            true => hall.pool(1).ordered_by(|_: &Ask| 0).spawn().await.unwrap(),
            false => hall.pool(1).spawn().await.unwrap(),
        };
        pool.send(Ask::Sleep(100)).await.unwrap();
        settle().await;
        let soon = Duration::from_millis(5);
        let normal = tokio::time::timeout(soon, pool.call(Ask::Echo(1)));
        let urgent = pool.call_with(Ask::Echo(2), Envelope::urgent());
        let urgent = tokio::time::timeout(soon, urgent);
        let (normal, urgent) = tokio::join!(normal, urgent);
        assert!(normal.is_err() && urgent.is_err());
        assert_eq!(pool.call(Ask::Echo(3)).await, Ok(3));
        let abandoned = DeadLetterReason::Abandoned;
        let dead = [(Some(Ask::Echo(2)), abandoned), (Some(Ask::Echo(1)), abandoned)];
        assert_eq!(hall.dead(), dead);
        assert_eq!(hall.carried.lock().unwrap().len(), 2, "no handler saw them");
        holds(pool.stop(SOON).await.stats);
    }
}

/// Makes a call in its own task, queued behind the pool's other messages.
async fn queued_call(
    pool: &Pool<Desk>,
    ask: Ask,
) -> JoinHandle<Result<u32, CallError<String, Ask>>> {
    let address = pool.address();
    let call = tokio::spawn(async move { address.call(ask).await });
    settle().await;
    assert!(!call.is_finished());
    call
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_a_stop_has_returned_is_answered_by_another_pool() {
    let ((old, _), (new, _)) = (Hall::own(1).await, Hall::own(1).await);
    old.send(Ask::Sleep(10_000)).await.unwrap();
    settle().await;
    let (first, second) =
        (queued_call(&old, Ask::Echo(1)).await, queued_call(&old, Ask::Echo(2)).await);
    let report = old.admin().stop_keeping_calls(Stop::within(SECOND)).await;
    settle().await;
    assert!(!first.is_finished(), "nobody has told it anything");
    let mut left_over = report.left_over.into_iter();
    left_over.next().unwrap().forward(&new).await.unwrap();
    drop(left_over);
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(1), Err(CallError::Dropped)));
    assert_eq!(old.call(Ask::Echo(3)).await, Err(SendError::Stopped(Ask::Echo(3)).into()));
    holds(report.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_a_stop_that_is_dropped_returns_no_calls_and_its_callers_are_told() {
    let (pool, _) = Hall::own(1).await;
    pool.send(Ask::Sleep(10_000)).await.unwrap();
    settle().await;
    let call = queued_call(&pool, Ask::Echo(1)).await;
    let admin = pool.admin();
    let stop = admin.stop_keeping_calls(Stop::within(SECOND * 60));
    assert!(tokio::time::timeout(SECOND / 2, stop).await.is_err());
    assert_eq!(pool.erase().stop(Stop::Now).await.unwrap().left_over, 1);
    assert_eq!(call.await.unwrap(), Err(CallError::Stopped));
    assert_eq!(pool.stop(Stop::Now).await.left_over, [Ask::Echo(1)]);
}
