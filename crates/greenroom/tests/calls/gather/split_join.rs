use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use greenroom::{
    Actor, CallError, Context, DeadLetterReason, Pool, Stop,
    gather::{PartialPolicy, SplitJoin, SplitJoinAddress, SplitJoinError},
};
use tokio::time::Instant;

use super::crew::*;

/// Each part's index with its result, in the order in which they were joined.
type Joined = Vec<(usize, Result<u32, Error>)>;

fn list() -> SplitJoin<Plan, u32, &'static str, Joined> {
    SplitJoin::new(Vec::new, |mut joined: Joined, index, result| {
        joined.push((index, result));
        joined
    })
}

type Lists = SplitJoinAddress<Plan, u32, &'static str, Joined>;

async fn lists(count: usize, policy: PartialPolicy) -> (Pool<Worker>, Lists) {
    let pool = workers(count, 10).await;
    let lists = pool.split_join(list().partial(policy).within(Duration::from_secs(1)));
    (pool, lists)
}

#[tokio::test(start_paused = true)]
async fn p11_each_live_worker_gets_a_copy_and_results_are_joined_in_the_order_of_workers() {
    let (pool, lists) = lists(4, PartialPolicy::Error).await;
    remove(&pool, 1).await;
    let start = Instant::now();
    let joined = lists.call(Plan::of([After(30, 10), Fail, After(10, 12), After(20, 13)])).await;
    assert_eq!(joined, Ok(vec![(0, Ok(10)), (1, Ok(12)), (2, Ok(13))]));
    assert_eq!(ms(start), 30, "all at once");
    assert_eq!(stopped(&pool).await.accepted, 3);
}

#[tokio::test(start_paused = true)]
async fn p11_no_state_carries_over_between_two_requests() {
    let (_pool, lists) = lists(2, PartialPolicy::Error).await;
    let (one, two) =
        tokio::join!(lists.call(Plan::of([Reply(1)])), lists.call(Plan::of([After(10, 2)])));
    assert_eq!(one, Ok(vec![(0, Ok(1)), (1, Ok(1))]));
    assert_eq!(two, Ok(vec![(0, Ok(2)), (1, Ok(2))]));
    assert!(lists.call(Plan::of([Reply(9), Fail])).await.is_err());
    assert_eq!(lists.call(Plan::of([Reply(3)])).await, Ok(vec![(0, Ok(3)), (1, Ok(3))]));
}

#[tokio::test(start_paused = true)]
async fn p11_a_worker_that_dies_fails_the_request_or_is_joined_as_an_error() {
    let panicked = CallError::Panicked("boom".to_owned());
    let plan = || Plan::of([After(10, 0), Panic, After(500, 2)]);
    let (_pool, strict) = lists(3, PartialPolicy::Error).await;
    let start = Instant::now();
    let error = SplitJoinError::PartFailed { slot: 1, error: panicked.clone() };
    assert_eq!(strict.call(plan()).await, Err(error));
    assert_eq!(ms(start), 0, "at once");
    let (_pool, partial) = lists(3, PartialPolicy::Partial).await;
    let joined = partial.call(plan()).await;
    assert_eq!(joined, Ok(vec![(0, Ok(0)), (1, Err(panicked)), (2, Ok(2))]));
}

#[tokio::test(start_paused = true)]
async fn p11_a_pool_that_stops_in_the_middle_resolves_the_parts_that_wait() {
    let pool = workers(2, 10).await;
    let lists = pool.split_join(list().partial(PartialPolicy::Partial));
    one(&pool, 1).send(Plan::of([Hang])).await.unwrap();
    let calling = tokio::spawn(async move { lists.call(Plan::of([Reply(1)])).await });
    until(|| pool.stats().queued == 1 && pool.stats().handled == 1).await;
    pool.stop(Stop::within(Duration::ZERO)).await;
    assert_eq!(calling.await.unwrap(), Ok(vec![(0, Ok(1)), (1, Err(CallError::Stopped))]));
}

#[tokio::test(start_paused = true)]
async fn p11_parts_that_are_late_fail_the_request_or_are_joined_as_errors() {
    let plan = || Plan::of([Reply(0), Hang, Reply(2), Hang]);
    let (_pool, strict) = lists(4, PartialPolicy::Error).await;
    let start = Instant::now();
    let error = SplitJoinError::TimedOut { unanswered: vec![1, 3] };
    assert_eq!(strict.call(plan()).await, Err(error));
    assert_eq!(ms(start), 1_000);
    let (_pool, partial) = lists(4, PartialPolicy::Partial).await;
    let late = || Err(CallError::TimedOut);
    let joined = partial.call(plan()).await;
    assert_eq!(joined, Ok(vec![(0, Ok(0)), (1, late()), (2, Ok(2)), (3, late())]));
}

