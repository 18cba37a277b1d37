//! Workers that die, and workers that are stuck (H06, H08, H09).

use greenroom::{
    CallError, DeadLetterReason, SendError, event_pool::EventPoolConfig, pool::WhenExhausted,
    pool_events::Kind,
};

use super::stage::{Do, MILLI, SECOND, clerks, numbers, sizes, told};

#[tokio::test(start_paused = true)]
async fn h06_while_a_worker_restarts_its_messages_wait_and_processing_goes_on_where_it_was() {
    let (builder, done, mut receiver) = clerks(sizes(1, 10));
    let pool = builder.spawn().await.unwrap();
    // The first restart is immediate, the second takes a second.
    pool.submit(Some(8), Do::Panic).await.unwrap();
    pool.submit(Some(9), Do::Panic).await.unwrap();
    for number in 1..=5 {
        pool.submit(Some(number), Do::Reply(number)).await.unwrap();
    }
    tokio::time::sleep(500 * MILLI).await;
    assert_eq!((numbers(&done), pool.stats().pool.queued), (vec![], 5), "they wait");
    tokio::time::sleep(SECOND).await;
    assert_eq!(numbers(&done), [1, 2, 3, 4, 5], "all, once, in order");
    let stats = pool.stats().pool;
    assert_eq!((stats.restarts, stats.handled, stats.dead_lettered), (2, 5, 2));
    assert_eq!(
        told(&mut receiver),
        [Kind::DeadLetter, Kind::WorkerRestarted, Kind::DeadLetter, Kind::WorkerRestarted]
    );
}

#[tokio::test(start_paused = true)]
async fn h08_restarts_exhausted_every_message_is_a_dead_letter_and_it_is_told_at_once() {
    let (builder, done, mut receiver) = clerks(EventPoolConfig { max_restarts: 0, ..sizes(1, 10) });
    let pool = builder.spawn().await.unwrap();
    pool.submit(Some(0), Do::Panic).await.unwrap();
    for number in 1..=3 {
        pool.submit(Some(number), Do::Reply(number)).await.unwrap();
    }
    let waits = tokio::spawn({
        let pool = pool.clone();
        async move { pool.process(Some(9), Do::Reply(9)).await }
    });
    tokio::time::sleep(MILLI).await;
    let told = told(&mut receiver);
    let place = |wanted| told.iter().position(|kind| *kind == wanted);
    assert!(place(Kind::BudgetExceeded) < place(Kind::WorkerDisabled), "{told:?}");
    let letters = told.iter().filter(|kind| **kind == Kind::DeadLetter).count();
    let stats = pool.stats().pool;
    let of = |reason| stats.dead_letters.of(reason);
    assert_eq!(of(DeadLetterReason::Panicked), 1);
    assert_eq!(of(DeadLetterReason::NoWorkers) + stats.rejected, 4);
    assert_eq!(letters as u64, stats.dead_lettered, "each is told");
    let waited = waits.await.unwrap();
    assert!(matches!(waited, Err(CallError::NoWorkers | CallError::NotAccepted(_))), "{waited:?}");
    let refused = pool.process(Some(1), Do::Reply(1)).await;
    assert!(matches!(refused, Err(CallError::NotAccepted(SendError::NoWorkers(_)))));
    assert!(numbers(&done).is_empty() && stats.ledger_holds());
    // The cause was fixed: the letters can be replayed.
    pool.pool().admin().enable(0).unwrap().done(SECOND).await;
    let replayed = pool
        .pool()
        .dead_letters()
        .replay_where(|letter, _| letter.reason == DeadLetterReason::NoWorkers);
    tokio::time::sleep(SECOND).await;
    assert_eq!(numbers(&done).len(), replayed.replayed);
}

#[tokio::test(start_paused = true)]
async fn h08_as_many_restarts_as_the_configuration_says_are_made() {
    for max_restarts in [0, 1, 3] {
        let (builder, ..) = clerks(EventPoolConfig { max_restarts, ..sizes(1, 10) });
        let when = |pool: greenroom::PoolBuilder<_>| pool.when_exhausted(WhenExhausted::StopPool);
        let pool = builder.with(when).spawn().await.unwrap();
        let end = pool.pool().erase();
        for _ in 0..=max_restarts {
            assert!(end.is_alive());
            pool.submit(Some(1), Do::Panic).await.unwrap();
            tokio::time::sleep(2 * SECOND).await;
        }
        assert!(!end.is_alive(), "{max_restarts}");
        assert_eq!(pool.stats().pool.restarts, u64::from(max_restarts));
    }
}

#[tokio::test(start_paused = true)]
async fn h09_a_wedged_worker_shows_its_true_depth_and_how_long_it_has_been_at_it() {
    let pool = clerks(sizes(1, 40)).0.spawn().await.unwrap();
    pool.submit(Some(1), Do::Sleep(1_000_000 * SECOND)).await.unwrap();
    tokio::time::sleep(10 * SECOND).await;
    for number in 0..7 {
        pool.submit(Some(number), Do::Reply(number)).await.unwrap();
        tokio::time::sleep(SECOND).await;
    }
    let stats = pool.stats().pool;
    assert_eq!((stats.queued, stats.depth(), stats.in_hand, stats.busy), (7, 7, 1, 1));
    assert_eq!(stats.oldest, Some(7 * SECOND));
    let workers = pool.pool().admin().worker_stats();
    assert_eq!(workers[0].busy_for, Some(17 * SECOND));
    pool.submit(Some(1), Do::Reply(1)).await.unwrap();
    assert_eq!(pool.stats().pool.queued, 8, "it is looked up, not remembered");
}

/// It computes, and so does not respond at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h09_a_worker_that_computes_hides_nothing_either() {
    use greenroom::{EventPool, event_pool::Keyed, prelude::*};
    use std::sync::{Mutex, mpsc};

    struct Stuck(Mutex<mpsc::Receiver<()>>);

    impl Actor for Stuck {
        type Message = Keyed<u64, u64>;
        type Reply = ();
        type Error = ();

        async fn handle(&mut self, _: Self::Message, _: &mut Context<Self>) -> Result<(), ()> {
            let _ = self.0.get_mut().unwrap().recv();
            Ok(())
        }
    }

    let (go, receiver) = mpsc::channel();
    let receiver = Mutex::new(Some(receiver));
    let pool = EventPool::new(sizes(1, 100), move |_| {
        Stuck(Mutex::new(receiver.lock().unwrap().take().expect("one worker")))
    });
    let pool = pool.spawn().await.unwrap();
    for number in 0..50 {
        pool.submit(Some(number), number).await.unwrap();
    }
    while pool.stats().pool.in_hand == 0 {
        tokio::task::yield_now().await;
    }
    let stats = pool.stats().pool;
    assert_eq!((stats.queued, stats.in_hand), (49, 1));
    assert!(stats.oldest.is_some() && pool.pool().admin().worker_stats()[0].busy_for.is_some());
    drop(go);
    let report = pool.stop(Stop::within(10 * SECOND)).await;
    assert!(report.left_over.is_empty());
}
