//! Workers that do as the message says, each in a pool of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{Actor, Address, CallError, Context, Pool, PoolStats, Stop};
use tokio::time::Instant;

pub(crate) type Error = CallError<&'static str>;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Reply(u32),
    /// Replies after so many milliseconds.
    After(u64, u32),
    Fail,
    Panic,
    Hang,
}

pub(crate) use Act::{After, Fail, Hang, Panic, Reply};

/// What each worker does, by its slot; the last act is that of all others.
#[derive(Debug)]
pub(crate) struct Plan {
    acts: Vec<Act>,
    /// How often a plan may be cloned before that panics.
    clones: Option<Arc<AtomicUsize>>,
}

impl Plan {
    pub(crate) fn of(acts: impl Into<Vec<Act>>) -> Self {
        Self { acts: acts.into(), clones: None }
    }

    pub(crate) fn only_cloned(acts: impl Into<Vec<Act>>, times: usize) -> Self {
        Self { clones: Some(Arc::new(AtomicUsize::new(times))), ..Self::of(acts) }
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.acts == other.acts
    }
}

impl Clone for Plan {
    fn clone(&self) -> Self {
        if let Some(left) = &self.clones {
            let one_less = |left: usize| left.checked_sub(1);
            let cloned = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
            assert!(cloned.is_ok(), "no more clones");
        }
        Self { acts: self.acts.clone(), clones: self.clones.clone() }
    }
}

pub(crate) struct Worker(usize);

impl Worker {
    pub(crate) fn at(index: usize) -> Self {
        Self(index)
    }
}

impl Actor for Worker {
    type Message = Plan;
    type Reply = u32;
    type Error = &'static str;

    async fn handle(&mut self, plan: Plan, _cx: &mut Context<Self>) -> Result<u32, &'static str> {
        match plan.acts.get(self.0).or(plan.acts.last()) {
            Some(Reply(number)) => Ok(*number),
            Some(After(ms, number)) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
                Ok(*number)
            }
            Some(Panic) => panic!("boom"),
            Some(Hang) => std::future::pending().await,
            Some(Fail) | None => Err("no"),
        }
    }
}

pub(crate) async fn worker(index: usize, capacity: usize) -> Pool<Worker> {
    let pool = Pool::new(move |_| Worker(index)).workers(1).capacity(capacity);
    pool.spawn().await.unwrap()
}

/// So many workers with so much room each.
pub(crate) async fn workers(count: usize, capacity: usize) -> Vec<Pool<Worker>> {
    let mut pools = Vec::new();
    for index in 0..count {
        pools.push(worker(index, capacity).await);
    }
    pools
}

pub(crate) fn addresses(pools: &[Pool<Worker>]) -> Vec<Address<Plan, u32, &'static str>> {
    pools.iter().map(Pool::address).collect()
}

/// Gives a worker with room for one something to hang on, and fills its room.
pub(crate) async fn fill(pool: &Pool<Worker>, in_hand: Act) {
    pool.send(Plan::of([in_hand])).await.unwrap();
    until(|| pool.stats().in_hand == 1).await;
    pool.send(Plan::of([Reply(0)])).await.unwrap();
}

/// Lets the workers run until it is so.
pub(crate) async fn until(so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to be so");
}

/// What became of the messages of each worker, once all is done.
pub(crate) async fn stopped(pools: &[Pool<Worker>]) -> Vec<PoolStats> {
    let mut stats = Vec::new();
    for pool in pools {
        stats.push(pool.stop(Stop::within(Duration::from_secs(60))).await.stats);
    }
    stats
}

/// Milliseconds since then.
pub(crate) fn ms(start: Instant) -> u64 {
    start.elapsed().as_millis() as u64
}
