//! How many messages may wait behind one key (K10).

use std::time::Duration;

use greenroom::{
    Envelope, NotAccepted, Overflow, Pool, PoolEvents, SpawnError, Stop, TrySendError,
    pool_events::Kind, topic::Event,
};

use super::clerk::{
    Clerk, Job, PATIENCE, PerKey,
    Wish::{Fail, Nothing, Wait},
    parking, settle,
};

#[tokio::test(start_paused = true)]
async fn k10_a_parked_key_does_not_fill_the_pool_either() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).spawn().await.unwrap();
    pool.send((1, 0, Fail)).await.unwrap();
    settle().await;
    let behind = (0..500).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(behind, 25);
    pool.try_send((2, 0, Nothing)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn k10_keys_that_are_parked_apart_leave_the_pool_its_room() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).capacity(8).max_per_key(4).parked_apart().spawn().await.unwrap();
    // Forty keys; each has more than one message in the pool when it is parked.
    for key in 0..40 {
        for number in 0..3 {
            pool.send((key, number, if number == 0 { Fail } else { Nothing })).await.unwrap();
        }
    }
    settle().await;
    let stats = pool.stats();
    assert_eq!((stats.parked, stats.handled), (120, 0), "{stats:?}");
    assert!(stats.ledger_holds(), "{stats:?}");
    for number in 0..100 {
        pool.send((100, number, Nothing)).await.unwrap();
    }
    settle().await;
    assert_eq!(clerk.handled().len(), 100);
    let free =
        |from: u64| (from..from + 20).filter(|n| pool.try_send((*n, 0, Wait)).is_ok()).count();
    assert_eq!(free(200), 8, "the whole room is free, and no more than that");
    clerk.gate.add_permits(8);
    settle().await;
    // Keys that continue take room again, in whichever way they continue.
    let keys = pool.keys::<u64>().unwrap();
    assert!((0..10).all(|key| keys.release(&key)));
    assert!((10..20).all(|key| keys.remove(&key).is_some_and(|line| line.len() == 3)));
    assert!((20..30).all(|key| keys.replay(&key)));
    settle().await;
    assert_eq!(pool.stats().parked, 60, "replayed, they have failed again");
    assert_eq!(free(300), 8);
    clerk.gate.add_permits(8);
    let report = pool.stop(PATIENCE).await;
    assert_eq!(report.left_over.len(), 60);
    assert!(report.stats.ledger_holds(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn k10_who_waits_for_room_has_it_when_a_key_is_parked_apart() {
    let clerk = Clerk::new();
    let pool = parking(&clerk).workers(1).capacity(4).max_per_key(4).parked_apart();
    let pool = std::sync::Arc::new(pool.spawn().await.unwrap());
    pool.send((1, 0, crate::keys::clerk::Wish::FailLater)).await.unwrap();
    settle().await;
    for number in 1..=4 {
        pool.try_send((1, number, Nothing)).unwrap();
    }
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.send((2, 0, Nothing)).await }
    });
    settle().await;
    assert!(!waiting.is_finished(), "the pool is full");
    clerk.gate.add_permits(1);
    waiting.await.unwrap().unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0)]);
}

#[tokio::test(start_paused = true)]
async fn k10_p07_with_drop_oldest_a_full_key_makes_its_own_room_in_a_full_pool() {
    let clerk = Clerk::new();
    let pool = clerk.pool().workers(1).capacity(4).overflow(Overflow::DropOldest);
    let pool = pool.max_per_key_of(2).spawn().await.unwrap();
    pool.send((9, 0, Wait)).await.unwrap();
    settle().await;
    for (key, number) in [(3, 0), (1, 1), (1, 2), (4, 0)] {
        pool.try_send((key, number, Nothing)).unwrap();
    }
    pool.try_send((1, 3, Nothing)).unwrap();
    let dead: Vec<_> = pool.dead_letters().remove_all().into_iter().map(|l| l.message).collect();
    assert_eq!(dead, [Some((1, 1, Nothing))]);
}

#[tokio::test(start_paused = true)]
async fn k10_h07_a_key_at_its_bound_is_no_full_pool() {
    let clerk = Clerk::new();
    let notices = PoolEvents::new(100);
    let mut told = notices.subscribe();
    let pool = clerk.pool().max_per_key_of(2).pool_events(notices).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut many: std::collections::VecDeque<Job> = (1..6).map(|n| (1, n, Nothing)).collect();
    assert_eq!(pool.try_send_many(&mut many), Ok(2));
    assert_eq!(pool.try_send_many(&mut many), Err(NotAccepted::KeyFull));
    while let Some(event) = told.try_recv() {
        let full = matches!(&event, Event::Item(notice) if notice.what.kind() == Kind::MailboxFull);
        assert!(!full);
    }
}

