//! A killed worker ends, whatever it does: it neither continues nor keeps its thread.

use std::time::Duration;

use greenroom::Stop;

use super::clerk::{Do, NO_WAIT, clerks, kill, runtime, within_a_minute};

#[test]
fn a12_a_worker_killed_while_it_computes_ends_and_its_thread_goes_on() {
    for threads in [1, 2] {
        within_a_minute(move || runtime(threads).block_on(killed_while_it_computes()));
    }
}

async fn killed_while_it_computes() {
    let (pool, begun) = clerks(2);
    let pool = std::sync::Arc::new(pool.spawn().await.unwrap());
    let computing = pool.address();
    let computing =
        tokio::spawn(async move { computing.call(Do::Compute(Duration::from_millis(50))).await });
    let killer = pool.clone();
    let killed = std::thread::spawn(move || {
        while begun.now() == 0 {
            std::hint::spin_loop();
        }
        (0..2).for_each(|place| kill(&killer, place));
    });
    // It computes to its end: code without an await cannot be interrupted.
    assert_eq!(computing.await.unwrap(), Ok(0));
    killed.join().unwrap();
    while pool.stats().restarts < 2 {
        tokio::task::yield_now().await;
    }
    for number in 0..100 {
        assert_eq!(pool.call(Do::Yield(number)).await, Ok(number));
    }
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.restarts == 2, "{stats:?}");
}

#[test]
fn a12_an_idle_worker_killed_before_a_call_hangs_no_caller() {
    within_a_minute(|| runtime(1).block_on(killed_before_a_call()));
}

async fn killed_before_a_call() {
    let (pool, _) = clerks(1);
    let pool = pool.quick_handlers(true).spawn().await.unwrap();
    for number in 0..100 {
        assert_eq!(pool.call(Do::Return(number)).await, Ok(number));
        tokio::task::yield_now().await;
        kill(&pool, 0);
        // At once: its task has not been polled since.
        assert_eq!(pool.call(Do::Return(number)).await, Ok(number));
    }
    let stats = pool.stop(Stop::within(Duration::from_secs(10))).await.stats;
    assert!(stats.ledger_holds() && stats.restarts > 0, "{stats:?}");
}

#[test]
fn a12_killed_again_and_again_while_it_is_given_calls_a_worker_answers_them_all() {
    for (threads, quick) in [(1, false), (1, true), (2, false), (2, true)] {
        within_a_minute(move || runtime(threads).block_on(killed_again_and_again(quick)));
    }
}

async fn killed_again_and_again(quick: bool) {
    let (pool, _) = clerks(2);
    let pool = if quick { pool.quick_handlers(true) } else { pool };
    let pool = std::sync::Arc::new(pool.retry(u32::MAX, NO_WAIT).spawn().await.unwrap());
    let killer = pool.clone();
    let killer = tokio::spawn(async move {
        for place in (0..2).cycle() {
            kill(&killer, place);
            tokio::task::yield_now().await;
        }
    });
    for number in 0..200 {
        let what = if number % 3 == 0 { Do::Yield(number) } else { Do::Return(number) };
        assert_eq!(pool.call(what).await, Ok(number));
    }
    killer.abort();
    let _ = killer.await;
    let stats = pool.stats();
    assert!(stats.ledger_holds() && stats.restarts > 0, "{stats:?}");
}

/// It had handed over keys that it did not have yet; its senders then looped forever once it had
/// some.
#[test]
fn a12_t02_a_sticky_worker_killed_in_its_start_has_its_keys_afterwards() {
    within_a_minute(|| runtime(1).block_on(killed_in_its_start()));
}

async fn killed_in_its_start() {
    let (pool, _) = clerks(1);
    let pool = pool.sticky_by(|message: &Do| message.number()).spawn().await.unwrap();
    drop(pool.admin().add(3).unwrap());
    (1..4).for_each(|place| kill(&pool, place));
    while pool.stats().restarts < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for number in 0..100 {
        assert_eq!(pool.call(Do::Return(number)).await, Ok(number));
    }
}
