//! Workload D: a message and its reply. The baseline is a tokio channel to one task for each
//! worker, with a oneshot channel in each message.

use std::time::Duration;

use greenroom::{Pool, Stop};
use tokio::sync::{
    mpsc::{self, Sender},
    oneshot,
};

use crate::{
    Failure,
    channels::MAILBOX,
    message::{Counters, Message, Worker},
    stage::{Stage, Threads},
    work::Work,
};

#[derive(Clone, Copy)]
pub struct Calls {
    pub workers: usize,
    /// Each makes one call after the other.
    pub callers: u64,
    pub calls: u64,
    pub threads: Threads,
}

type Asked = (Message, oneshot::Sender<u64>);

impl Calls {
    fn each(self) -> u64 {
        self.calls / self.callers
    }

    pub fn total(self) -> u64 {
        self.each() * self.callers
    }

    pub fn baseline(self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let senders: Vec<_> = (0..self.workers)
            .map(|index| answering(&stage, Worker::new(counters.of(index), Work::NONE)))
            .collect::<Result<_, _>>()?;
        let caller = |index: u64| {
            let (senders, calls) = (senders.clone(), self.each());
            async move {
                for seq in 0..calls {
                    let (port, reply) = oneshot::channel();
                    let worker = (index + seq) as usize % senders.len();
                    senders[worker].send((Message::new(seq, seq), port)).await?;
                    check(seq, reply.await?)?;
                }
                Ok(())
            }
        };
        stage.time((0..self.callers).map(caller).collect(), &counters, self.total())
    }

    pub fn greenroom(self) -> Result<Duration, Failure> {
        let (stage, counters) = (Stage::new(self.threads)?, Counters::new(self.workers));
        let of = counters.clone();
        let pool = Pool::new(move |slot| Worker::new(of.of(slot), Work::NONE));
        let pool = pool.quick_factory().workers(self.workers).mailbox(MAILBOX);
        let pool = self.threads.paced(pool);
        let pool = stage.block_on(pool.spawn())??;
        let caller = |_| {
            let (to, calls) = (pool.address(), self.each());
            async move {
                for seq in 0..calls {
                    check(seq, to.call(Message::new(seq, seq)).await?)?;
                }
                Ok(())
            }
        };
        let took = stage.time((0..self.callers).map(caller).collect(), &counters, self.total())?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        Ok(took)
    }
}

fn answering(stage: &Stage, worker: Worker) -> Result<Sender<Asked>, Failure> {
    let (sender, mut inbox) = mpsc::channel::<Asked>(MAILBOX);
    stage.spawn(async move {
        while let Some((message, port)) = inbox.recv().await {
            // A caller that is gone needs no reply.
            let _ = port.send(worker.take(&message));
        }
    })?;
    Ok(sender)
}

fn check(seq: u64, reply: u64) -> Result<(), Failure> {
    if reply == seq + 1 {
        return Ok(());
    }
    Err(format!("call {seq} got the reply {reply}").into())
}
