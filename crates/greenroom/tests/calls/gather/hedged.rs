use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, CallError, Context, Pool, SendError, Stop,
    gather::{HedgeBudget, Hedged},
};
use tokio::time::Instant;

use super::crew::ms;

const AFTER: Duration = Duration::from_millis(50);

/// Takes as long as the message says, by the number of its start; fails when the number is odd and
/// it is told to.
struct Peer(Arc<AtomicUsize>);

#[derive(Debug, Clone)]
struct Lookup {
    ms: Vec<u64>,
    fails: bool,
}

impl Actor for Peer {
    type Message = Lookup;
    type Reply = usize;
    type Error = usize;

    async fn handle(&mut self, lookup: Lookup, _cx: &mut Context<Self>) -> Result<usize, usize> {
        let start = self.0.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(lookup.ms[start % lookup.ms.len()])).await;
        if lookup.fails { Err(start) } else { Ok(start) }
    }
}

async fn peers(workers: usize, capacity: usize) -> Pool<Peer> {
    let starts = Arc::new(AtomicUsize::new(0));
    let pool = Pool::new(move |_| Peer(starts.clone())).workers(workers).capacity(capacity);
    pool.spawn().await.unwrap()
}

fn taking(ms: impl Into<Vec<u64>>) -> Lookup {
    Lookup { ms: ms.into(), fails: false }
}

async fn handled(pool: &Pool<Peer>) -> u64 {
    pool.stop(Stop::within(Duration::from_secs(60))).await.stats.handled
}

#[tokio::test(start_paused = true)]
async fn p12_a_slow_call_is_answered_by_a_second_worker() {
    let pool = peers(2, 10).await;
    let hedged = Hedged::new(pool.address()).after(AFTER);
    let start = Instant::now();
    assert_eq!(hedged.call(taking([5_000, 10])).await, Ok(1));
    assert_eq!(ms(start), 60);
    assert_eq!(handled(&pool).await, 2, "the loser's handler was not torn out");
}

#[tokio::test(start_paused = true)]
async fn p12_a_call_that_is_answered_in_time_is_sent_once() {
    let pool = peers(2, 10).await;
    let hedged = Hedged::new(pool.address()).after(AFTER);
    for call in 0..100 {
        assert_eq!(hedged.call(taking([49])).await, Ok(call));
    }
    assert_eq!(handled(&pool).await, 100);
}

#[tokio::test(start_paused = true)]
async fn p12_hedges_are_a_burst_and_then_a_share_of_the_calls() {
    let pool = peers(10, 100).await;
    let hedged = Hedged::new(pool.address()).after(AFTER).budget(HedgeBudget::one_in(10).burst(3));
    let clone = hedged.clone();
    for call in 0..30 {
        let one = if call % 2 == 0 { &hedged } else { &clone };
        assert!(one.call(taking([200])).await.is_ok());
    }
    let hedges = handled(&pool).await - 30;
    assert_eq!(hedges, 3 + 2, "3 to begin with, and one each after 10 calls from the first hedge");
}

#[tokio::test(start_paused = true)]
async fn p12_without_budget_a_slow_call_is_waited_for() {
    let pool = peers(2, 10).await;
    let hedged = Hedged::new(pool.address()).after(AFTER).budget(HedgeBudget::default().burst(0));
    let start = Instant::now();
    assert_eq!(hedged.call(taking([500, 10])).await, Ok(0));
    assert_eq!(ms(start), 500);
    assert_eq!(handled(&pool).await, 1);
}

#[tokio::test(start_paused = true)]
async fn p12_a_full_pool_is_sent_no_hedge_and_none_is_paid_for() {
    let pool = peers(1, 1).await;
    let budget = HedgeBudget::one_in(1_000).burst(1);
    let hedged = Hedged::new(pool.address()).after(AFTER).budget(budget);
    let lookup = || taking([400, 10, 400, 10]);
    let (first, ()) = tokio::join!(hedged.call(lookup()), async {
        tokio::task::yield_now().await;
        pool.send(taking([10])).await.unwrap();
    });
    assert_eq!(first, Ok(0));
    tokio::time::sleep(AFTER).await;
    assert_eq!(pool.stats().accepted, 2);
    assert_eq!(hedged.call(lookup()).await, Ok(2));
    assert_eq!(pool.stats().accepted, 4, "the hedge that was saved is sent where there is room");
}

#[tokio::test(start_paused = true)]
async fn p12_a_loser_that_has_not_been_started_is_skipped() {
    let pool = peers(1, 10).await;
    let hedged = Hedged::new(pool.address()).after(AFTER);
    let (first, ()) = tokio::join!(hedged.call(taking([100])), async {
        tokio::task::yield_now().await;
        pool.send(taking([100])).await.unwrap();
    });
    assert_eq!(first, Ok(0), "while the hedge stands behind somebody else's message");
    let stats = pool.stop(Stop::within(Duration::from_secs(60))).await.stats;
    assert_eq!((stats.accepted, stats.handled, stats.dead_lettered), (3, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn p12_errors_are_told_only_when_both_attempts_have_failed() {
    let pool = peers(2, 10).await;
    let hedged = Hedged::new(pool.address()).after(AFTER);
    let start = Instant::now();
    let error = hedged.call(Lookup { ms: vec![200, 100], fails: true }).await;
    assert_eq!(error, Err(CallError::Failed(1)), "the one that failed first");
    assert_eq!(ms(start), 200);
    let error = hedged.call(Lookup { ms: vec![20], fails: true }).await;
    assert_eq!(error, Err(CallError::Failed(2)), "a hedge is not a retry");
    pool.stop(Stop::Now).await;
    assert_eq!(hedged.call(taking([1])).await, Err(SendError::Stopped(()).into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p12_a_hedged_call_can_be_spawned() {
    let pool = peers(4, 100).await;
    let hedged = Hedged::new(pool.address()).after(Duration::from_secs(600));
    let call = |hedged: Hedged<_, _, _>| async move { hedged.call(taking([0])).await };
    let calls: Vec<_> = (0..50).map(|_| tokio::spawn(call(hedged.clone()))).collect();
    for call in calls {
        assert!(call.await.unwrap().is_ok());
    }
    assert_eq!(handled(&pool).await, 50);
}
