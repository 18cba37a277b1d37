//! A pool keeps the messages that it could not handle: those of every reason are kept, and can be
//! replayed on request (X03).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{
    Backoff, DeadLetterReason, Envelope, FailureAction, NotAccepted, Overflow, Pool, PoolBuilder,
    PoolEvents, Restarts, Stop,
    dead_letters::NotReplayed,
    failure::{Cause, FailedAttempt},
    pool::PoolDeadLetters,
};

use crate::events::desk::{Desk, Page, SECOND, settle};

const MILLI: Duration = Duration::from_millis(1);

/// One worker.
fn pool_of(desk: &Desk) -> PoolBuilder<Desk> {
    let desk = desk.clone();
    Pool::new(move |_| desk.clone()).workers(1).pool_events(PoolEvents::off())
}

type Letters = PoolDeadLetters<Page, (), &'static str>;

/// The reason, the number of attempts, and the message if there is one.
fn contents(letters: &Letters) -> Vec<(DeadLetterReason, u32, Option<Page>)> {
    let list = letters.list(None, usize::MAX).into_iter();
    list.map(|info| {
        let message = letters.inspect(info.id, |letter| letter.message).unwrap();
        (info.reason, info.attempts, message)
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn x03_failed_panicked_and_poisoned_messages_are_kept() {
    let desk = Desk::default();
    let pool = pool_of(&desk).spawn().await.unwrap();
    pool.send((1, "fails")).await.unwrap();
    pool.send((2, "panics")).await.unwrap();
    settle().await;
    let letters = pool.dead_letters();
    let (failed, panicked) = ((1, "fails"), (2, "panics"));
    use DeadLetterReason::{Failed, Panicked, Poisoned};
    assert_eq!(contents(&letters), [(Failed, 1, Some(failed)), (Panicked, 1, Some(panicked))]);
    assert_eq!(letters.inspect(1, |letter| letter.error), Ok(Some("no paper")));
    let again = pool_of(&desk).retry(9, Backoff::new(MILLI, MILLI)).spawn().await.unwrap();
    again.send((3, "panics")).await.unwrap();
    settle().await;
    assert_eq!(contents(&again.dead_letters()), [(Poisoned, 2, Some((3, "panics")))]);
    assert!(pool.stats().ledger_holds() && again.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn x03_messages_that_came_too_late_are_kept() {
    let desk = Desk::default();
    let pool = pool_of(&desk).time_limit(500 * MILLI).spawn().await.unwrap();
    pool.send((1, "slow")).await.unwrap();
    let expires = Envelope::new().deadline(MILLI);
    pool.send_with((2, "expires"), expires).await.unwrap();
    let abandoned = tokio::time::timeout(MILLI, pool.call((3, "abandoned"))).await;
    assert!(abandoned.is_err());
    settle().await;
    use DeadLetterReason::{Abandoned, Expired, TimedOut};
    let expected = [
        (TimedOut, 1, Some((1, "slow"))),
        (Expired, 0, Some((2, "expires"))),
        (Abandoned, 0, Some((3, "abandoned"))),
    ];
    assert_eq!(contents(&pool.dead_letters()), expected);
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn x03_evicted_messages_and_those_that_no_worker_is_left_for_are_kept() {
    let desk = Desk::default();
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = pool_of(&desk).capacity(2).overflow(Overflow::DropOldest).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    pool.send((1, "slow")).await.unwrap();
    tokio::task::yield_now().await;
    for page in [(2, "evicted"), (3, "panics"), (4, "left behind")] {
        pool.send(page).await.unwrap();
    }
    settle().await;
    use DeadLetterReason::{Evicted, NoWorkers, Panicked};
    let expected = [
        (Evicted, 0, Some((2, "evicted"))),
        (Panicked, 1, Some((3, "panics"))),
        (NoWorkers, 0, Some((4, "left behind"))),
    ];
    let letters = pool.dead_letters();
    assert_eq!(contents(&letters), expected);
    assert!(pool.stats().ledger_holds());
    assert_eq!(letters.replay(1), Err(NotReplayed::Refused(NotAccepted::NoWorkers)));
    desk.mend();
    pool.admin().enable(0).unwrap().done(SECOND).await;
    assert_eq!(letters.replay_where(|info, _| info.id > 1).replayed, 2);
    settle().await;
    assert_eq!(desk.handled()[1..], [(3, "panics"), (4, "left behind")]);
    assert_eq!((letters.replay(1), letters.len()), (Ok(()), 0));
    assert!(pool.stats().ledger_holds());
}

/// Ages and attempts of the kept letters.
fn ages(letters: &Letters) -> Vec<(DeadLetterReason, Option<Duration>, u32)> {
    let list = letters.list(None, usize::MAX).into_iter();
    list.map(|info| {
        let age = letters.inspect(info.id, |letter| letter.age).unwrap();
        assert_eq!(age, info.age);
        (info.reason, age, info.attempts)
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn x01_x03_letters_of_handlers_know_how_long_ago_they_were_accepted() {
    let desk = Desk::default();
    let policy = |_: FailedAttempt<'_, &'static str>, _: f64| FailureAction::DeadLetter;
    let pool =
        pool_of(&desk).failure_policy(policy).time_limit(1_500 * MILLI).spawn().await.unwrap();
    tokio::time::sleep(7 * SECOND).await;
    pool.send((1, "slow")).await.unwrap();
    pool.send((2, "fails")).await.unwrap();
    tokio::time::sleep(100 * MILLI).await;
    pool.send((3, "panics")).await.unwrap();
    pool.send((4, "consumed")).await.unwrap();
    let abandoned = tokio::time::timeout(MILLI, pool.call((5, "abandoned"))).await;
    assert!(abandoned.is_err());
    settle().await;
    use DeadLetterReason::{Abandoned, Failed, Panicked, TimedOut};
    let expected = [
        (Failed, Some(SECOND), 1),
        (Panicked, Some(900 * MILLI), 1),
        (TimedOut, Some(2_400 * MILLI), 1),
        (Abandoned, Some(2_400 * MILLI), 0),
    ];
    assert_eq!(ages(&pool.dead_letters()), expected);
}

#[tokio::test(start_paused = true)]
async fn x01_x03_the_age_of_a_letter_counts_from_before_its_first_attempt() {
    let (desk, started) = (Desk::default(), tokio::time::Instant::now());
    let hourly = Backoff::new(3_600 * SECOND, 3_600 * SECOND);
    let pool = pool_of(&desk).retry(3, hourly).seed(3).spawn().await.unwrap();
    pool.send((1, "fails")).await.unwrap();
    while pool.dead_letters().is_empty() {
        tokio::time::sleep(SECOND).await;
    }
    let [(DeadLetterReason::Failed, Some(age), 3)] = ages(&pool.dead_letters())[..] else {
        panic!("{:?}", ages(&pool.dead_letters()))
    };
    assert!(started.elapsed() - age < 2 * SECOND, "{age:?} of {:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn x01_x03_letters_that_nobody_began_know_how_long_ago_they_were_accepted() {
    let desk = Desk::default();
    let restarts = Restarts { max: 0, ..Restarts::default() };
    let pool = pool_of(&desk).capacity(2).overflow(Overflow::DropOldest).restarts(restarts);
    let pool = pool.spawn().await.unwrap();
    tokio::time::sleep(5 * SECOND).await;
    pool.send((1, "slow")).await.unwrap();
    for page in [(2, "evicted"), (3, "panics"), (4, "left behind")] {
        tokio::time::sleep(100 * MILLI).await;
        pool.send(page).await.unwrap();
    }
    settle().await;
    use DeadLetterReason::{Evicted, NoWorkers, Panicked};
    let expected = [
        (Evicted, Some(200 * MILLI), 0),
        (Panicked, Some(800 * MILLI), 1),
        (NoWorkers, Some(700 * MILLI), 0),
    ];
    assert_eq!(ages(&pool.dead_letters()), expected);
}

#[tokio::test(start_paused = true)]
async fn x03_letters_outlive_the_stop_that_made_them() {
    let desk = Desk::default();
    let pool = pool_of(&desk).spawn().await.unwrap();
    pool.send((1, "consumed")).await.unwrap();
    tokio::task::yield_now().await;
    let letters = pool.dead_letters();
    pool.stop(Stop::within(SECOND)).await;
    drop(pool);
    assert_eq!(contents(&letters), [(DeadLetterReason::Killed, 1, None)]);
    assert_eq!(letters.replay(1), Err(NotReplayed::NoMessage));
    assert_eq!(letters.remove(1).unwrap().message, None);
    assert!(letters.is_empty());
}

async fn with_letters(desk: &Desk) -> Pool<Desk> {
    let pool = pool_of(desk).capacity(100).ordered_by(|page: &Page| page.0).spawn().await.unwrap();
    for page in [(1, "fails 1"), (2, "fails 2"), (1, "fails 3")] {
        pool.send(page).await.unwrap();
    }
    settle().await;
    assert_eq!(pool.dead_letters().len(), 3);
    desk.mend();
    pool
}

#[tokio::test(start_paused = true)]
async fn x03_a_replay_is_a_new_acceptance_at_the_end_of_its_key_s_line() {
    let desk = Desk::default();
    let pool = with_letters(&desk).await;
    let letters = pool.dead_letters();
    pool.send((1, "slow")).await.unwrap();
    pool.send((1, "before")).await.unwrap();
    let before = pool.stats();
    letters.replay(1).unwrap();
    pool.send((1, "behind")).await.unwrap();
    assert_eq!(pool.stats().accepted, before.accepted + 2);
    assert!(pool.stats().ledger_holds());
    settle().await;
    assert_eq!(desk.handled(), [(1, "slow"), (1, "before"), (1, "fails 1"), (1, "behind")]);
    let stats = pool.stats();
    assert_eq!((stats.accepted, stats.handled, stats.dead_lettered), (7, 4, 3));
    assert!(stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn x03_letters_of_one_key_are_replayed_and_then_all_others() {
    let desk = Desk::default();
    let pool = with_letters(&desk).await;
    let letters = pool.dead_letters();
    let of_key = letters.replay_where(|_, page| page.is_some_and(|page| page.0 == 1));
    assert_eq!((of_key.replayed, letters.len()), (2, 1));
    settle().await;
    assert_eq!(desk.handled(), [(1, "fails 1"), (1, "fails 3")]);
    assert_eq!(letters.replay_all().replayed, 1);
    settle().await;
    assert_eq!((desk.handled(), letters.len()), (vec![(2, "fails 2")], 0));
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn x03_a_replay_without_room_leaves_the_rest() {
    let desk = Desk::default();
    let pool = pool_of(&desk).capacity(2).spawn().await.unwrap();
    for _ in 0..5 {
        pool.send((1, "fails")).await.unwrap();
    }
    settle().await;
    desk.mend();
    pool.send((0, "slow")).await.unwrap();
    tokio::task::yield_now().await;
    let letters = pool.dead_letters();
    let replayed = letters.replay_all();
    assert_eq!((replayed.replayed, replayed.refused.len(), letters.len()), (2, 3, 3));
    for (replayed, left) in [(2, 1), (1, 0)] {
        settle().await;
        assert_eq!((letters.replay_all().replayed, letters.len()), (replayed, left));
    }
    settle().await;
    assert_eq!((desk.handled().len(), letters.len()), (6, 0));
    assert!(pool.stats().ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn x03_what_fails_again_is_a_new_letter() {
    let desk = Desk::default();
    let pool = pool_of(&desk).spawn().await.unwrap();
    pool.send((1, "fails")).await.unwrap();
    settle().await;
    let letters = pool.dead_letters();
    assert_eq!(letters.replay_all().replayed, 1);
    settle().await;
    let list = letters.list(None, 9);
    assert_eq!((list.len(), list[0].id), (1, 2));
    assert_eq!(pool.stats().dead_lettered, 2);
}

#[tokio::test(start_paused = true)]
async fn x03_at_the_bound_the_oldest_is_dropped_with_a_count() {
    for (bound, kept) in [(3, vec![3, 4, 5]), (0, vec![])] {
        let pool = pool_of(&Desk::default()).dead_letters(bound).spawn().await.unwrap();
        for _ in 0..5 {
            pool.send((1, "fails")).await.unwrap();
        }
        settle().await;
        let letters = pool.dead_letters();
        let ids: Vec<_> = letters.list(None, 9).iter().map(|info| info.id).collect();
        assert_eq!((ids, letters.dropped()), (kept, 5 - bound as u64));
        assert_eq!(letters.queue().bound(), bound);
    }
    let pool = pool_of(&Desk::default()).ordered_by(|page: &Page| page.0).spawn().await.unwrap();
    assert_eq!(pool.dead_letters().queue().bound(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn x03_a_hook_takes_the_letters_instead() {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let hook = taken.clone();
    let pool = pool_of(&Desk::default()).on_dead_letter(move |letter| {
        hook.lock().unwrap().push(letter.message);
    });
    let pool = pool.spawn().await.unwrap();
    pool.send((1, "fails")).await.unwrap();
    settle().await;
    assert_eq!(*taken.lock().unwrap(), [Some((1, "fails"))]);
    assert!(pool.dead_letters().is_empty());
}

#[tokio::test(start_paused = true)]
async fn x03_whoever_holds_the_letters_keeps_the_pool_running_and_their_queue_does_not() {
    let desk = Desk::default();
    let pool = pool_of(&desk).spawn().await.unwrap();
    let (letters, end) = (pool.dead_letters(), pool.erase());
    drop(pool);
    settle().await;
    assert!(end.is_alive());
    let queue = letters.queue().clone();
    drop(letters);
    settle().await;
    assert!(!end.is_alive() && queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn x03_the_policy_is_asked_before_a_message_is_a_letter() {
    let policy = |attempt: FailedAttempt<'_, &'static str>, _: f64| match attempt.cause {
        Cause::Error(_) => FailureAction::Drop,
        _ => FailureAction::DeadLetter,
    };
    let pool = pool_of(&Desk::default()).failure_policy(policy).spawn().await.unwrap();
    pool.send((1, "fails")).await.unwrap();
    settle().await;
    assert!(pool.dead_letters().is_empty());
    assert_eq!(pool.stats().dropped, 1);
}
