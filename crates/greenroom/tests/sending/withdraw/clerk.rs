//! An actor that handles messages as they ask, and remembers them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{PoolBuilder, PoolStats, prelude::*};

/// The request in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// Waits for this many seconds.
    Wait(u64),
    /// Fails each time.
    Fail,
    /// Fails the first time, after this many seconds.
    FailOnce(u64),
}

/// A key, a number and a request.
pub(crate) type Job = (u64, u32, Wish);

pub(crate) const PATIENCE: Stop = Stop::within(Duration::from_secs(24 * 3600));

#[derive(Clone, Default)]
pub(crate) struct Clerk {
    begun: Arc<Mutex<Vec<u32>>>,
    handled: Arc<Mutex<Vec<u32>>>,
    /// Messages below this number are no longer wanted.
    pub(crate) wanted_from: Arc<AtomicU32>,
}

impl Clerk {
    /// Numbers that were handled, in order.
    pub(crate) fn handled(&self) -> Vec<u32> {
        self.handled.lock().unwrap().clone()
    }

    /// Attempts, in order.
    pub(crate) fn begun(&self) -> Vec<u32> {
        self.begun.lock().unwrap().clone()
    }

    pub(crate) fn pool(&self) -> PoolBuilder<Self> {
        let each = self.clone();
        Pool::new(move |_slot| each.clone()).workers(1).capacity(10)
    }

    /// A pool whose messages start only while they are wanted.
    pub(crate) fn choosy_pool(&self) -> PoolBuilder<Self> {
        let wanted_from = self.wanted_from.clone();
        self.pool().starts_if(move |job: &Job| job.1 >= wanted_from.load(Ordering::SeqCst))
    }

    pub(crate) fn wants_from(&self, number: u32) {
        self.wanted_from.store(number, Ordering::SeqCst);
    }
}

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = &'static str;

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, Self::Error> {
        let (_, number, wish) = job;
        let is_first = !self.begun().contains(&number);
        self.begun.lock().unwrap().push(number);
        match wish {
            Wish::Nothing => {}
            Wish::Wait(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Wish::Fail => return Err("no"),
            Wish::FailOnce(seconds) if is_first => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                return Err("not now");
            }
            Wish::FailOnce(_) => {}
        }
        self.handled.lock().unwrap().push(number);
        Ok(number)
    }
}

/// The key, in the form that a pool with order needs.
pub(crate) fn by_key(job: &Job) -> u64 {
    job.0
}

/// A pool that keeps the order of keys, with room for ten messages of each, or one that does not.
pub(crate) async fn open(pool: PoolBuilder<Clerk>, keyed: bool) -> Pool<Clerk> {
    match keyed {
        true => pool.ordered_by(by_key).max_per_key(10).spawn().await.unwrap(),
        false => pool.spawn().await.unwrap(),
    }
}

/// Checks that this many were withdrawn, the others were handled, and nothing is left.
pub(crate) fn assert_settled(stats: &PoolStats, withdrawn: u64) {
    assert!(stats.ledger_holds(), "{stats:?}");
    assert_eq!((stats.withdrawn, stats.dead_lettered, stats.waiting), (withdrawn, 0, 0));
    assert_eq!(stats.handled, stats.accepted - withdrawn);
}
