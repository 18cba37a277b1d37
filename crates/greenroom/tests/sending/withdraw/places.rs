//! Every place where a message can wait.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use greenroom::{
    Backoff, CallError, Class, Envelope, FailureTable, FinalAction, PoolEvent, PoolEvents, Rule,
    policy::RoundRobin, pool_events::Kind, prelude::*, topic::Event,
};

use crate::sending::{room::assert_room, settle::settle};

use super::clerk::{
    Clerk, Job, PATIENCE,
    Wish::{Fail, FailOnce, Nothing, Wait},
    assert_settled, by_key, open,
};

const HOUR: Duration = Duration::from_secs(3600);

fn is_even(job: &Job) -> bool {
    job.1.is_multiple_of(2)
}

/// The first one is in hand, the others wait.
async fn fill(pool: &Pool<Clerk>, keys: u64, numbers: std::ops::Range<u32>) {
    pool.send((0, 1_000, Wait(100))).await.unwrap();
    settle().await;
    for number in numbers {
        pool.send((u64::from(number) % keys, number, Nothing)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_is_withdrawn_and_the_rest_keeps_its_order() {
    let clerk = Clerk::default();
    let pool = clerk.pool().spawn().await.unwrap();
    fill(&pool, 1, 0..10).await;
    assert!(pool.try_reserve().is_err());
    assert_eq!(pool.admin().withdraw(is_even), 5);
    let stats = pool.stats();
    assert!(stats.ledger_holds(), "{stats:?}");
    assert_eq!((stats.queued, stats.withdrawn, stats.in_hand), (5, 5, 1));
    assert_room(&pool, 5);
    for number in 10..15 {
        pool.try_send((0, number, Nothing)).unwrap();
    }
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [1_000, 1, 3, 5, 7, 9, 10, 11, 12, 13, 14]);
    assert_settled(&stats, 5);
}

#[tokio::test(start_paused = true)]
async fn what_lies_in_the_outbox_is_withdrawn_as_well() {
    let clerk = Clerk::default();
    let pool = clerk.pool().spawn().await.unwrap();
    // These are taken out of the inbox together.
    for (number, wish) in [(1, Wait(100)), (2, Nothing), (3, Nothing), (4, Nothing)] {
        pool.send((0, number, wish)).await.unwrap();
    }
    settle().await;
    pool.send((0, 5, Nothing)).await.unwrap();
    pool.send((0, 6, Nothing)).await.unwrap();
    assert_eq!(pool.admin().withdraw(is_even), 3);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [1, 3, 5]);
    assert_settled(&stats, 3);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_together_is_withdrawn_one_by_one() {
    let clerk = Clerk::default();
    let pool = clerk.pool().capacity(100).spawn().await.unwrap();
    fill(&pool, 1, 0..0).await;
    let mut jobs = (0..40).map(|number| (0, number, Nothing)).collect();
    pool.send_many(&mut jobs).await.unwrap();
    assert_eq!(pool.admin().withdraw(|job| job.1 >= 3), 37);
    assert_room(&pool, 97);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [1_000, 0, 1, 2]);
    assert_settled(&stats, 37);
}

#[tokio::test(start_paused = true)]
async fn urgent_messages_are_withdrawn_and_those_that_stay_come_first_still() {
    for keyed in [false, true] {
        let clerk = Clerk::default();
        let pool = open(clerk.pool(), keyed).await;
        fill(&pool, 1, 0..2).await;
        let urgent = || Envelope::new().class(Class::Urgent);
        for number in 2..6 {
            pool.send_with((0, number, Nothing), urgent()).await.unwrap();
        }
        assert_eq!(pool.admin().withdraw(|job| [0, 2, 3].contains(&job.1)), 3);
        pool.send_with((0, 6, Nothing), urgent()).await.unwrap();
        let stats = pool.stop(PATIENCE).await.stats;
        assert_eq!(clerk.handled(), [1_000, 4, 5, 6, 1], "keyed: {keyed}");
        assert_settled(&stats, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_busy_key_is_withdrawn() {
    let clerk = Clerk::default();
    let pool = clerk.pool().workers(2).ordered_by(by_key).max_per_key(10).spawn().await.unwrap();
    fill(&pool, 2, 0..8).await;
    settle().await;
    assert_eq!(clerk.handled(), [1, 3, 5, 7], "the other key goes on");
    assert_eq!(pool.admin().withdraw(|job| job.1 != 4), 3);
    assert_room(&pool, 9);
    pool.send((0, 8, Nothing)).await.unwrap();
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [1, 3, 5, 7, 1_000, 4, 8]);
    assert_settled(&stats, 3);
}

#[tokio::test(start_paused = true)]
async fn a_key_goes_on_without_the_message_that_waited_for_another_attempt() {
    let clerk = Clerk::default();
    let pool = clerk.pool().retry(3, Backoff::new(HOUR, HOUR)).ordered_by(by_key);
    let pool = pool.spawn().await.unwrap();
    for (number, wish) in [(1, Fail), (2, Nothing), (3, Nothing)] {
        pool.send((7, number, wish)).await.unwrap();
    }
    settle().await;
    assert_eq!((pool.stats().waiting, pool.stats().queued), (1, 2));
    assert_eq!(pool.admin().withdraw(|job| job.1 == 1), 1);
    settle().await;
    assert_eq!(clerk.handled(), [2, 3], "nobody waits for an hour");
    assert_eq!(pool.keys::<u64>().unwrap().counts().retrying, 0);
    // If it is the only message, nothing is left of its key.
    pool.send((7, 4, Fail)).await.unwrap();
    settle().await;
    assert_eq!(pool.admin().withdraw(|_| true), 1);
    assert_eq!(pool.keys::<u64>().unwrap().counts().retrying, 0);
    assert_room(&pool, 10);
    assert_settled(&pool.stop(PATIENCE).await.stats, 2);
    assert_eq!(clerk.begun(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_attempt_does_so_although_what_is_behind_it_was_withdrawn() {
    let clerk = Clerk::default();
    let pool = clerk.pool().retry(3, Backoff::new(HOUR, HOUR)).ordered_by(by_key);
    let pool = pool.spawn().await.unwrap();
    for (number, wish) in [(1, FailOnce(0)), (2, Nothing), (3, Nothing)] {
        pool.send((7, number, wish)).await.unwrap();
    }
    settle().await;
    assert_eq!(pool.admin().withdraw(|job| job.1 == 2), 1);
    settle().await;
    assert_eq!((clerk.handled().len(), pool.stats().waiting), (0, 1));
    let began = tokio::time::Instant::now();
    let stats = pool.stop(PATIENCE).await.stats;
    assert!(began.elapsed() > HOUR / 4, "it is attempted when it is due");
    assert_eq!(clerk.handled(), [1, 3]);
    assert_settled(&stats, 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_without_a_key_for_another_attempt_is_withdrawn() {
    for mailbox in [false, true] {
        let clerk = Clerk::default();
        let pool = clerk.pool().retry(3, Backoff::new(HOUR, HOUR));
        let pool = if mailbox { pool.dispatch(RoundRobin::new()) } else { pool };
        let pool = pool.spawn().await.unwrap();
        for number in 0..4 {
            pool.send((0, number, FailOnce(0))).await.unwrap();
        }
        settle().await;
        assert_eq!((pool.stats().waiting, pool.stats().queued), (4, 0));
        assert_eq!(pool.admin().withdraw(is_even), 2);
        assert_eq!((pool.stats().waiting, pool.stats().queued), (2, 0));
        assert_room(&pool, 8);
        let stats = pool.stop(PATIENCE).await.stats;
        let mut handled = clerk.handled();
        handled.sort_unstable();
        assert_eq!(handled, [1, 3]);
        assert_settled(&stats, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_stays_parked_until_nothing_is_left_in_its_line() {
    for apart in [false, true] {
        let clerk = Clerk::default();
        let events = PoolEvents::new(100);
        let mut told = events.subscribe();
        let table =
            FailureTable { error: Rule::Once(FinalAction::ParkKey), ..FailureTable::default() };
        let pool = clerk.pool().retry_with(Job::clone, table).ordered_by(by_key);
        let pool = pool.capacity(4).max_per_key(4).pool_events(events);
        let pool = if apart { pool.parked_apart() } else { pool };
        let pool = pool.spawn().await.unwrap();
        for (number, wish) in [(1, Fail), (2, Nothing), (3, Nothing)] {
            pool.send((7, number, wish)).await.unwrap();
        }
        settle().await;
        let keys = pool.keys::<u64>().unwrap();
        assert!(keys.is_parked(&7));
        assert_room(&pool, if apart { 4 } else { 1 });
        assert_eq!(pool.admin().withdraw(|job| job.1 == 1), 1);
        settle().await;
        assert!(keys.is_parked(&7) && clerk.handled().is_empty(), "an operator decides");
        assert_eq!(pool.stats().parked, 2);
        assert_room(&pool, if apart { 4 } else { 2 });
        assert_eq!(pool.admin().withdraw(|job| job.1 == 3), 1);
        assert_eq!(pool.admin().withdraw(|job| job.1 == 2), 1);
        assert!(!keys.is_parked(&7));
        assert_room(&pool, 4);
        pool.send((7, 4, Nothing)).await.unwrap();
        assert_settled(&pool.stop(PATIENCE).await.stats, 3);
        assert_eq!(clerk.handled(), [4]);
        let kinds = std::iter::from_fn(|| told.try_recv()).filter_map(Event::into_item);
        let kinds: Vec<Kind> = kinds.map(|event| event.what.kind()).collect();
        let keys = [Kind::KeyParked, Kind::KeyReleased, Kind::Withdrawn];
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| keys.contains(kind)).collect();
        let [parked, released, withdrawn] = keys;
        assert_eq!(kinds, [parked, withdrawn, withdrawn, released, withdrawn]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_whose_failed_message_was_withdrawn_can_be_released() {
    let clerk = Clerk::default();
    let table = FailureTable { error: Rule::Once(FinalAction::ParkKey), ..FailureTable::default() };
    let pool = clerk.pool().retry_with(Job::clone, table).ordered_by(by_key);
    let pool = pool.parked_apart().spawn().await.unwrap();
    for (number, wish) in [(1, Fail), (2, Nothing), (3, Nothing)] {
        pool.send((7, number, wish)).await.unwrap();
    }
    settle().await;
    assert_eq!(pool.admin().withdraw(|job| job.1 == 1), 1);
    assert!(pool.keys::<u64>().unwrap().release(&7));
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [2, 3]);
    assert_settled(&stats, 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_mailboxes_of_a_policy_is_withdrawn_and_places_are_free_there() {
    let clerk = Clerk::default();
    let pool = clerk.pool().workers(2).mailbox(3).capacity(100).dispatch(RoundRobin::new());
    let pool = pool.spawn().await.unwrap();
    pool.send((0, 100, Wait(100))).await.unwrap();
    pool.send((0, 101, Wait(100))).await.unwrap();
    settle().await;
    for number in 0..6 {
        pool.try_send((0, number, Nothing)).unwrap();
    }
    assert!(pool.try_send((0, 6, Nothing)).is_err(), "there is room in the pool, but not there");
    let address = pool.address();
    let waits = tokio::spawn(async move { address.send((0, 7, Nothing)).await });
    settle().await;
    assert_eq!(pool.admin().withdraw(|job| job.1 < 4), 4);
    waits.await.unwrap().unwrap();
    assert_eq!(pool.stats().queued, 3);
    let stats = pool.stop(PATIENCE).await.stats;
    let mut handled = clerk.handled();
    handled.sort_unstable();
    assert_eq!(handled, [4, 5, 7, 100, 101]);
    assert_settled(&stats, 4);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_single_worker_is_withdrawn() {
    let clerk = Clerk::default();
    let pool = clerk.pool().spawn().await.unwrap();
    let worker = pool.admin().workers().remove(0);
    worker.send((0, 0, Wait(100))).await.unwrap();
    settle().await;
    for number in 1..6 {
        worker.send((0, number, Nothing)).await.unwrap();
    }
    let urgent = Envelope::new().class(Class::Urgent);
    worker.send_with((0, 6, Nothing), urgent).await.unwrap();
    assert_eq!(pool.admin().withdraw(is_even), 3);
    assert_room(&pool, 7);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [0, 1, 3, 5]);
    assert_settled(&stats, 3);
}

#[tokio::test(start_paused = true)]
async fn sticky_messages_are_withdrawn_also_where_they_are_held_for_another_worker() {
    let clerk = Clerk::default();
    let pool = clerk.pool().capacity(100).mailbox(100).seed(1).sticky_by(by_key);
    let pool = pool.spawn().await.unwrap();
    // All keys belong to the only worker, which has one of them in hand.
    for key in 0..20 {
        pool.send((key, 100 + key as u32, Wait(10))).await.unwrap();
        for number in 0..3 {
            pool.send((key, 10 * (100 + key as u32) + number, Nothing)).await.unwrap();
        }
    }
    settle().await;
    pool.admin().resize(6).unwrap().done(Duration::from_secs(1)).await;
    let stats = pool.stats();
    assert!(stats.ledger_holds(), "{stats:?}");
    let chosen = pool.admin().withdraw(|job| job.1 % 10 == 1 && job.1 >= 1_000);
    assert_eq!(chosen, 20);
    let stats = pool.stop(PATIENCE).await.stats;
    assert_settled(&stats, 20);
    for key in 0..20 {
        let of_key = |number: &u32| *number == 100 + key || number / 10 == 100 + key;
        let handled: Vec<u32> = clerk.handled().into_iter().filter(of_key).collect();
        let first = 100 + key;
        assert_eq!(handled, [first, 10 * first, 10 * first + 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_held_for_another_worker_is_withdrawn_before_it_is_handed_over() {
    let clerk = Clerk::default();
    // The worker in slot 0 has only some table slots; the one in its hand is to move.
    for seed in 0..40 {
        let pool = clerk.pool().capacity(100).mailbox(100).seed(seed).sticky_by(by_key);
        let pool = pool.spawn().await.unwrap();
        for number in 0..4 {
            let wish = if number == 0 { Wait(10) } else { Nothing };
            pool.send((7, 1_000 * seed as u32 + number, wish)).await.unwrap();
        }
        settle().await;
        pool.admin().resize(4).unwrap().done(Duration::from_secs(1)).await;
        if pool.stats().held == 3 {
            assert_eq!(pool.admin().withdraw(|job| job.1 % 1_000 != 2), 2);
            assert_eq!((pool.stats().held, pool.stats().queued), (1, 1));
            let stats = pool.stop(PATIENCE).await.stats;
            assert_settled(&stats, 2);
            assert_eq!(
                clerk.handled()[clerk.handled().len() - 2..],
                [1_000 * seed as u32, 1_000 * seed as u32 + 2]
            );
            return;
        }
    }
    panic!("no key was to move");
}

#[tokio::test(start_paused = true)]
async fn a_sticky_retry_is_withdrawn_and_its_key_goes_on_at_once() {
    let clerk = Clerk::default();
    let pool = clerk.pool().retry(3, Backoff::new(HOUR, HOUR)).sticky_by(by_key);
    let pool = pool.spawn().await.unwrap();
    for (number, wish) in [(1, Fail), (2, Nothing), (3, FailOnce(0))] {
        pool.send((7, number, wish)).await.unwrap();
    }
    settle().await;
    assert_eq!(pool.stats().waiting, 1);
    assert_eq!(pool.admin().withdraw(|job| job.1 == 1), 1);
    settle().await;
    assert_eq!((clerk.begun(), pool.stats().waiting), (vec![1, 2, 3], 1));
    // The message that it was to be woken for is gone: the next retry waits for its own time.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(clerk.handled(), [2, 3]);
    assert_settled(&stats, 1);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_worker_to_join_is_withdrawn() {
    for sticky in [false, true] {
        let clerk = Clerk::default();
        let pool = clerk.pool().workers(0).hold_when_empty();
        let pool = if sticky { pool.sticky_by(by_key) } else { pool };
        let pool = pool.spawn().await.unwrap();
        for number in 0..5 {
            pool.send((7, number, Nothing)).await.unwrap();
        }
        assert_eq!(pool.admin().withdraw(is_even), 3);
        assert_room(&pool, 8);
        assert!(pool.stats().ledger_holds());
        pool.admin().add(1).unwrap().done(Duration::from_secs(1)).await;
        settle().await;
        assert_eq!(clerk.handled(), [1, 3]);
        assert_settled(&pool.stop(PATIENCE).await.stats, 3);
    }
}

/// Polls once.
async fn is_pending<F: Future>(mut future: Pin<&mut F>) -> bool {
    poll_fn(|task| Poll::Ready(future.as_mut().poll(task).is_pending())).await
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_handed_to_an_idle_worker_is_withdrawn() {
    let clerk = Clerk::default();
    let pool = clerk.pool().spawn().await.unwrap();
    settle().await;
    let address = pool.address();
    let mut call = Box::pin(address.call((0, 1, Nothing)));
    assert!(is_pending(call.as_mut()).await);
    assert_eq!(pool.depth(), 1);
    assert_eq!(pool.admin().withdraw(|_| true), 1);
    assert_eq!(call.await, Err(CallError::Withdrawn));
    // A message that stays is handled.
    let mut call = Box::pin(address.call((0, 2, Nothing)));
    assert!(is_pending(call.as_mut()).await);
    assert_eq!(pool.admin().withdraw(|_| false), 0);
    assert_eq!(call.await, Ok(2));
    assert_settled(&pool.stop(PATIENCE).await.stats, 1);
}

#[tokio::test(start_paused = true)]
async fn callers_hear_that_their_messages_were_withdrawn() {
    for keyed in [false, true] {
        let clerk = Clerk::default();
        let pool = Arc::new(open(clerk.pool(), keyed).await);
        fill(&pool, 1, 0..0).await;
        let calls: Vec<_> = (0..4)
            .map(|number| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.call((0, number, Nothing)).await })
            })
            .collect();
        settle().await;
        assert_eq!(pool.admin().withdraw(is_even), 2);
        let mut answers = Vec::new();
        for call in calls {
            answers.push(call.await.unwrap());
        }
        let withdrawn = Err(CallError::Withdrawn);
        assert_eq!(answers, [withdrawn.clone(), Ok(1), withdrawn, Ok(3)]);
        assert_settled(&pool.stop(PATIENCE).await.stats, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn senders_that_wait_for_room_get_what_is_given_back() {
    for keyed in [false, true] {
        let clerk = Clerk::default();
        let pool = open(clerk.pool(), keyed).await;
        fill(&pool, 1, 0..10).await;
        let waiting: Vec<_> = (10..15)
            .map(|number| {
                let address = pool.address();
                tokio::spawn(async move { address.send((0, number, Nothing)).await })
            })
            .collect();
        settle().await;
        assert!(waiting.iter().all(|send| !send.is_finished()));
        assert_eq!(pool.admin().withdraw(|job| job.1 < 6), 6);
        for send in waiting {
            send.await.unwrap().unwrap();
        }
        assert_room(&pool, 1);
        assert_settled(&pool.stop(PATIENCE).await.stats, 6);
        assert_eq!(clerk.handled(), [1_000, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_behind_a_key_gets_it() {
    let clerk = Clerk::default();
    let pool = clerk.pool().workers(2).ordered_by(by_key).max_per_key(2).spawn().await.unwrap();
    fill(&pool, 1, 0..2).await;
    let waiting: Vec<_> = (2..4)
        .map(|number| {
            let address = pool.address();
            tokio::spawn(async move { address.send((0, number, Nothing)).await })
        })
        .collect();
    settle().await;
    assert!(waiting.iter().all(|send| !send.is_finished()) && pool.try_reserve().is_ok());
    assert_eq!(pool.admin().withdraw(|_| true), 2);
    for send in waiting {
        send.await.unwrap().unwrap();
    }
    assert!(pool.try_send((0, 9, Nothing)).is_err(), "as many wait as may");
    assert_settled(&pool.stop(PATIENCE).await.stats, 2);
    assert_eq!(clerk.handled(), [1_000, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn bytes_of_what_is_withdrawn_are_free() {
    let clerk = Clerk::default();
    let pool = clerk.pool().max_bytes(100, |job: &Job| job.1 as usize).spawn().await.unwrap();
    pool.send((0, 1, Wait(100))).await.unwrap();
    settle().await;
    pool.send((0, 60, Nothing)).await.unwrap();
    pool.send((0, 40, Nothing)).await.unwrap();
    let address = pool.address();
    let waits = tokio::spawn(async move { address.send((0, 50, Nothing)).await });
    settle().await;
    assert!(!waits.is_finished() && pool.stats().queued_bytes == Some(100));
    assert_eq!(pool.admin().withdraw(|job| job.1 == 60), 1);
    waits.await.unwrap().unwrap();
    assert_eq!(pool.stats().queued_bytes, Some(90));
    assert_settled(&pool.stop(PATIENCE).await.stats, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_what_is_withdrawn() {
    let clerk = Clerk::default();
    let pool = clerk.pool().retry(3, Backoff::new(HOUR, HOUR)).ordered_by(by_key);
    let pool = pool.spawn().await.unwrap();
    pool.send((7, 1, Fail)).await.unwrap();
    settle().await;
    let admin = pool.admin();
    let began = tokio::time::Instant::now();
    let stop = tokio::spawn(async move { pool.stop(PATIENCE).await });
    settle().await;
    assert_eq!(admin.withdraw(|_| true), 1);
    let report = stop.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1));
    assert!(report.left_over.is_empty());
    assert_settled(&report.stats, 1);
    assert_eq!(admin.withdraw(|_| true), 0, "of a pool that has stopped");
}

#[tokio::test(start_paused = true)]
async fn it_is_told_how_many_were_withdrawn() {
    let clerk = Clerk::default();
    let events = PoolEvents::new(100);
    let mut told = events.subscribe();
    let pool = clerk.pool().pool_events(events).spawn().await.unwrap();
    fill(&pool, 1, 0..4).await;
    assert_eq!(pool.admin().withdraw(|_| false), 0);
    assert_eq!(pool.admin().withdraw(is_even), 2);
    let told = std::iter::from_fn(|| told.try_recv()).filter_map(Event::into_item);
    let withdrawn = told.filter_map(|event| match event.what {
        PoolEvent::Withdrawn { messages } => Some(messages),
        _ => None,
    });
    assert_eq!(withdrawn.collect::<Vec<_>>(), [2]);
}
