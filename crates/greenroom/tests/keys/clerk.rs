//! An actor that does what its messages say, and its pools.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use greenroom::{Actor, Answer, Context, Delivery, FinalAction, Pool, PoolBuilder, Stop};
use tokio::sync::Semaphore;

/// The instruction in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Nothing,
    /// Waits until the gate is opened.
    Wait,
    Fail,
    Panic,
    /// Opens the gate for one handler that waits there.
    Open,
    /// Fails once the gate is open.
    FailLater,
    /// Fails until it has been attempted this often.
    FailUntil(u32),
}
use Wish::{Fail, FailLater, FailUntil, Nothing, Open, Panic, Wait};

pub(crate) type Job = (u64, u32, Wish);

/// Keys and numbers of messages.
#[derive(Default)]
struct Log(Mutex<Vec<(u64, u32)>>);

impl Log {
    fn all(&self) -> MutexGuard<'_, Vec<(u64, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Follows the instructions, and notes the handled messages.
#[derive(Clone)]
pub(crate) struct Clerk {
    pub(crate) gate: Arc<Semaphore>,
    handled: Arc<Log>,
    attempts: Arc<Log>,
}

impl Clerk {
    pub(crate) fn new() -> Self {
        Self {
            gate: Arc::new(Semaphore::new(0)),
            handled: Arc::default(),
            attempts: Arc::default(),
        }
    }

    pub(crate) fn handled(&self) -> Vec<(u64, u32)> {
        self.handled.all().clone()
    }

    pub(crate) fn attempts_of(&self, key: u64, number: u32) -> u32 {
        let attempts = self.attempts.all();
        attempts.iter().filter(|attempt| **attempt == (key, number)).count() as u32
    }

    async fn wait(&self) -> Result<(), String> {
        self.gate.acquire().await.map_err(|closed| closed.to_string())?.forget();
        Ok(())
    }

    pub(crate) fn pool(&self) -> PoolBuilder<Self> {
        let each = self.clone();
        Pool::new(move |_| each.clone()).workers(4).capacity(100)
    }

    pub(crate) fn forgetful_pool(&self) -> PoolBuilder<Forgetful> {
        let each = self.clone();
        Pool::new(move |_| Forgetful(each.clone())).workers(4).capacity(100)
    }
}

impl Actor for Clerk {
    type Message = Job;
    type Reply = u32;
    type Error = String;

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, String> {
        self.act(job).await
    }
}

/// Claims that it keeps its messages, but takes them anyway.
pub(crate) struct Forgetful(Clerk);

impl Actor for Forgetful {
    type Message = Job;
    type Reply = u32;
    type Error = String;

    const KEEPS_MESSAGE: bool = true;

    async fn handle(&mut self, job: Job, _cx: &mut Context<Self>) -> Result<u32, String> {
        self.0.act(job).await
    }

    async fn receive(
        &mut self,
        delivery: &mut Delivery<Job, u32, String>,
        _cx: &mut Context<Self>,
    ) -> Result<Answer<u32>, String> {
        self.0.act(delivery.take()).await.map(Answer::Reply)
    }
}

impl Clerk {
    async fn act(&self, job: Job) -> Result<u32, String> {
        let (key, number, wish) = job;
        self.attempts.all().push((key, number));
        match wish {
            Nothing => {}
            Wait => self.wait().await?,
            Open => self.gate.add_permits(1),
            Fail => return Err(format!("no {number}")),
            FailLater => {
                self.wait().await?;
                return Err(format!("no {number}"));
            }
            Panic => panic!("boom {number}"),
            FailUntil(attempt) if self.attempts_of(key, number) < attempt => {
                return Err(format!("not yet {number}"));
            }
            FailUntil(_) => {}
        }
        self.handled.all().push((key, number));
        Ok(number)
    }
}

pub(crate) const PATIENCE: Stop = Stop::within(Duration::from_secs(60));

/// Lets all tasks do everything that they can do now.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) fn parking(clerk: &Clerk) -> PoolBuilder<Clerk, u64> {
    clerk.pool().ordered_by(|job: &Job| job.0).on_final_failure(FinalAction::ParkKey)
}

/// Both bounds in one call: by key, with this many messages each.
pub(crate) trait PerKey {
    fn max_per_key_of(self, messages: usize) -> PoolBuilder<Clerk, u64>;
}

impl PerKey for PoolBuilder<Clerk> {
    fn max_per_key_of(self, messages: usize) -> PoolBuilder<Clerk, u64> {
        self.ordered_by(|job: &Job| job.0).max_per_key(messages)
    }
}
