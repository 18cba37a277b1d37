//! Workload A: messages without a key to a pool of workers, from two producers.

use std::{collections::VecDeque, time::Duration};

use greenroom::{Address, Pool, Stop};

use crate::{
    Failure,
    channels::{self, MAILBOX},
    message::{Counters, Message, Worker},
    stage::{PRODUCERS, Stage, Threads, share},
    work::Work,
};

/// Messages that [`Sending::Many`] hands over at once.
const CHUNK: u64 = 64;

#[derive(Clone, Copy)]
pub struct Unkeyed {
    pub workers: usize,
    pub messages: u64,
    pub producers: u64,
    /// How many may wait for each worker.
    pub mailbox: usize,
    pub work: Work,
    pub threads: Threads,
}

#[derive(Clone, Copy)]
pub enum Sending {
    One,
    Many,
}

type To = Address<Message, u64, std::convert::Infallible>;

impl Unkeyed {
    /// As all rows of workload A have it.
    pub fn new(workers: usize, messages: u64, work: Work, threads: Threads) -> Self {
        Self { workers, messages, producers: PRODUCERS, mailbox: MAILBOX, work, threads }
    }

    fn share(self, producer: u64) -> std::ops::Range<u64> {
        share(producer, self.producers, self.messages)
    }

    /// Channels and tasks, round robin.
    pub fn baseline(self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let senders = channels::spawn(&stage, &counters, self.workers, self.mailbox, self.work)?;
        let producer = |index: u64| {
            let (senders, share) = (senders.clone(), self.share(index));
            let mut next = self.workers * index as usize / self.producers as usize;
            async move {
                for seq in share {
                    senders[next].send(Message::new(seq, seq)).await?;
                    next += 1;
                    if next == senders.len() {
                        next = 0;
                    }
                }
                Ok(())
            }
        };
        stage.time((0..self.producers).map(producer).collect(), &counters, self.messages)
    }

    pub fn greenroom(self, sending: Sending) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let (of, work) = (counters.clone(), self.work);
        let pool = Pool::new(move |slot| Worker::new(of.of(slot), work));
        let pool = pool.quick_factory().workers(self.workers).mailbox(self.mailbox);
        let pool = self.threads.paced(pool);
        let pool = stage.block_on(pool.spawn())??;
        let producer = |index| produce(pool.address(), self.share(index), sending);
        let took =
            stage.time((0..self.producers).map(producer).collect(), &counters, self.messages)?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        stage.until_handled(&counters, self.messages)?;
        Ok(took)
    }
}

async fn produce(to: To, share: std::ops::Range<u64>, sending: Sending) -> Result<(), Failure> {
    match sending {
        Sending::One => {
            for seq in share {
                to.send(Message::new(seq, seq)).await?;
            }
        }
        Sending::Many => {
            let mut chunk = VecDeque::with_capacity(CHUNK as usize);
            for start in share.clone().step_by(CHUNK as usize) {
                let seqs = start..share.end.min(start + CHUNK);
                chunk.extend(seqs.map(|seq| Message::new(seq, seq)));
                to.send_many(&mut chunk).await?;
            }
        }
    }
    Ok(())
}