#[tokio::test(start_paused = true)]
async fn k10_the_bound_of_a_key_follows_the_capacity() {
    let clerk = Clerk::new();
    let each = clerk.clone();
    let pool = Pool::new(move |_| each.clone()).workers(1).mailbox(8);
    let pool = pool.ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    let accepted = || (0..100).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
    assert_eq!(accepted(), 2);
    settle().await;
    drop(pool.admin().resize(4).unwrap());
    settle().await;
    assert_eq!(accepted(), 8);
    settle().await;
    pool.admin().set_capacity(4).unwrap();
    assert_eq!(accepted(), 1);
    settle().await;
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_a18_timers_skip_or_wait_behind_a_key_at_its_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(1).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    let second = Duration::from_secs(1);
    let every = pool.send_every((1, 50, Nothing), second);
    let once = pool.send_after((1, 99, Nothing), second);
    tokio::time::sleep(5 * second + second / 2).await;
    assert!(clerk.handled().is_empty());
    clerk.gate.add_permits(1);
    tokio::time::sleep(3 * second).await;
    let numbers: Vec<_> = clerk.handled().iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers[..3], [0, 1, 99], "the one-shot has waited in line");
    assert_eq!(numbers.iter().filter(|number| **number == 50).count(), 3, "{numbers:?}");
    drop((every, once));
}

