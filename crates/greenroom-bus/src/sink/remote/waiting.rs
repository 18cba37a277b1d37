//! An event that was accepted and is not settled.

use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use crate::settlement::Ack;

/// An event that was accepted. It gives its room back when it is dropped.
#[derive(Debug)]
pub struct WaitingEvent<K> {
    /// Its kept part.
    pub kept: K,
    /// The attempt that is made; 1 for the first.
    pub attempt: u32,
    pub(super) line: Option<u64>,
    pub(super) ack: Ack,
    pub(super) bytes: usize,
    /// Its place in the order of acceptance. It gets one when it is pushed.
    pub(super) number: u64,
    /// It waits for its turn since then: since it was accepted, or may be sent again.
    pub(super) due: Instant,
    /// How many attempts have failed for now.
    pub(super) failures: u32,
    /// How many requests the target had settled when the last of them failed.
    pub(super) settled: u64,
    /// It was sent again early, because the target worked again. Only once: if it fails after that,
    /// the cause is a different one.
    pub(super) hurried: bool,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

impl<K> WaitingEvent<K> {
    pub(super) fn new(kept: K, line: Option<u64>, ack: Ack, bytes: usize) -> Self {
        Self {
            kept,
            attempt: 0,
            line,
            ack,
            bytes,
            number: 0,
            due: Instant::now(),
            failures: 0,
            settled: 0,
            hurried: false,
            _room: None,
        }
    }
}
