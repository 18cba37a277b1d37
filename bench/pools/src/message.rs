//! What is sent, and what handles it on either side.

use std::{
    convert::Infallible,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use greenroom::prelude::*;

use crate::work::Work;

/// 48 bytes, as in all rows but the memory rows.
#[derive(Clone, Copy)]
pub struct Message {
    pub seq: u64,
    pub key: u64,
    pad: [u64; 4],
}

const _: () = assert!(size_of::<Message>() == 48);

impl Message {
    pub fn new(seq: u64, key: u64) -> Self {
        Self { seq, key, pad: [seq; 4] }
    }
}

/// Messages handled by one worker. It has one writer and a cache line (and its prefetched
/// neighbour) of its own, so that counting costs either side next to nothing.
#[derive(Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// As `add`, where it has several writers.
    pub fn add_among_others(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

/// One counter for each worker.
#[derive(Clone)]
pub struct Counters(Arc<[Arc<Counter>]>);

impl Counters {
    pub fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Arc::default()).collect())
    }

    pub fn of(&self, worker: usize) -> Arc<Counter> {
        self.0[worker].clone()
    }

    pub fn sum(&self) -> u64 {
        self.0.iter().map(|counter| counter.0.load(Ordering::Acquire)).sum()
    }
}

/// The same work on either side: as an actor of a pool, and inside a hand-written task.
pub struct Worker {
    counter: Arc<Counter>,
    work: Work,
}

impl Worker {
    pub fn new(counter: Arc<Counter>, work: Work) -> Self {
        Self { counter, work }
    }

    pub fn take(&self, message: &Message) -> u64 {
        self.work.run(message.seq);
        black_box(message.pad[3]);
        self.counter.add();
        message.seq + 1
    }
}

impl Actor for Worker {
    type Message = Message;
    type Reply = u64;
    type Error = Infallible;

    async fn handle(
        &mut self,
        message: Message,
        _cx: &mut Context<Self>,
    ) -> Result<u64, Infallible> {
        Ok(self.take(&message))
    }
}
