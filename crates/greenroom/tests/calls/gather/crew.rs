//! Workers that do what the message says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use greenroom::{Actor, Address, CallError, Context, Pool, PoolBuilder, PoolStats, Stop};
use tokio::time::Instant;

pub(crate) type Error = CallError<&'static str>;

/// The action of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Reply(u32),
    /// Replies after this many milliseconds.
    After(u64, u32),
    Fail,
    Panic,
    Hang,
}

pub(crate) use Act::{After, Fail, Hang, Panic, Reply};

/// The action of each worker, by slot; the last one is for all others.
#[derive(Debug)]
pub(crate) struct Plan {
    acts: Vec<Act>,
    /// How often a plan may be cloned before a clone panics.
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

/// This many workers with this much room each.
pub(crate) fn crew(count: usize, mailbox: usize) -> PoolBuilder<Worker> {
    Pool::new(Worker).quick_factory().workers(count).mailbox(mailbox).capacity(1_000)
}

/// A pool in which all workers run.
pub(crate) async fn spawned<A: Actor>(crew: PoolBuilder<A>, count: usize) -> Pool<A> {
    let pool = crew.spawn().await.unwrap();
    pool.ready(count, Duration::from_secs(60)).await.unwrap();
    pool
}

pub(crate) async fn workers(count: usize, mailbox: usize) -> Pool<Worker> {
    spawned(crew(count, mailbox), count).await
}

/// One of the workers, while all exist.
pub(crate) fn one(pool: &Pool<Worker>, slot: usize) -> Address<Plan, u32, &'static str> {
    pool.admin().workers()[slot].address().clone()
}

/// Removes a worker.
pub(crate) async fn remove(pool: &Pool<Worker>, slot: usize) {
    let change = pool.admin().remove_worker(slot).unwrap();
    assert_eq!(change.done(Duration::from_secs(60)).await.left, [slot]);
}

/// Keeps a worker with room for one busy, and fills its room.
pub(crate) async fn fill(pool: &Pool<Worker>, slot: usize, in_hand: Act) {
    let worker = one(pool, slot);
    worker.send(Plan::of([in_hand])).await.unwrap();
    until(|| pool.admin().worker_stats()[slot].attempt.is_some()).await;
    worker.send(Plan::of([Reply(0)])).await.unwrap();
}

/// Lets the workers run until the condition holds.
pub(crate) async fn until(so: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to be so");
}

/// The final figures, once everything is done.
pub(crate) async fn stopped(pool: &Pool<Worker>) -> PoolStats {
    pool.stop(Stop::within(Duration::from_secs(60))).await.stats
}

/// How many messages each worker has handled.
pub(crate) fn handled(pool: &Pool<Worker>) -> Vec<u64> {
    pool.admin().worker_stats().iter().map(|worker| worker.handled).collect()
}

/// Milliseconds since the start.
pub(crate) fn ms(start: Instant) -> u64 {
    start.elapsed().as_millis() as u64
}
