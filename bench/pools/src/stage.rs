//! The runtime that producers and workers share, and how a run is timed.

use std::{
    future::Future,
    hash::Hash,
    thread,
    time::{Duration, Instant},
};

use greenroom::{Actor, PoolBuilder};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::JoinHandle,
};

use crate::{Failure, message::Counters};

/// Tasks that send.
pub const PRODUCERS: u64 = 2;
/// How often the counters are looked at once all is sent. Before that nobody looks, as reading a
/// counter takes its cache line from the worker that writes it.
const LOOK: Duration = Duration::from_micros(200);
/// Without a message handled for this long, those that are missing are lost, or senders hang.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// A task that sends its share.
pub trait Producer: Future<Output = Result<(), Failure>> + Send + 'static {}

impl<P: Future<Output = Result<(), Failure>> + Send + 'static> Producer for P {}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Everything on the thread that waits: repeatable, for counting instructions.
    Current,
    /// One thread of the runtime, and the main thread sleeps.
    One,
    /// Two threads of the runtime, and the main thread sleeps.
    Two,
}

impl Threads {
    /// What counts instructions slows the handlers down, so that the pool would measure another
    /// pace than they have; and which queues keys share is to be the same each time.
    pub fn paced<A, K>(self, pool: PoolBuilder<A, K>) -> PoolBuilder<A, K>
    where
        A: Actor,
        K: Hash + Eq + Send + Sync + 'static,
    {
        match self {
            Self::Current => pool.quick_handlers(true).seed(SEED),
            Self::One | Self::Two => pool,
        }
    }

    /// As `paced`, for handlers that wait: their pace is that of what they wait for.
    pub fn counted<A: Actor>(self, pool: PoolBuilder<A>) -> PoolBuilder<A> {
        match self {
            Self::Current => pool.seed(SEED),
            Self::One | Self::Two => pool,
        }
    }
}

/// Of pools whose instructions are counted.
const SEED: u64 = 1;

type Task = JoinHandle<Result<(), Failure>>;

/// A runtime of its own for each repetition.
pub struct Stage {
    runtime: Option<Runtime>,
    threads: Threads,
    look: Duration,
}

impl Stage {
    pub fn new(threads: Threads) -> Result<Self, Failure> {
        let mut builder = match threads {
            Threads::Current => Builder::new_current_thread(),
            Threads::One | Threads::Two => Builder::new_multi_thread(),
        };
        match threads {
            Threads::Current => {}
            Threads::One => drop(builder.worker_threads(1)),
            Threads::Two => drop(builder.worker_threads(2)),
        }
        Ok(Self { runtime: Some(builder.enable_time().build()?), threads, look: LOOK })
    }

    /// Looks this often whether all is handled, once it is sent.
    pub fn looking_every(mut self, look: Duration) -> Self {
        self.look = look;
        self
    }

    fn runtime(&self) -> Result<&Runtime, Failure> {
        self.runtime.as_ref().ok_or_else(|| "the runtime has ended".into())
    }

    /// For threads beside the runtime.
    pub fn handle(&self) -> Result<&Handle, Failure> {
        Ok(self.runtime()?.handle())
    }

    /// Runs a future on the main thread: for setting up and taking down, not for what is timed.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, Failure> {
        Ok(self.runtime()?.block_on(future))
    }

    /// Spawns a task that is not timed by itself.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<(), Failure> {
        self.runtime()?.spawn(task);
        Ok(())
    }

    /// From the start of the producers until `total` messages have been handled in all.
    pub fn time(
        &self,
        producers: Vec<impl Producer>,
        counters: &Counters,
        total: u64,
    ) -> Result<Duration, Failure> {
        let runtime = self.runtime()?;
        let start = Instant::now();
        let tasks: Vec<_> = producers.into_iter().map(|task| runtime.spawn(task)).collect();
        runtime.block_on(all_sent(tasks, counters))?;
        self.until_handled(counters, total)?;
        Ok(start.elapsed())
    }

    /// Waits until `total` messages have been handled; fails when they are
    /// not, or when there are more.
    pub fn until_handled(&self, counters: &Counters, total: u64) -> Result<(), Failure> {
        let (mut seen, mut since) = (counters.sum(), Instant::now());
        while seen < total {
            self.pause()?;
            let now = counters.sum();
            if now > seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > LOST_AFTER {
                return Err(format!("lost: {seen} of {total} messages were handled").into());
            }
        }
        if seen > total {
            return Err(format!("{seen} messages were handled, but {total} were sent").into());
        }
        Ok(())
    }

    fn pause(&self) -> Result<(), Failure> {
        match self.threads {
            Threads::One | Threads::Two => thread::sleep(self.look),
            Threads::Current => self.runtime()?.block_on(tokio::task::yield_now()),
        }
        Ok(())
    }
}

/// Waits for the producers; fails when one of them does, or when they wait and nothing is handled.
async fn all_sent(tasks: Vec<Task>, counters: &Counters) -> Result<(), Failure> {
    let mut sent = std::pin::pin!(async {
        for task in tasks {
            task.await??;
        }
        Ok(())
    });
    let mut seen = counters.sum();
    loop {
        if let Ok(sent) = tokio::time::timeout(LOST_AFTER, sent.as_mut()).await {
            return sent;
        }
        match counters.sum() {
            now if now > seen => seen = now,
            _ => return Err(format!("senders hang: {seen} messages were handled").into()),
        }
    }
}

impl Drop for Stage {
    /// Does not wait for tasks that hang.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// The messages of one producer of several: its share of all, without a gap.
pub fn share(producer: u64, producers: u64, total: u64) -> std::ops::Range<u64> {
    let edge = |producer| total * producer / producers;
    edge(producer)..edge(producer + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_no_gap() {
        for (producers, total) in [(2, 0), (2, 1), (2, 7), (2, 5_000_000), (16, 100)] {
            let of = |producer| share(producer, producers, total);
            assert_eq!((of(0).start, of(producers - 1).end), (0, total));
            assert!((1..producers).all(|producer| of(producer - 1).end == of(producer).start));
        }
    }

    #[test]
    fn a_message_handled_twice_fails_the_run() {
        let (stage, counters) = (Stage::new(Threads::Current).unwrap(), Counters::new(2));
        let handled = |times: u64| {
            let counter = counters.of(1);
            async move {
                (0..times).for_each(|_| counter.add());
                Ok(())
            }
        };
        assert!(stage.time(vec![handled(2), handled(1)], &counters, 3).is_ok());
        assert!(stage.time(vec![handled(2), handled(1)], &counters, 5).is_err());
    }

    #[test]
    fn a_producer_that_fails_fails_the_run() {
        let (stage, counters) = (Stage::new(Threads::Two).unwrap(), Counters::new(1));
        let failing = async { Err("refused".into()) };
        assert!(stage.time(vec![failing], &counters, 1).is_err());
    }
}
