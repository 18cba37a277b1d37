//! Several pools with one sender, which serves them in turn: what many pools beside each other
//! cost. The baseline is as many groups of channels and tasks.

use std::time::Duration;

use greenroom::{Pool, Stop};

use crate::{
    Failure,
    channels::{self, MAILBOX},
    message::{Counters, Message, Worker},
    rounds::{Figures, Side},
    stage::{Stage, Threads},
    work::Work,
};

/// Of each pool.
pub const WORKERS: usize = 4;

#[derive(Clone, Copy)]
pub struct Several {
    pub pools: usize,
    pub messages: u64,
}

impl Several {
    /// Millions a second.
    pub fn run(self, side: Side) -> Result<Figures, Failure> {
        let stage = Stage::new(Threads::Two)?;
        let counters = Counters::new(self.pools * WORKERS);
        let took = match side {
            Side::Baseline => self.baseline(&stage, &counters),
            Side::Greenroom => self.greenroom(&stage, &counters),
        }?;
        Ok(Figures::from(self.messages as f64 / took.as_nanos() as f64 * 1e3))
    }

    /// A channel for each worker of each group. In turn over the groups, and in each
    /// of them over its workers.
    fn baseline(self, stage: &Stage, counters: &Counters) -> Result<Duration, Failure> {
        let senders = channels::spawn(stage, counters, self.pools * WORKERS, MAILBOX, Work::NONE)?;
        let sender = async move {
            for seq in 0..self.messages {
                let (group, turn) = (seq as usize % self.pools, seq as usize / self.pools);
                let worker = group * WORKERS + turn % WORKERS;
                senders[worker].send(Message::new(seq, seq)).await?;
            }
            Ok(())
        };
        stage.time(vec![sender], counters, self.messages)
    }

    fn greenroom(self, stage: &Stage, counters: &Counters) -> Result<Duration, Failure> {
        let spawn = |index: usize| {
            let of = counters.clone();
            let worker = move |slot| Worker::new(of.of(index * WORKERS + slot), Work::NONE);
            let pool = Pool::new(worker).quick_factory().workers(WORKERS).mailbox(MAILBOX);
            Ok::<_, Failure>(stage.block_on(pool.spawn())??)
        };
        let pools = (0..self.pools).map(spawn).collect::<Result<Vec<_>, _>>()?;
        let to: Vec<_> = pools.iter().map(Pool::address).collect();
        let sender = async move {
            for seq in 0..self.messages {
                to[seq as usize % to.len()].send(Message::new(seq, seq)).await?;
            }
            Ok(())
        };
        let took = stage.time(vec![sender], counters, self.messages)?;
        for pool in pools {
            stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        }
        stage.until_handled(counters, self.messages)?;
        Ok(took)
    }
}
