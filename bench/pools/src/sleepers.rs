//! Workload C: latency where a few messages sleep. With keys, drawn by Zipf's law, the baseline is
//! what people write by hand, a channel and task for each worker, chosen by the key's hash: a
//! message that sleeps holds up all keys that share its task, and one of a frequent key those of
//! every rare key beside it. Without keys the baseline deals messages out in turn.
//!
//! What is judged are messages that need not wait: they do not sleep, and their keys are rare
//! enough not to meet themselves.

use std::{convert::Infallible, hash::BuildHasher, sync::Arc, time::Duration};

use foldhash::fast::FixedState;
use greenroom::prelude::*;
use tokio::sync::mpsc::{self, Sender};

use crate::{
    Failure,
    arrivals::{Arrival, SLEEP, Schedule, Sheet},
    channels::MAILBOX,
    keyed,
    keys::{self, Keys},
    message::{Counter, Counters},
    rounds::{Figures, Side},
    stage::{PRODUCERS, Stage, Threads},
};

/// Keys from this rank on are cold.
const COLD_FROM_RANK: u64 = 1_000;
const UNKEYED_WORKERS: usize = 16;

#[derive(Clone)]
pub struct Sleepers {
    pub workers: usize,
    pub mailbox: usize,
    pub senders: u64,
    pub order: Order,
}

#[derive(Clone)]
pub enum Order {
    None,
    /// By these keys, which are numbered by their rank, from 0 on. Judged are
    /// those from this rank on.
    Keys(Keys, u64),
}

impl Sleepers {
    /// 256 workers, ordered by keys of which some are frequent.
    pub fn keyed() -> Self {
        let order = Order::Keys(keys::zipf(), COLD_FROM_RANK);
        Self { workers: keyed::WORKERS, mailbox: MAILBOX, senders: PRODUCERS, order }
    }

    /// 16 workers, no order.
    pub fn unkeyed() -> Self {
        let (workers, order) = (UNKEYED_WORKERS, Order::None);
        Self { workers, mailbox: MAILBOX, senders: PRODUCERS, order }
    }

    fn keys(&self) -> Keys {
        match &self.order {
            Order::Keys(keys, _) => keys.clone(),
            Order::None => Keys::Distinct { first: 0 },
        }
    }

    fn is_ordered(&self) -> bool {
        matches!(self.order, Order::Keys(..))
    }

    /// A message that has no reason to wait.
    fn is_judged(&self, arrival: &Arrival) -> bool {
        let rare = match self.order {
            Order::None => true,
            Order::Keys(_, from_rank) => arrival.key + 1 >= from_rank,
        };
        !arrival.sleeps && rare
    }

    /// Draws what is sent; what is returned plays it to one side.
    pub fn prepare(
        self,
        messages: u64,
        threads: Threads,
    ) -> impl FnMut(Side) -> Result<Figures, Failure> {
        let schedule = Schedule::draw(messages, &self.keys(), self.senders);
        move |side| {
            let (stage, counters) = (Stage::new(threads)?, Counters::new(self.workers));
            let sheet = match side {
                Side::Baseline => self.baseline(&schedule, &stage, &counters)?,
                Side::Greenroom => self.greenroom(&schedule, &stage, &counters)?,
            };
            Ok(self.figures(&schedule, &sheet))
        }
    }

    fn baseline(
        &self,
        schedule: &Schedule,
        stage: &Stage,
        counters: &Counters,
    ) -> Result<Arc<Sheet>, Failure> {
        let sheet = Sheet::new(schedule.total());
        let tasks: Vec<_> = (0..self.workers)
            .map(|index| task(stage, self.mailbox, Handler::new(&sheet, counters.of(index))))
            .collect::<Result<_, _>>()?;
        let sender = |index: u64| {
            let (tasks, hasher) = (tasks.clone(), FixedState::default());
            let mut next = tasks.len() * index as usize / self.senders as usize;
            async move |arrival: Arrival| {
                next += 1;
                let place = match self.is_ordered() {
                    true => hasher.hash_one(arrival.key) as usize,
                    false => next,
                };
                Ok(tasks[place % tasks.len()].send(arrival).await?)
            }
        };
        schedule.play(stage, &sheet, counters, (0..self.senders).map(sender).collect())?;
        Ok(sheet)
    }

    fn greenroom(
        &self,
        schedule: &Schedule,
        stage: &Stage,
        counters: &Counters,
    ) -> Result<Arc<Sheet>, Failure> {
        let sheet = Sheet::new(schedule.total());
        let (of, on) = (counters.clone(), sheet.clone());
        let pool = Pool::new(move |slot| Handler::new(&on, of.of(slot)));
        let pool = pool.quick_factory().workers(self.workers).mailbox(self.mailbox);
        let pool = match self.is_ordered() {
            true => stage.block_on(pool.ordered_by(|of: &Arrival| of.key).spawn())??,
            false => stage.block_on(pool.spawn())??,
        };
        let sender = |_| {
            let to = pool.address();
            async move |arrival: Arrival| Ok(to.send(arrival).await?)
        };
        schedule.play(stage, &sheet, counters, (0..self.senders).map(sender).collect())?;
        stage.block_on(pool.stop(Stop::within(Duration::from_secs(5))))?;
        stage.until_handled(counters, schedule.total())?;
        Ok(sheet)
    }

    fn figures(&self, schedule: &Schedule, sheet: &Sheet) -> Figures {
        let judged = sheet.times(schedule, |arrival| self.is_judged(arrival));
        let all = sheet.times(schedule, |_| true);
        let sent = sheet.lateness(schedule);
        let also = vec![
            ("p50", judged.percentile(0.5)),
            ("p99.9", judged.percentile(0.999)),
            ("all p50", all.percentile(0.5)),
            ("all p99", all.percentile(0.99)),
            ("all p99.9", all.percentile(0.999)),
            ("reached by its sender p50", sent.percentile(0.5)),
            ("p99", sent.percentile(0.99)),
        ];
        Figures { value: judged.percentile(0.99), also }
    }
}

/// The same on either side.
struct Handler {
    sheet: Arc<Sheet>,
    counter: Arc<Counter>,
}

impl Handler {
    fn new(sheet: &Arc<Sheet>, counter: Arc<Counter>) -> Self {
        Self { sheet: sheet.clone(), counter }
    }

    async fn take(&self, arrival: &Arrival) {
        if arrival.sleeps {
            tokio::time::sleep(SLEEP).await;
        }
        self.sheet.handled(arrival);
        self.counter.add();
    }
}

impl Actor for Handler {
    type Message = Arrival;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, arrival: Arrival, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.take(&arrival).await;
        Ok(())
    }
}

fn task(stage: &Stage, mailbox: usize, handler: Handler) -> Result<Sender<Arrival>, Failure> {
    let (sender, mut inbox) = mpsc::channel(mailbox);
    stage.spawn(async move {
        while let Some(arrival) = inbox.recv().await {
            handler.take(&arrival).await;
        }
    })?;
    Ok(sender)
}
