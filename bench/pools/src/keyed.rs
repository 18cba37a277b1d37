//! Workload B: messages of one key are handled in order. The baseline is a channel and task for each worker, chosen by the
//! key's hash; a slow key holds up all that share its task there, which this row does not show.

use std::{hash::BuildHasher, time::Duration};

use foldhash::fast::FixedState;
use greenroom::{Pool, Stop};

use crate::{
    Failure,
    channels::{self, MAILBOX},
    keys::Keys,
    message::{Counters, Message, Worker},
    stage::{PRODUCERS, Stage, Threads, share},
    work::Work,
};

#[derive(Clone)]
pub struct Keyed {
    pub workers: usize,
    pub keys: Keys,
    pub messages: u64,
    pub threads: Threads,
}

impl Keyed {
    pub fn baseline(&self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let senders = channels::spawn(&stage, &counters, self.workers, Work::NONE)?;
        let producer = |index| {
            let (senders, keys) = (senders.clone(), self.keys.clone());
            let share = share(index, self.messages);
            let hasher = FixedState::default();
            async move {
                for seq in share {
                    let key = keys.of(seq);
                    let worker = hasher.hash_one(key) as usize % senders.len();
                    senders[worker].send(Message::new(seq, key)).await?;
                }
                Ok(())
            }
        };
        stage.time((0..PRODUCERS).map(producer).collect(), &counters, self.messages)
    }

    pub fn greenroom(&self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let of = counters.clone();
        let pool = Pool::new(move |slot| Worker::new(of.of(slot), Work::NONE));
        let pool = pool.quick_factory().workers(self.workers).mailbox(MAILBOX);
        let pool = pool.ordered_by(|message: &Message| message.key);
        let pool = stage.block_on(pool.spawn())??;
        let producer = |index| {
            let (to, keys, share) =
                (pool.address(), self.keys.clone(), share(index, self.messages));
            async move {
                for seq in share {
                    to.send(Message::new(seq, keys.of(seq))).await?;
                }
                Ok(())
            }
        };
        let took = stage.time((0..PRODUCERS).map(producer).collect(), &counters, self.messages)?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        stage.until_handled(&counters, self.messages)?;
        Ok(took)
    }
}
