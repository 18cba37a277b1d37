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

mod config;
mod kind;
mod options;
mod target;

use self::target::HttpTarget;
pub use self::{
    config::{HttpSinkConfig, HttpSinkMode},
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

/// Delivers each event to a URL. When dropped, it refuses all unsettled events.
pub struct HttpSink {
    requests: Requests<HttpTarget>,
}

impl HttpSink {
    /// A sink that delivers to `config.target`. Connects to nothing yet; its requests run on the
    /// runtime that this is called on.
    ///
    /// # Errors
    /// The URL or a header cannot be used, a limit is 0, TLS cannot be set up, or there is no
    /// runtime.
    pub fn open(config: HttpSinkConfig) -> Result<Self, SinkError> {
        Self::begin(config, None)
    }

    /// Like [`open`](Self::open), with a stand-in in place of the target.
    ///
    /// # Errors
    /// As there.
    pub fn standing_in(config: HttpSinkConfig, stand_in: StandIn) -> Result<Self, SinkError> {
        Self::begin(config, Some(stand_in))
    }

    fn begin(config: HttpSinkConfig, stand_in: Option<StandIn>) -> Result<Self, SinkError> {
        let target =
            HttpTarget::new(config, stand_in).map_err(|why| SinkError::new("http", why))?;
        let requests = Requests::begin(target, SinkRoom::new(ROOM_BYTES, ROOM_EVENTS))?;
        Ok(Self { requests })
    }

    /// Uses another configuration from the next request on, also for events accepted before; a
    /// [paused](super::Trouble::paused) sink tries at once. Returns false if the configuration is
    /// the same.
    ///
    /// # Errors
    /// Like [`open`](Self::open). Nothing has changed then.
    pub fn reconfigure(&self, config: HttpSinkConfig) -> Result<bool, SinkError> {
        let changed = self.requests.remote().reconfigure(config);
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
