//! Calls that would wait for their own caller (A06).

use crate::desk::*;

#[tokio::test(start_paused = true)]
async fn a06_the_only_worker_of_a_pool_cannot_call_it() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    // By its own address, too.
    let workers = pool.manage().workers();
    hall.knows(workers[0].address());
    assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    assert_eq!(pool.call(Ask::Echo(1)).await, Ok(1), "it is free again");
    assert_eq!(pool.stats().rejected, 2);
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_when_all_workers_call_their_pool_at_once_the_last_is_refused() {
    let (pool, _) = Hall::own(3).await;
    let (one, two, three) = soon(async {
        tokio::join!(
            pool.call(Ask::CallOnTogether(1)),
            pool.call(Ask::CallOnTogether(2)),
            pool.call(Ask::CallOnTogether(3)),
        )
    })
    .await;
    let mut answers = [one, two, three];
    answers.sort_by_key(|answer| answer.is_err());
    assert!(answers[0].is_ok() && answers[1].is_ok(), "{answers:?}");
    assert_eq!(answers[2], deadlock());
    // Their calls are over: the next ones are counted afresh.
    for number in 0..5 {
        assert_eq!(soon(pool.call(Ask::CallOn(number))).await, Ok(number));
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_worker_that_makes_two_calls_at_once_is_one_that_waits() {
    let (pool, _) = Hall::own(2).await;
    assert_eq!(soon(pool.call(Ask::CallTwice(4))).await, Ok(4));
    assert_eq!(soon(pool.call(Ask::CallOn(4))).await, Ok(4));
}

#[tokio::test(start_paused = true)]
async fn a06_who_holds_the_key_of_a_message_cannot_call_with_it() {
    for workers in [1, 4] {
        let hall = Hall::default();
        // The number of an echo is its key, and that of who calls with it.
        let key = |ask: &Ask| match ask {
            Ask::CallOn(number) | Ask::CallOnTogether(number) => u32::from(*number >= 10),
            _ => 1,
        };
        let pool = hall.pool(workers).ordered_by(key).spawn().await.unwrap();
        hall.knows(&pool.address());
        assert_eq!(soon(pool.call(Ask::CallOn(10))).await, deadlock());
        assert_eq!(soon(pool.call(Ask::CallOnTogether(10))).await, deadlock());
        let other = soon(pool.call(Ask::CallOn(1))).await;
        assert_eq!(other, if workers == 1 { deadlock() } else { Ok(1) });
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_task_that_a_handler_has_spawned_is_not_the_worker() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::CallFromTask(5))).await, Ok(5));
    settle().await;
    let stats = pool.stop(SOON).await.stats;
    assert_eq!((stats.handled, stats.rejected), (2, 0));
    assert_eq!(hall.dead(), []);
}

#[tokio::test(start_paused = true)]
async fn a06_a_pool_may_call_another_that_calls_it_where_somebody_is_free() {
    let (outer, inner) = (Hall::default(), Hall::default());
    let front = outer.pool(1).spawn().await.unwrap();
    let back = inner.pool(1).spawn().await.unwrap();
    outer.knows(&back.address());
    assert_eq!(soon(front.call(Ask::CallOn(3))).await, Ok(3), "another pool is no deadlock");
    inner.knows(&back.address());
    let answer = soon(back.call(Ask::CallOn(3))).await;
    assert_eq!(answer, deadlock());
    assert_eq!(soon(front.call(Ask::CallOn(3))).await, Ok(3));
}

#[tokio::test(start_paused = true)]
async fn a06_a_worker_may_call_another_worker_of_its_pool_and_counts_as_one_that_waits() {
    let (pool, hall) = Hall::own(2).await;
    let workers = pool.manage().workers();
    hall.knows(workers[0].address());
    let called = soon(workers[1].call(Ask::CallOn(6))).await;
    assert_eq!(called, Ok(6));
    assert_eq!(soon(workers[0].call(Ask::CallOn(6))).await, deadlock());
}
