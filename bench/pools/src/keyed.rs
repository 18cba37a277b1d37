//! Workload B: messages of one key are handled in order. The baseline is a channel and task for
//! each worker, chosen by the key's hash; a slow key holds up all that share its task there,
//! which this row does not show.

use std::{convert::Infallible, hash::BuildHasher, time::Duration};

use foldhash::fast::FixedState;
use greenroom::{Address, Pool, PoolBuilder, Stop};
use tokio::sync::mpsc::Sender;

use crate::{
    Failure,
    channels::{self, MAILBOX},
    keys::Keys,
    message::{Counters, Message, Worker},
    stage::{PRODUCERS, Producer, Stage, Threads, share},
    work::Work,
};

pub const WORKERS: usize = 256;

pub struct Keyed {
    pub keys: Keys,
    pub messages: u64,
    pub threads: Threads,
}

impl Keyed {
    pub fn baseline(&self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(WORKERS));
        let senders = channels::spawn(&stage, &counters, WORKERS, MAILBOX, Work::NONE)?;
        let producers = to_channels(&self.keys, self.messages, &senders);
        stage.time(producers, &counters, self.messages)
    }

    pub fn greenroom(&self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(WORKERS));
        let pool = pool(&stage, &counters, self.threads)?;
        self.to(&stage, &counters, &pool)
    }

    /// As `greenroom`, with keys that belong to so many shares.
    pub fn shared(&self, shares: u64) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(WORKERS));
        let builder = builder(&counters, self.threads);
        let builder = builder.shared_by(move |message: &Message| message.key % shares);
        let pool = stage.block_on(builder.spawn())??;
        self.to(&stage, &counters, &pool)
    }

    fn to(
        &self,
        stage: &Stage,
        counters: &Counters,
        pool: &Pool<Worker>,
    ) -> Result<Duration, Failure> {
        let producers = to_pool(&self.keys, self.messages, &pool.address());
        let took = stage.time(producers, counters, self.messages)?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        stage.until_handled(counters, self.messages)?;
        Ok(took)
    }
}

/// A pool that is ordered by the key of each message.
pub fn pool(stage: &Stage, counters: &Counters, threads: Threads) -> Result<Pool<Worker>, Failure> {
    Ok(stage.block_on(builder(counters, threads).spawn())??)
}

fn builder(counters: &Counters, threads: Threads) -> PoolBuilder<Worker, u64> {
    let of = counters.clone();
    let pool = Pool::new(move |slot| Worker::new(of.of(slot), Work::NONE));
    let pool = threads.paced(pool.quick_factory().workers(WORKERS).mailbox(MAILBOX));
    pool.ordered_by(|message: &Message| message.key)
}

/// Producers that choose the worker by the key's hash.
pub fn to_channels(keys: &Keys, messages: u64, senders: &[Sender<Message>]) -> Vec<impl Producer> {
    let producer = |index| {
        let (senders, keys) = (senders.to_vec(), keys.clone());
        let hasher = FixedState::default();
        async move {
            for seq in share(index, PRODUCERS, messages) {
                let key = keys.of(seq);
                let worker = hasher.hash_one(key) as usize % senders.len();
                senders[worker].send(Message::new(seq, key)).await?;
            }
            Ok(())
        }
    };
    (0..PRODUCERS).map(producer).collect()
}

pub fn to_pool(
    keys: &Keys,
    messages: u64,
    to: &Address<Message, u64, Infallible>,
) -> Vec<impl Producer> {
    let producer = |index| {
        let (to, keys) = (to.clone(), keys.clone());
        async move {
            for seq in share(index, PRODUCERS, messages) {
                to.send(Message::new(seq, keys.of(seq))).await?;
            }
            Ok(())
        }
    };
    (0..PRODUCERS).map(producer).collect()
}
