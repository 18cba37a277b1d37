//! Where to deliver, and how.

use std::time::Duration;

use greenroom::Backoff;

use crate::{
    http::{StatusMap, TargetConfig},
    sink::remote::{Batching, RequestPace},
};

/// Where to deliver, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSinkConfig {
    /// Where to, and as whom.
    pub target: TargetConfig,
    /// Default: binary.
    pub mode: HttpSinkMode,
    /// Requests under way at once; of the events of one line, never more than one. With 1, events
    /// arrive in the order in which they were accepted. Default: 8; as many as the target handles
    /// well at once.
    pub concurrency: usize,
    /// How long a request waits after it has failed, where the target does not say it
    /// (`Retry-After`). It is tried again until it is settled. Default: 200 ms to 30 s.
    pub backoff: Backoff,
    /// How long a paused sink waits before it probes. Default: 1 s to 60 s.
    pub probe: Backoff,
    /// The consequence of each answer. Default: [`STATUS_MAP`](crate::http::STATUS_MAP).
    pub status: StatusMap,
}

impl Default for HttpSinkConfig {
    fn default() -> Self {
        Self {
            target: TargetConfig::default(),
            mode: HttpSinkMode::default(),
            concurrency: 8,
            backoff: Backoff::new(Duration::from_millis(200), Duration::from_secs(30)),
            probe: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
            status: StatusMap::default(),
        }
    }
}

/// How events are written into requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HttpSinkMode {
    /// An event a request: attributes as headers, data as body.
    #[default]
    Binary,
    /// An event a request: the whole of it as a JSON body.
    Structured,
    /// Several a request, as a JSON array.
    Batch(Batching),
}

impl HttpSinkConfig {
    /// # Errors
    /// The limit that is 0.
    pub(super) fn check(&self) -> Result<(), String> {
        let zero = |name: &str| Err(format!("http: `{name}` is 0; it is at least 1"));
        match self.mode {
            _ if self.concurrency == 0 => zero("concurrency"),
            HttpSinkMode::Batch(batch) if batch.events == 0 => zero("batch.events"),
            HttpSinkMode::Batch(batch) if batch.bytes == 0 => zero("batch.bytes"),
            _ => Ok(()),
        }
    }

    pub(super) fn pace(&self) -> RequestPace {
        let batching = match self.mode {
            HttpSinkMode::Batch(batching) => Some(batching),
            HttpSinkMode::Binary | HttpSinkMode::Structured => None,
        };
        let Self { concurrency, backoff, probe, .. } = *self;
        RequestPace { concurrency, batching, backoff, probe }
    }
}
