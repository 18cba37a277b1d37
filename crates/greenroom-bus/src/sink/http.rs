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
//! The consequence of an answer is in the [`StatusMap`](crate::http::StatusMap) of the `http`
//! handler. `park` has no meaning here and counts as `reject`. Events in a response are not read.
//!
//! **Order** and **batches** are those of [`Requests`].
//!
//! **Repeats.** After a timeout or a lost connection the target may have had the event. It gets it
//! again, with the same `idempotency-key`: the event's source and id, which a restart does not
//! change. A batch has none, because each event in it names its source and id.
//!
//! **Bounds.** At most 1,024 events and 16 MiB are accepted and not settled. An event that is
//! larger passes alone.

mod kind;
mod options;
mod target;

use std::time::Duration;

use greenroom::Backoff;

use self::target::HttpTarget;
pub use self::{
    kind::OUTPUT,
    options::{HttpOutput, HttpOutputMode},
};
pub use super::remote::Batching;
use super::{
    SinkError,
    remote::{RemoteDriver, RemoteSink, Requests, SinkRoom},
};
use crate::stand_in::StandIn;

/// The limit on the bytes of accepted, unsettled events.
const ROOM_BYTES: usize = 16 * 1024 * 1024;

/// And at most this many events.
const ROOM_EVENTS: usize = 1_024;

/// How long a paused sink waits before it probes.
const PROBE: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// Delivers each event to a URL. When dropped, it refuses all unsettled events.
pub struct HttpSink {
    requests: Requests<HttpTarget>,
}

impl HttpSink {
    /// A sink that delivers to `output.url`. Files of `tls` are read here. Connects to nothing yet;
    /// its requests run on the runtime that this is called on.
    ///
    /// # Errors
    /// The URL, a header or a row of `status` cannot be used, a limit is 0, TLS cannot be set up,
    /// or there is no runtime.
    pub fn open(output: &HttpOutput) -> Result<Self, SinkError> {
        Self::begin(output, None, PROBE)
    }

    /// Like [`open`](Self::open), with a stand-in in place of the target. No file is read.
    ///
    /// # Errors
    /// As there.
    pub fn standing_in(output: &HttpOutput, stand_in: StandIn) -> Result<Self, SinkError> {
        let output = HttpOutput { tls: None, ..output.clone() };
        Self::begin(&output, Some(stand_in), PROBE)
    }

    fn begin(
        output: &HttpOutput,
        stand_in: Option<StandIn>,
        probe: Backoff,
    ) -> Result<Self, SinkError> {
        let target =
            HttpTarget::new(output, stand_in, probe).map_err(|why| SinkError::new("http", why))?;
        let requests = Requests::begin(target, SinkRoom::new(ROOM_BYTES, ROOM_EVENTS))?;
        Ok(Self { requests })
    }

    /// Uses other options from the next request on, also for events accepted before; a
    /// [paused](super::Trouble::paused) sink tries at once. Returns false if the options and their
    /// files are the same.
    ///
    /// # Errors
    /// Like [`open`](Self::open). Nothing has changed then.
    pub fn reconfigure(&self, output: &HttpOutput) -> Result<bool, SinkError> {
        let changed = self.requests.remote().reconfigure(output);
        let changed = changed.map_err(|why| SinkError::new(self.requests.describe(), why))?;
        if changed {
            self.requests.begin_anew();
        }
        Ok(changed)
    }
}

impl RemoteSink for HttpSink {
    type Driver = Requests<HttpTarget>;

    fn driver(&self) -> &Self::Driver {
        &self.requests
    }
}

#[cfg(test)]
mod tests;
