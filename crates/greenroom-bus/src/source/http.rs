//! Events that are posted over HTTP, and durable before they are answered (B02).
//!
//! ```text
//!                ┌─ Intake ──────────────────────────────────────────────┐
//! POST /events ──▶ place ──▶ who? ──▶ body ──▶ events ──▶ EventLog::append ──▶ 202
//!                │ 1 of n    401      413      400         429, 503      │      │ durable
//!                └───────────────────────────────────────────────────────┘      ▼
//!                                       engine ◀── HttpSource ◀── source of the log
//! ```
//!
//! The two halves meet only in the log: posted events are on disk before the sender is answered,
//! and the engine reads them from there at its own pace. So a full pool, a stuck handler or a
//! paused input block no sender before the log is full.
//!
//! The memory that clients can occupy is bounded: [`connections`](HttpSettings::connections), each
//! with headers of at most 64 KiB, and all bodies together [`bodies`](HttpSettings::bodies),
//! counted as they come in. Each step has a time limit, and a connection that waits for its client
//! is replaced by a new one when needed.
//!
//! The settings are behind one pointer, which [`Intake::reconfigure`] replaces: each request uses
//! those that applied when it came.

mod access;
mod answer;
mod answers;
mod body;
#[doc(hidden)]
pub mod fuzzed;
mod guard;
mod intake;
mod kind;
mod message;
mod options;
mod requests;
mod serve;
mod settings;
mod shared;
mod tls;
mod webhook;

use std::sync::Arc;

use super::{Committer, Pulling, Receipts, Source, Taken};
use crate::source::log::LogSource;

pub use self::{
    access::{Access, BadAccess, Encoding, Signature, SignedTime},
    intake::{Intake, listen},
    kind::INPUT,
    message::{BadMessage, MEDIA_TYPES, Message, Reading, read},
    options::{HttpInput, RepeatsConfig, RetentionConfig, ServerTlsConfig, WebhookConfig},
    settings::HttpSettings,
    tls::ServerTls,
    webhook::Webhook,
};

/// Reads posted events from the log in which they were stored. While it exists, events are
/// accepted; when it is dropped, as by an engine that drains, it closes the [`Intake`].
pub struct HttpSource {
    intake: Arc<Intake>,
    log: LogSource,
}

impl HttpSource {
    /// Events posted to `intake`, which is opened by the first pull. `log` reads the log that the
    /// intake appends to.
    pub fn new(intake: Arc<Intake>, log: LogSource) -> Self {
        Self { intake, log }
    }
}

impl Drop for HttpSource {
    fn drop(&mut self) {
        self.intake.close();
    }
}

impl Source for HttpSource {
    fn describe(&self) -> String {
        self.intake.describe().to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        self.intake.open();
        self.log.pull(into)
    }

    fn replayable(&self) -> bool {
        self.log.replayable()
    }

    fn committer(&mut self) -> Option<Arc<dyn Committer>> {
        self.log.committer()
    }

    fn receipts(&self) -> Option<Arc<dyn Receipts>> {
        self.log.receipts()
    }
}

#[cfg(test)]
mod tests;
