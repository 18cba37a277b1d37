//! Calls that would wait for their own caller (A06).

use greenroom::{
    DeadLetterReason, PoolBuilder,
    policy::{About, Choice, Crew, LeastLoaded, Policy, Random, RoundRobin},
};

use crate::calls::desk::*;

#[tokio::test(start_paused = true)]
async fn a06_the_only_worker_of_a_pool_cannot_call_it() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    // The same by its own address.
    let workers = pool.admin().workers();
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
    // Their calls have ended: the next ones are counted from zero.
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
        // The number of an echo is its key; the caller of an echo has the same key.
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
    let workers = pool.admin().workers();
    hall.knows(workers[0].address());
    let called = soon(workers[1].call(Ask::CallOn(6))).await;
    assert_eq!(called, Ok(6));
    assert_eq!(soon(workers[0].call(Ask::CallOn(6))).await, deadlock());
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_through_a_permit_or_a_service_is_refused_like_any_other() {
    let (pool, hall) = Hall::own(1).await;
    for ask in [Ask::CallByPermit(1), Ask::CallByService(2)] {
        assert_eq!(soon(pool.call(ask)).await, deadlock());
    }
    hall.knows(pool.admin().workers()[0].address());
    assert_eq!(soon(pool.call(Ask::CallByPermit(3))).await, deadlock());
    assert_eq!(soon(pool.call(Ask::Echo(4))).await, Ok(4), "it is free again");
    let skipped = |number| (Some(Ask::Echo(number)), DeadLetterReason::Abandoned);
    let mut dead = hall.dead();
    dead.sort_by_key(|(ask, _)| format!("{ask:?}"));
    assert_eq!(dead, [skipped(1), skipped(2), skipped(3)], "they were queued");
    holds(pool.stop(SOON).await.stats);
}

#[tokio::test(start_paused = true)]
async fn a06_calls_through_permits_count_as_ones_that_wait() {
    let (pool, hall) = Hall::own(3).await;
    let (one, two, three) = soon(async {
        tokio::join!(
            pool.call(Ask::CallByPermitTogether(1)),
            pool.call(Ask::CallOnTogether(2)),
            pool.call(Ask::CallByPermitTogether(3)),
        )
    })
    .await;
    let refused = [&one, &two, &three].into_iter().filter(|answer| **answer == deadlock());
    assert_eq!(refused.count(), 1, "{one:?}, {two:?}, {three:?}");
    for number in 0..5 {
        assert_eq!(soon(pool.call(Ask::CallByPermit(number))).await, Ok(number), "counted afresh");
    }
    let workers = pool.admin().workers();
    hall.knows(workers[0].address());
    assert_eq!(soon(workers[1].call(Ask::CallByPermit(6))).await, Ok(6), "another worker");
    assert_eq!(soon(workers[0].call(Ask::CallByPermit(6))).await, deadlock());
}

#[tokio::test(start_paused = true)]
async fn a06_who_holds_the_key_of_a_message_cannot_call_with_it_through_a_permit() {
    let hall = Hall::default();
    let key =
        |ask: &Ask| matches!(ask, Ask::CallByPermit(0) | Ask::Echo(_) | Ask::PermitForTask(_));
    let pool = hall.pool(4).ordered_by(key).spawn().await.unwrap();
    hall.knows(&pool.address());
    assert_eq!(soon(pool.call(Ask::CallByPermit(0))).await, deadlock());
    assert_eq!(soon(pool.call(Ask::CallByPermit(1))).await, Ok(1));
    assert_eq!(soon(pool.call(Ask::PermitForTask(2))).await, Ok(2));
    settle().await;
    assert_eq!(*hall.answers.lock().unwrap(), [Ok(2)]);
}

#[tokio::test(start_paused = true)]
async fn a06_a_call_that_a_worker_has_a_task_wait_for_is_not_refused() {
    let (pool, hall) = Hall::own(1).await;
    assert_eq!(soon(pool.call(Ask::PermitForTask(5))).await, Ok(5));
    settle().await;
    assert_eq!(*hall.answers.lock().unwrap(), [Ok(5)]);
    assert_eq!(soon(pool.call(Ask::CallByPermit(1))).await, deadlock(), "nobody else waits");
    assert_eq!(hall.dead().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a06_a_policy_that_would_take_another_passes_the_caller_over() {
    let policies: [fn(PoolBuilder<Desk>) -> PoolBuilder<Desk>; 3] = [
        |pool| pool.dispatch(RoundRobin::new()),
        |pool| pool.dispatch(Random::seeded(1)),
        |pool| pool.dispatch(LeastLoaded::seeded(1)),
    ];
    for policy in policies {
        let hall = Hall::default();
        let pool = policy(hall.pool(2)).spawn().await.unwrap();
        hall.knows(&pool.address());
        for number in 0..20 {
            assert_eq!(soon(pool.call(Ask::CallOn(number))).await, Ok(number));
            assert_eq!(soon(pool.call(Ask::CallByPermit(number))).await, Ok(number));
        }
        pool.admin().resize(1).unwrap().done(SECOND).await;
        assert_eq!(soon(pool.call(Ask::CallOn(1))).await, deadlock());
    }
}

/// Always chooses the same worker, strictly.
struct First;

impl Policy<Ask> for First {
    fn choose(&self, _: &Ask, _: &About<'_>, _: &Crew<'_>) -> Choice {
        Choice::At(0)
    }
}

#[tokio::test(start_paused = true)]
async fn a06_a_caller_whom_a_policy_chooses_for_its_own_call_is_refused() {
    let hall = Hall::default();
    let pool = hall.pool(2).dispatch(First).spawn().await.unwrap();
    hall.knows(&pool.address());
    for ask in [Ask::CallOn(1), Ask::CallByPermit(1), Ask::CallByService(1)] {
        assert_eq!(soon(pool.call(ask)).await, deadlock());
    }
    let second = pool.admin().workers()[1].clone();
    for ask in [Ask::CallOn(2), Ask::CallByPermit(2), Ask::CallByService(2)] {
        assert_eq!(soon(second.call(ask)).await, Ok(2));
    }
    assert_eq!(hall.dead(), [], "none of them was accepted");
    assert_eq!(pool.stats().rejected, 3);
    holds(pool.stop(SOON).await.stats);
}

/// A copy of an echo for each worker; other messages go to the first.
struct Echoes;

impl Policy<Ask> for Echoes {
    fn choose(&self, ask: &Ask, _: &About<'_>, crew: &Crew<'_>) -> Choice {
        match ask {
            Ask::Echo(_) => Choice::Several((0..crew.len()).collect()),
            _ => Choice::At(0),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a06_of_several_that_a_policy_chooses_another_than_the_caller_answers() {
    for copies in [true, false] {
        let hall = Hall::default();
        let pool = match copies {
            true => hall.pool(2).dispatch_copies(Echoes),
            false => hall.pool(2).dispatch(Echoes),
        };
        let pool = pool.spawn().await.unwrap();
        hall.knows(&pool.address());
        assert_eq!(soon(pool.call(Ask::CallOn(1))).await, Ok(1), "copies: {copies}");
        assert_eq!(soon(pool.call(Ask::CallByPermit(1))).await, Ok(1), "copies: {copies}");
    }
}
