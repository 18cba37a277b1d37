//! The same messages through a pool, and through what is written by hand.

use std::{hash::BuildHasher, sync::Arc, time::Duration};

use foldhash::fast::FixedState;
use futures_util::{StreamExt, stream};
use greenroom::{Pool, Stop};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Semaphore, mpsc};

use super::{
    Cost, Room, Shape, Side,
    handler::{Waiter, responder},
};
use crate::{
    Failure,
    keys::Keys,
    message::{Counters, Message},
    stage::{PRODUCERS, Producer, Stage, share},
};

/// How often the counters are looked at once all is sent: looking is processor time as well.
const LOOK: Duration = Duration::from_millis(2);

/// One repetition.
struct Run<'a> {
    shape: &'a Shape,
    messages: u64,
    stage: Stage,
    counters: Counters,
}

pub fn measure(shape: &Shape, side: Side, messages: u64) -> Result<Cost, Failure> {
    let stage = Stage::new(shape.threads)?.looking_every(LOOK);
    let run = Run { shape, messages, stage, counters: Counters::new(shape.workers) };
    match side {
        Side::Pool => run.pool(),
        Side::Channels => run.channels(),
        Side::Concurrent => run.concurrent(),
        Side::Spawned => run.spawned(),
    }
}

/// Processor time of the whole process.
fn processor() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

impl Run<'_> {
    fn waiter(&self, worker: usize) -> Result<Waiter, Failure> {
        let asked = responder(&self.stage)?;
        Ok(Waiter { counter: self.counters.of(worker), wait: self.shape.wait, asked })
    }

    /// One for each worker, all of which ask the same task.
    fn waiters(&self) -> Result<Vec<Waiter>, Failure> {
        let first = self.waiter(0)?;
        let of = |worker| Waiter { counter: self.counters.of(worker), ..first.clone() };
        Ok((0..self.shape.workers).map(of).collect())
    }

    fn share(&self, producer: u64) -> std::ops::Range<u64> {
        share(producer, PRODUCERS, self.messages)
    }

    fn keys(&self) -> Keys {
        Keys::Among(self.shape.keys.unwrap_or(1))
    }

    fn time(&self, producers: Vec<impl Producer>) -> Result<Cost, Failure> {
        let before = processor();
        let time = self.stage.time(producers, &self.counters, self.messages)?;
        Ok(Cost { messages: self.messages, time, processor: processor() - before })
    }

    fn pool(&self) -> Result<Cost, Failure> {
        let waiters = self.waiters()?;
        let pool = Pool::new(move |slot: usize| waiters[slot].clone());
        let pool = pool.quick_factory().workers(self.shape.workers);
        let pool = match self.shape.room {
            Room::Scarce => pool.mailbox(self.shape.mailbox(self.messages)),
            // For the whole pool: a worker has no queue of its own that all could go to.
            Room::Plenty => pool.capacity(self.messages as usize),
        };
        let pool = self.shape.threads.counted(pool);
        let pool = match self.shape.keys {
            None => self.stage.block_on(pool.spawn())??,
            Some(_) => {
                self.stage.block_on(pool.ordered_by(|message: &Message| message.key).spawn())??
            }
        };
        let producer = |index| {
            let (to, share, keys) = (pool.address(), self.share(index), self.keys());
            async move {
                for seq in share {
                    to.send(Message::new(seq, keys.of(seq))).await?;
                }
                Ok(())
            }
        };
        let cost = self.time((0..PRODUCERS).map(producer).collect())?;
        self.stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        self.stage.until_handled(&self.counters, self.messages)?;
        Ok(cost)
    }

    fn channels(&self) -> Result<Cost, Failure> {
        let mut senders = Vec::new();
        for waiter in self.waiters()? {
            let (sender, mut inbox) = mpsc::channel(self.shape.mailbox(self.messages));
            self.stage.spawn(async move {
                while let Some(message) = inbox.recv().await {
                    waiter.take(&message).await;
                }
            })?;
            senders.push(sender);
        }
        let is_keyed = self.shape.keys.is_some();
        let producer = |index: u64| {
            let (senders, share, keys) = (senders.clone(), self.share(index), self.keys());
            let hasher = FixedState::default();
            let first = senders.len() * index as usize / PRODUCERS as usize;
            async move {
                for seq in share.clone() {
                    let key = keys.of(seq);
                    let worker = match is_keyed {
                        true => hasher.hash_one(key) as usize,
                        false => first + (seq - share.start) as usize,
                    };
                    senders[worker % senders.len()].send(Message::new(seq, key)).await?;
                }
                Ok(())
            }
        };
        self.time((0..PRODUCERS).map(producer).collect())
    }

    fn concurrent(&self) -> Result<Cost, Failure> {
        let (waiter, workers, keys) = (self.waiter(0)?, self.shape.workers, self.keys());
        let all = stream::iter(0..self.messages);
        let handled = async move {
            let handle = |seq| {
                let (waiter, message) = (&waiter, Message::new(seq, keys.of(seq)));
                async move {
                    waiter.take(&message).await;
                }
            };
            all.for_each_concurrent(workers, handle).await;
            Ok(())
        };
        self.time(vec![handled])
    }

    fn spawned(&self) -> Result<Cost, Failure> {
        let (waiter, keys) = (self.waiter(0)?, self.keys());
        let permits = Arc::new(Semaphore::new(self.shape.workers));
        let producer = |index| {
            let (share, keys, waiter) = (self.share(index), keys.clone(), waiter.clone());
            let permits = permits.clone();
            async move {
                for seq in share {
                    let permit = permits.clone().acquire_owned().await?;
                    let (waiter, message) = (waiter.clone(), Message::new(seq, keys.of(seq)));
                    tokio::spawn(async move {
                        waiter.wait(&message).await;
                        waiter.counter.add_among_others();
                        drop(permit);
                    });
                }
                Ok(())
            }
        };
        self.time((0..PRODUCERS).map(producer).collect())
    }
}
