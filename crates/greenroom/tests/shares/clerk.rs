//! An actor whose messages say how long they take, and a record of their attempts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use greenroom::{Actor, Context, Pool, PoolBuilder};
use tokio::time::{Instant, sleep};

/// The owner of a message, and what its handler does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job {
    pub(crate) tenant: &'static str,
    pub(crate) key: u64,
    pub(crate) number: u32,
    pub(crate) takes: Duration,
    pub(crate) wish: Wish,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Well,
    Fail,
    Panic,
    /// Holds its share for this long, and fails.
    Hold(Duration),
}

pub(crate) fn job(tenant: &'static str, key: u64, millis: u64) -> Job {
    Job { tenant, key, number: 0, takes: Duration::from_millis(millis), wish: Wish::Well }
}

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) job: Job,
    /// Since the clerk was made.
    pub(crate) began: Duration,
    /// Or the present time, if it has not ended.
    pub(crate) ended: Option<Duration>,
}

#[derive(Clone)]
pub(crate) struct Clerk {
    start: Instant,
    attempts: Arc<Mutex<Vec<Attempt>>>,
}

impl Clerk {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), attempts: Arc::default() }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Attempt>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        self.all().clone()
    }

    pub(crate) fn tenants(&self) -> Vec<&'static str> {
        self.all().iter().map(|attempt| attempt.job.tenant).collect()
    }

    /// How often each tenant was attempted.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for tenant in self.tenants() {
            *counts.entry(tenant).or_default() += 1;
        }
        counts
    }

    /// The time in hand of a tenant in this window.
    pub(crate) fn in_hand(&self, tenant: &str, from: u64, to: u64) -> Duration {
        let (from, to) = (Duration::from_millis(from), Duration::from_millis(to));
        let mut sum = Duration::ZERO;
        for attempt in self.all().iter().filter(|attempt| attempt.job.tenant == tenant) {
            let end = attempt.ended.unwrap_or(to).min(to);
            sum += end.saturating_sub(attempt.began.max(from));
        }
        sum
    }

    /// The most attempts of a tenant that were in hand at once.
    pub(crate) fn most_in_hand(&self, tenant: &str) -> usize {
        let all = self.attempts();
        let of: Vec<_> = all.iter().filter(|attempt| attempt.job.tenant == tenant).collect();
        let at = |moment| {
            let is_in = |a: &&&Attempt| a.began <= moment && a.ended.is_none_or(|end| end > moment);
            of.iter().filter(is_in).count()
        };
        of.iter().map(|attempt| at(attempt.began)).max().unwrap_or(0)
    }

    /// When attempts of a tenant began, in milliseconds.
    pub(crate) fn begins(&self, tenant: &str) -> Vec<u128> {
        let all = self.attempts();
        let of = all.iter().filter(|attempt| attempt.job.tenant == tenant);
        of.map(|attempt| attempt.began.as_millis()).collect()
    }

    /// A pool with keys.
    pub(crate) fn keyed(&self, workers: usize) -> PoolBuilder<Self, u64> {
        self.alike(workers).ordered_by(|job: &Job| job.key).shared_by(|job: &Job| job.tenant)
    }

    pub(crate) fn keyless(&self, workers: usize) -> PoolBuilder<Self> {
        self.alike(workers).shared_by(|job: &Job| job.tenant)
    }

    fn alike(&self, workers: usize) -> PoolBuilder<Self> {
        let each = self.clone();
        Pool::new(move |_| each.clone())
            .workers(workers)
            .capacity(100_000)
            .max_per_key(100_000)
            .seed(7)
    }
}

impl Actor for Clerk {
    type Message = Job;
    type Reply = ();
    type Error = &'static str;

    async fn handle(&mut self, job: Job, cx: &mut Context<Self>) -> Result<(), &'static str> {
        let index = {
            let mut all = self.all();
            all.push(Attempt { job, began: self.start.elapsed(), ended: None });
            all.len() - 1
        };
        if !job.takes.is_zero() {
            sleep(job.takes).await;
        }
        self.all()[index].ended = Some(self.start.elapsed());
        match job.wish {
            Wish::Well => Ok(()),
            Wish::Fail => Err("no"),
            Wish::Panic => panic!("boom"),
            Wish::Hold(during) => {
                assert!(cx.hold_share(job.tenant, during));
                Err("not now")
            }
        }
    }
}

pub(crate) async fn settle(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// This many messages of a tenant, each with its own key.
pub(crate) async fn flood(pool: &Pool<Clerk>, tenant: &'static str, many: u64, millis: u64) {
    let first = tenant.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte)) << 32;
    for key in 0..many {
        pool.send(job(tenant, first + key, millis)).await.unwrap();
    }
}