#[tokio::test(start_paused = true)]
async fn p11_no_worker_at_all_is_an_error_at_once() {
    let (pool, lists) = lists(1, PartialPolicy::Partial).await;
    remove(&pool, 0).await;
    assert_eq!(lists.call(Plan::of([Reply(0)])).await, Err(SplitJoinError::NoWorkers));
}

/// Adds up numbers. Its messages are not `Clone`.
struct Summer;

struct Numbers(Vec<u64>);

impl Actor for Summer {
    type Message = Numbers;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, numbers: Numbers, _cx: &mut Context<Self>) -> Result<u64, ()> {
        Ok(numbers.0.iter().sum())
    }
}

#[tokio::test(start_paused = true)]
async fn p11_a_custom_split_gives_each_worker_its_part_and_some_none() {
    let pool = spawned(Pool::new(|_| Summer).workers(4).quick_factory(), 4).await;
    let share = |all: &Numbers, index: usize, of: usize| {
        assert_eq!(of, 4);
        let share: Vec<_> = all.0.iter().skip(index).step_by(of).copied().collect();
        (!share.is_empty()).then_some(Numbers(share))
    };
    let sums = SplitJoin::with_split(share, Vec::new, |mut sums: Vec<_>, index, sum| {
        sums.push((index, sum.unwrap()));
        sums
    });
    let sums = pool.split_join(sums);
    let numbers = |up_to| Numbers((1..=up_to).collect());
    assert_eq!(sums.call(numbers(6)).await, Ok(vec![(0, 6), (1, 8), (2, 3), (3, 4)]));
    assert_eq!(sums.call(numbers(2)).await, Ok(vec![(0, 1), (1, 2)]));
    assert_eq!(sums.call(numbers(0)).await, Ok(vec![]), "what init made");
    assert_eq!(pool.stats().accepted, 6);
}

#[tokio::test(start_paused = true)]
async fn p11_a_join_that_panics_unwinds_in_the_caller_and_abandons_the_other_parts() {
    let pool = workers(3, 10).await;
    for slot in 1..3 {
        one(&pool, slot).send(Plan::of([After(100, 0)])).await.unwrap();
    }
    let settings = SplitJoin::new(
        || (),
        |(), _, result: Result<u32, Error>| {
            assert_ne!(result, Ok(13), "unlucky");
        },
    );
    let join = pool.split_join(settings);
    assert!(AssertUnwindSafe(join.call(Plan::of([Reply(13)]))).catch_unwind().await.is_err());
    assert_eq!(join.call(Plan::of([Reply(1)])).await, Ok(()), "the address goes on");
    let abandoned = stopped(&pool).await.dead_letters.of(DeadLetterReason::Abandoned);
    assert_eq!((handled(&pool), abandoned), (vec![2, 2, 2], 2));
}

#[tokio::test(start_paused = true)]
async fn p11_a_split_or_init_that_panics_has_sent_nothing() {
    let pool = workers(2, 10).await;
    let inits = Arc::new(AtomicUsize::new(0));
    let counted = inits.clone();
    let split = |plan: &Plan, index: usize, _| {
        assert!(index == 0 || *plan != Plan::of([Fail]), "cannot be split");
        Some(plan.clone())
    };
    let init = move || assert!(counted.fetch_add(1, Ordering::SeqCst) > 0, "the first init");
    let join = pool.split_join(SplitJoin::with_split(split, init, |(), _, _| ()));
    assert!(AssertUnwindSafe(join.call(Plan::of([Fail]))).catch_unwind().await.is_err());
    assert_eq!(inits.load(Ordering::SeqCst), 0);
    assert!(AssertUnwindSafe(join.call(Plan::of([Reply(1)]))).catch_unwind().await.is_err());
    assert_eq!(pool.stats().accepted, 0);
    assert_eq!(join.call(Plan::of([Reply(1)])).await, Ok(()));
    assert_eq!(inits.load(Ordering::SeqCst), 2, "once for each request");
}

#[tokio::test(start_paused = true)]
async fn p11_dropping_a_request_abandons_its_parts() {
    let (pool, lists) = lists(2, PartialPolicy::Error).await;
    assert!(pool.broadcast().send(Plan::of([After(500, 0)])).await.unwrap().is_complete());
    let calling = tokio::time::timeout(Duration::from_millis(100), lists.call(Plan::of([Hang])));
    assert!(calling.await.is_err());
    let stats = stopped(&pool).await;
    assert_eq!((stats.handled, stats.dead_lettered), (2, 2));
}
