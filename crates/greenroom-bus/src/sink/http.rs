//! Events to a URL, as CloudEvents over HTTP (B06).
//!
//! ```text
//! accept ──room──▶ queue ──request──▶ target ── 2xx ──▶ confirmed
//!            ▲       ▲                  │
//!            │       └──────────────────┼─ 503, no answer, ...: again after a backoff, in its place
//!            └ given back               ├─ 401, a certificate: paused, and probed until an operator has corrected it
//!              once settled             └─ another 4xx: rejected for good
//! ```
//!
//! What follows from an answer is in the [`StatusMap`](crate::http::StatusMap) of the `http`
//! handler. `park` has no meaning here and counts as `reject`. Events that a response carries are
//! not read.
//!
//! **Order.** Up to [`concurrency`](HttpSinkConfig::concurrency) requests are under way. Of the
//! events of one [line](super::Outgoing::line), the next is sent once the one before it is settled,
//! so they arrive in order, through retries too. An event that waits to be sent again takes part in
//! no request, so others go on. With a concurrency of 1, all events arrive as they were accepted,
//! and all wait for the one that is sent again.
//!
//! **Batches.** One that fails for now is sent again as it was. From the third time on it is sent
//! in halves, so that in the end what one event fails of holds up no other. One that is rejected is
//! sent again event by event.
//!
//! **Repeats.** After a timeout or a lost connection the target may have had the event. It gets it
//! again, with the same `idempotency-key`: the event's source and id, which a restart does not
//! change. A batch has none, because each event in it names its source and id.
//!
//! **Bounds.** At most 1,024 events and 16 MiB are accepted and not settled. An event that is
//! larger passes alone.

mod config;
mod delivery;
mod driver;
mod queue;
mod shared;
mod waiting;

use std::sync::Arc;

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, TryAcquireError},
    task::AbortHandle,
};

pub use self::config::{Batching, HttpSinkConfig, HttpSinkMode};
use self::shared::Shared;
use super::{Outgoing, Sink, SinkError, Trouble};
use crate::BoxFuture;

/// Delivers each event to a URL.
pub struct HttpSink {
    shared: Arc<Shared>,
    driver: AbortHandle,
}

impl HttpSink {
    /// A sink that delivers to `config.target`. Connects to nothing yet; its requests run on the
    /// runtime that this is called on.
    ///
    /// # Errors
    /// The URL or a header cannot be used, a limit is 0, TLS cannot be set up, or there is no
    /// runtime.
    pub fn open(config: HttpSinkConfig) -> Result<Self, SinkError> {
        let runtime = Handle::try_current()
            .map_err(|_| SinkError::new("http", "make it on a tokio runtime: it needs one"))?;
        let shared = Shared::new(config).map_err(|why| SinkError::new("http", why))?;
        let shared = Arc::new(shared);
        let driver = runtime.spawn(driver::drive(shared.clone())).abort_handle();
        Ok(Self { shared, driver })
    }

    /// Delivers by another configuration from the next request on, what was accepted before
    /// included; one that is [paused](Trouble::paused) tries at once. False where it is the same as
    /// before.
    ///
    /// # Errors
    /// As [`open`](Self::open). Nothing has changed then.
    pub fn reconfigure(&self, config: HttpSinkConfig) -> Result<bool, SinkError> {
        let changed = self.shared.reconfigure(config);
        changed.map_err(|why| SinkError::new(self.describe(), why))
    }

    fn push(&self, outgoing: Outgoing, room: OwnedSemaphorePermit) {
        self.shared.push(outgoing, room);
    }
}

impl Drop for HttpSink {
    /// What is not settled is refused.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Sink for HttpSink {
    fn describe(&self) -> String {
        self.shared.settings().connection.target.shown.clone()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let permits = shared::room_of(&outgoing);
        match self.shared.room.clone().try_acquire_many_owned(permits) {
            Ok(room) => {
                self.push(outgoing, room);
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => Err(outgoing),
            // Dropped, it is refused.
            Err(TryAcquireError::Closed) => Ok(()),
        }
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let permits = shared::room_of(&outgoing);
            if let Ok(room) = self.shared.room.clone().acquire_many_owned(permits).await {
                self.push(outgoing, room);
            }
        })
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.shared.finish();
        Box::pin(async move {
            // The sender lives in `shared`, so the wait cannot fail.
            let _ = self.shared.ended.subscribe().wait_for(|ended| *ended).await;
            self.failure().map_or(Ok(()), Err)
        })
    }

    fn failure(&self) -> Option<SinkError> {
        self.shared.failure.lock().clone()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<Trouble> {
        self.shared.gate.trouble()
    }

    fn resume(&self) -> bool {
        self.shared.resume()
    }

    fn unanswered(&self) -> u64 {
        self.shared.unanswered()
    }
}

#[cfg(test)]
mod tests;
