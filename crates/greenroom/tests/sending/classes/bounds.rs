//! The bound of a pool, for messages of both classes (A04).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{DeadLetterReason, Envelope, NotAccepted, Overflow, Stop, TrySendError};

use crate::sending::settle::settle;

use super::scribe::{Deed, Note, SECOND, finish, normal, scribes, urgent};

#[tokio::test(start_paused = true)]
async fn a04_the_bound_holds_for_urgent_messages() {
    let (pool, _) = scribes(1);
    let pool = pool.capacity(3).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::Sleep(10));
    settle().await;
    normal(&pool, 0, 1, Deed::Return);
    urgent(&pool, 0, 2);
    urgent(&pool, 0, 3);
    let refused = pool.try_send_with((0, 4, Deed::Return), Envelope::urgent());
    assert!(matches!(refused, Err(TrySendError::Full((0, 4, Deed::Return)))));
    assert_eq!((pool.stats().queued, pool.stats().rejected), (3, 1));
    finish(&pool).await;
    let room = pool.try_reserve();
    assert_eq!(room.unwrap_err(), NotAccepted::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a04_where_the_oldest_makes_room_it_is_a_normal_one_while_there_is_one() {
    let (pool, scribe) = scribes(1);
    let dead = Arc::new(Mutex::new(Vec::new()));
    let seen = dead.clone();
    let pool = pool
        .capacity(2)
        .overflow(Overflow::DropOldest)
        .on_dead_letter(move |letter| {
            seen.lock().unwrap().push((letter.message.unwrap().1, letter.reason))
        })
        .spawn()
        .await
        .unwrap();
    normal(&pool, 0, 0, Deed::Sleep(10));
    settle().await;
    urgent(&pool, 0, 1);
    normal(&pool, 0, 2, Deed::Return);
    urgent(&pool, 0, 3);
    urgent(&pool, 0, 4);
    let report = pool.stop(Stop::within(SECOND)).await;
    assert_eq!(scribe.order(), [0, 3, 4]);
    let evicted = DeadLetterReason::Evicted;
    assert_eq!(*dead.lock().unwrap(), [(2, evicted), (1, evicted)]);
    assert!(report.stats.ledger_holds());
}

#[tokio::test(start_paused = true)]
async fn a04_a_message_that_makes_room_while_it_waits_for_an_attempt_is_not_counted_as_waiting() {
    let (pool, _) = scribes(1);
    let pool = pool.capacity(2).overflow(Overflow::DropOldest).spawn().await.unwrap();
    normal(&pool, 0, 0, Deed::FailOnce);
    settle().await;
    normal(&pool, 0, 1, Deed::Sleep(1_000));
    // The retry is due, and waits in the queue behind the message in hand.
    tokio::time::sleep(Duration::from_millis(500)).await;
    (2..6).for_each(|number| normal(&pool, 0, number, Deed::Return));
    let stats = pool.stats();
    assert!(stats.ledger_holds(), "{stats:?}");
    pool.stop(Stop::within(Duration::from_secs(60))).await;
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.waiting == 0, "{stats:?}");
}

#[tokio::test(start_paused = true)]
async fn a04_lanes_whose_only_message_made_room_are_closed() {
    let (pool, scribe) = scribes(1);
    let pool = pool.capacity(20).overflow(Overflow::DropOldest);
    let pool = pool.ordered_by(|note: &Note| note.0).spawn().await.unwrap();
    normal(&pool, 9, 0, Deed::Sleep(10));
    settle().await;
    (100..117).for_each(|number| normal(&pool, 1, number, Deed::Return));
    normal(&pool, 2, 1, Deed::Sleep(50));
    normal(&pool, 3, 2, Deed::Return);
    tokio::time::sleep(Duration::from_millis(20)).await;
    (200..230).for_each(|number| normal(&pool, 1, number, Deed::Return));
    tokio::time::sleep(SECOND).await;
    normal(&pool, 1, 300, Deed::Return);
    let report = pool.stop(Stop::within(SECOND)).await;
    assert!(report.left_over.is_empty());
    assert_eq!(scribe.order().last(), Some(&300));
}
