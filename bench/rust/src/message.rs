//! What is sent, and how it is counted.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What can be sent to a worker.
pub trait Payload: Send + 'static {
    /// Messages of one key are handled in order, where a system knows of such a thing.
    fn key(&self) -> u64;
}

/// 48 bytes, as in all rows but that of memory.
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

    /// Looks at the whole of it, as a handler would that needs it.
    pub fn read(&self) {
        std::hint::black_box(self.pad[3]);
    }
}

impl Payload for Message {
    fn key(&self) -> u64 {
        self.key
    }
}

/// Messages handled by one worker. It has one writer and a cache line (and its
/// prefetched neighbour) of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
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
