//! What a NATS output is told.

use std::time::Duration;

use greenroom::Backoff;

use crate::{kinds::NatsSinkMode, subject::NatsSubject};

/// Of the publishes of one connection, the client has so many under way at most.
const MOST_CONCURRENCY: usize = 4_096;

/// Where to publish, and how.
#[derive(Debug, Clone)]
pub struct NatsSinkOptions {
    /// To which subject.
    pub subject: NatsSubject,
    /// How an event is written. Default: binary.
    pub mode: NatsSinkMode,
    /// Publishes under way at once, of one line never more than one: from 1 to 4,096. As many as
    /// the server stores while one answer is on its way. Default: 1,000.
    pub concurrency: usize,
    /// How long an event waits after its publish has failed of what may pass. Default: 100 ms to
    /// 10 s.
    pub backoff: Backoff,
    /// How long a paused sink waits before it probes. Default: 1 s to 60 s.
    pub probe: Backoff,
}

impl NatsSinkOptions {
    /// To this subject, in binary mode.
    pub fn new(subject: NatsSubject) -> Self {
        Self {
            subject,
            mode: NatsSinkMode::Binary,
            concurrency: 1_000,
            backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(10)),
            probe: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
        }
    }

    /// # Errors
    /// The option that cannot be used.
    pub(super) fn check(&self) -> Result<(), String> {
        if (1..=MOST_CONCURRENCY).contains(&self.concurrency) {
            return Ok(());
        }
        Err(format!("`concurrency` is {}; it is from 1 to {MOST_CONCURRENCY}", self.concurrency))
    }
}
