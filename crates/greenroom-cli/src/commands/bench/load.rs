//! What is sent, what handles it, and what is counted of both.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom::{Address, PoolEvents, SpawnError, prelude::*};
use greenroom_bus::source::generator::zipf::{Chance, Zipf};

use super::{machine, work::Work};
use crate::{cli::BenchArgs, latencies::Latencies};

/// Keys are drawn before anything runs, so many, and then again from the first on.
const DRAWN: usize = 1 << 20;
/// Tables of latencies: enough for workers on different cores to write without each other.
const TABLES: usize = 16;

/// A message, of 48 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) key: u32,
    pub(super) seq: u64,
    /// When it arrived, from the start; zero where that is not asked.
    pub(super) due: Duration,
    _rest: [u64; 2],
}

impl Message {
    pub(super) fn new(key: u32, seq: u64, due: Duration) -> Self {
        Self { key, seq, due, _rest: [seq; 2] }
    }
}

/// What is measured.
pub(super) struct Load {
    pub(super) workers: usize,
    pub(super) inbox: usize,
    pub(super) senders: usize,
    pub(super) length: Duration,
    pub(super) seed: u64,
    work: Work,
    pub(super) keys: Keys,
}

/// The keys in the order in which they are sent; none where there is no order.
#[derive(Clone)]
pub(super) struct Keys(Option<Arc<[u32]>>);

impl Keys {
    fn draw(keys: u32, exponent: f64, seed: u64) -> Self {
        if keys == 0 {
            return Self(None);
        }
        let (zipf, mut chance) = (Zipf::new(keys, exponent), Chance::new(seed));
        Self(Some((0..DRAWN).map(|_| zipf.draw(&mut chance)).collect()))
    }

    pub(super) fn of(&self, seq: u64) -> u32 {
        self.0.as_ref().map_or(0, |keys| keys[seq as usize % keys.len()])
    }
}

impl Load {
    pub(super) fn new(args: &BenchArgs) -> Self {
        Self {
            workers: args.workers as usize,
            inbox: args.inbox as usize,
            senders: machine::cores(),
            length: args.seconds.0,
            seed: args.seed,
            work: Work::of(args.work),
            keys: Keys::draw(args.keys, args.zipf, args.seed),
        }
    }

    /// A handler whose messages are counted at this place.
    pub(super) fn handler(&self, tally: &Arc<LoadTally>, place: usize) -> BenchHandler {
        BenchHandler { tally: tally.clone(), place, work: self.work }
    }

    /// The pool.
    pub(super) async fn pool(
        &self,
        tally: &Arc<LoadTally>,
    ) -> Result<Pool<BenchHandler>, SpawnError> {
        let (tally, work) = (tally.clone(), self.work);
        let pool = Pool::new(move |place| BenchHandler { tally: tally.clone(), place, work });
        let pool = pool
            .name("bench")
            .pool_events(PoolEvents::off())
            .quick_factory()
            .workers(self.workers)
            .mailbox(self.inbox);
        match self.keys.0 {
            Some(_) => pool.ordered_by(|message: &Message| message.key).spawn().await,
            None => pool.spawn().await,
        }
    }
}

/// A counter with one writer, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

/// What has happened so far.
pub(super) struct LoadTally {
    /// Messages accepted, for each sender.
    pub(super) sent: Box<[Counter]>,
    /// Messages handled, for each worker.
    pub(super) handled: Box<[Counter]>,
    /// From arrival to handled.
    pub(super) latencies: Box<[Latencies]>,
    /// When it began.
    pub(super) started: Instant,
}

impl LoadTally {
    pub(super) fn new(senders: usize, workers: usize) -> Arc<Self> {
        let counters = |count| (0..count).map(|_| Counter::default()).collect();
        Arc::new(Self {
            sent: counters(senders),
            handled: counters(workers),
            latencies: (0..TABLES).map(|_| Latencies::new()).collect(),
            started: Instant::now(),
        })
    }

    pub(super) fn sent(&self) -> u64 {
        sum(&self.sent)
    }

    pub(super) fn handled(&self) -> u64 {
        sum(&self.handled)
    }

    /// Messages accepted and not handled, at about this moment.
    pub(super) fn in_flight(&self) -> u64 {
        // In this order, so that what happens in between makes it less, and
        // never more than there were.
        let sent = self.sent();
        sent.saturating_sub(self.handled())
    }
}

fn sum(counters: &[Counter]) -> u64 {
    counters.iter().map(|counter| counter.0.load(Ordering::Acquire)).sum()
}

/// Does the work: a worker of the pool, or the sender itself.
#[derive(Clone)]
pub(super) struct BenchHandler {
    tally: Arc<LoadTally>,
    place: usize,
    work: Work,
}

impl BenchHandler {
    pub(super) fn take(&self, message: &Message) {
        self.work.run(message.seq);
        if !message.due.is_zero() {
            let took = self.tally.started.elapsed().saturating_sub(message.due);
            self.tally.latencies[self.place % TABLES].record(took);
        }
        self.tally.handled[self.place].add();
    }
}

impl Actor for BenchHandler {
    type Message = Message;
    type Reply = ();
    type Error = Infallible;

    async fn handle(&mut self, message: Message, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.take(&message);
        Ok(())
    }
}

/// Where a sender's messages go.
pub(super) enum To {
    /// Nowhere: the sender does the work.
    Itself(BenchHandler),
    Pool(Address<Message, (), Infallible>),
}

impl To {
    pub(super) async fn send(&self, message: Message) -> Result<(), String> {
        match self {
            Self::Itself(handler) => handler.take(&message),
            Self::Pool(pool) => pool.send(message).await.map_err(|error| error.to_string())?,
        }
        Ok(())
    }
}