#[tokio::test(start_paused = true)]
async fn k10_p29_a_sink_waits_behind_a_key_at_its_bound() {
    use futures_util::{SinkExt, StreamExt, stream};
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(2).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut sink = pool.sink();
    let feeding = tokio::spawn(async move {
        let jobs = stream::iter((1..=20).map(|n| Ok((1, n, Nothing))));
        jobs.forward(&mut sink).await.map_err(|error| error.to_string())?;
        sink.close().await.map_err(|error| error.to_string())
    });
    settle().await;
    assert!(!feeding.is_finished());
    clerk.gate.add_permits(1);
    feeding.await.unwrap().unwrap();
    settle().await;
    assert_eq!(clerk.handled(), (0..=20).map(|n| (1, n)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn k10_one_key_cannot_fill_the_pool() {
    let clerk = Clerk::new();
    let pool = clerk.pool().ordered_by(|job: &Job| job.0).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut accepted = 0;
    let refused = loop {
        match pool.try_send((1, accepted + 1, Nothing)) {
            Ok(()) => accepted += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(accepted, 25, "a quarter of the capacity");
    assert!(matches!(refused, TrySendError::KeyFull((1, 26, Nothing))));
    let others = (2..200).take_while(|key| pool.try_send((*key, 0, Wait)).is_ok()).count();
    assert!(others >= 75, "{others}");
    clerk.gate.add_permits(1_000);
    settle().await;
    pool.try_send((1, 26, Nothing)).unwrap();
    let stats = pool.stop(PATIENCE).await.stats;
    assert_eq!(stats.handled, 27 + others as u64);
    let of_key: Vec<_> = clerk.handled().into_iter().filter(|(key, _)| *key == 1).collect();
    assert_eq!(of_key, (0..=26).map(|n| (1, n)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn k10_the_bound_holds_before_anybody_has_looked_at_the_queue() {
    for (capacity, bound) in [(100, None), (8, Some(3)), (1_000, Some(1)), (1, None)] {
        let clerk = Clerk::new();
        let pool = clerk.pool().capacity(capacity).ordered_by(|job: &Job| job.0);
        let pool = match bound {
            Some(bound) => pool.max_per_key(bound).spawn().await.unwrap(),
            None => pool.spawn().await.unwrap(),
        };
        let expected = bound.unwrap_or(capacity.div_ceil(4));
        // No worker has a turn in between.
        let accepted = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
        assert_eq!(accepted, expected, "capacity {capacity}");
        settle().await;
        assert_eq!(clerk.handled().len(), expected);
        let again = (0..2_000).filter(|n| pool.try_send((1, *n, Nothing)).is_ok()).count();
        assert_eq!(again, expected);
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
    }
}

#[tokio::test(start_paused = true)]
async fn k10_room_that_was_reserved_before_does_not_get_past_the_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(4_096).max_per_key_of(4).spawn().await.unwrap();
    pool.try_send((1, 0, Nothing)).unwrap();
    for number in 1..4 {
        pool.try_reserve().unwrap().send((1, number, Nothing)).unwrap();
    }
    let refused = pool.try_send((1, 4, Nothing)).unwrap_err();
    assert!(matches!(refused, TrySendError::KeyFull((1, 4, Nothing))), "{refused:?}");
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_senders_wait_behind_their_key_in_turn_and_others_do_not() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(2).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Wait)).await.unwrap();
    pool.send((1, 2, Wait)).await.unwrap();
    let mut waiting = Vec::new();
    for number in 3..8 {
        let address = pool.address();
        waiting.push(tokio::spawn(async move { address.send((1, number, Wait)).await.is_ok() }));
        settle().await;
    }
    pool.send((2, 0, Nothing)).await.unwrap();
    settle().await;
    assert_eq!(clerk.handled(), [(2, 0)], "another key has room and a worker");
    assert_eq!(pool.stats().accepted, 4);
    // One of the waiting senders leaves: the others move up.
    waiting.remove(1).abort();
    settle().await;
    for _ in 0..7 {
        clerk.gate.add_permits(1);
        settle().await;
    }
    for waiting in waiting {
        assert!(waiting.await.unwrap());
    }
    let of_key: Vec<_> = clerk.handled().into_iter().filter(|(key, _)| *key == 1).collect();
    assert_eq!(of_key.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 5, 6, 7]);
    assert!(pool.stop(PATIENCE).await.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn k10_who_waits_behind_a_key_hears_of_the_end() {
    let clerk = Clerk::new();
    let pool = clerk.pool().max_per_key_of(1).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    pool.send((1, 1, Nothing)).await.unwrap();
    let address = pool.address();
    let waiting = tokio::spawn(async move { address.send((1, 2, Nothing)).await });
    settle().await;
    assert!(!waiting.is_finished());
    pool.stop(Stop::within(Duration::ZERO)).await;
    let refused = waiting.await.unwrap().unwrap_err();
    assert_eq!(refused.without_message(), NotAccepted::Stopped);
    assert_eq!(refused.into_message(), Some((1, 2, Nothing)));
}

#[tokio::test(start_paused = true)]
async fn k10_p07_a_key_at_its_bound_follows_the_overflow_policy() {
    let clerk = Clerk::new();
    let other = clerk.pool().spawn().await.unwrap();
    for (overflow, told, dead) in [
        (Overflow::Reject, Some(NotAccepted::KeyFull), 0),
        (Overflow::DropNewest, Some(NotAccepted::Dropped), 0),
        (Overflow::DropOldest, None, 1),
        (Overflow::Fallback(other.address()), None, 0),
    ] {
        let clerk = Clerk::new();
        let name = format!("{overflow:?}");
        let pool = clerk.pool().max_per_key_of(2).overflow(overflow).spawn().await.unwrap();
        pool.send((1, 0, Wait)).await.unwrap();
        settle().await;
        pool.send((1, 1, Nothing)).await.unwrap();
        pool.send((1, 2, Nothing)).await.unwrap();
        let sent = pool.send((1, 3, Nothing)).await;
        assert_eq!(sent.as_ref().err().map(|error| error.without_message()), told, "{name}");
        assert_eq!(pool.stats().dead_lettered, dead, "{name}");
        clerk.gate.add_permits(1);
        settle().await;
        let expected = if dead == 1 { [(1, 0), (1, 2), (1, 3)] } else { [(1, 0), (1, 1), (1, 2)] };
        assert_eq!(clerk.handled(), expected, "{name}");
        assert!(pool.stop(PATIENCE).await.stats.ledger_holds(), "{name}");
    }
    assert_eq!(other.stats().handled, 1);
}

#[tokio::test]
async fn k10_a_bound_of_nothing_is_refused() {
    let clerk = Clerk::new();
    let none = clerk.pool().max_per_key_of(0).spawn().await.unwrap_err();
    assert!(matches!(none, SpawnError::OutOfRange { setting: "max per key", .. }), "{none}");
}

#[tokio::test(start_paused = true)]
async fn k10_permits_taken_before_do_not_get_past_the_bound() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(100_000).max_per_key_of(3).spawn().await.unwrap();
    for permits in 1..6 {
        let key = permits as u64;
        let taken: Vec<_> = (0..permits).map(|_| pool.try_reserve().unwrap()).collect();
        pool.try_send((key, 0, Nothing)).unwrap();
        taken.into_iter().for_each(|permit| drop(permit.send((key, 1, Nothing))));
        let rest = (0..20).filter(|_| pool.try_send((key, 2, Nothing)).is_ok()).count();
        assert_eq!(1 + rest + permits.min(2), 3, "{permits} permits");
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn k10_urgent_messages_count_where_they_wait_in_line() {
    let clerk = Clerk::new();
    let pool = clerk.pool().capacity(100_000).max_per_key_of(4).spawn().await.unwrap();
    pool.send((1, 0, Wait)).await.unwrap();
    settle().await;
    let mut accepted = 0;
    for number in 1..20 {
        let urgent = Envelope::urgent();
        accepted += usize::from(pool.try_send_with((1, number, Nothing), urgent).is_ok());
        settle().await;
    }
    assert_eq!(accepted, 4);
    let refused = pool.try_send((1, 20, Nothing));
    assert!(matches!(refused, Err(TrySendError::KeyFull(_))), "others come behind them");
    pool.stop(Stop::within(Duration::ZERO)).await;
}
