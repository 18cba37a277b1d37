//! Events to the streams of JetStream (N04).
//!
//! ```text
//! accept ──room──▶ lines ──publish──▶ server ── stored ──▶ confirmed
//!            ▲       ▲                  │
//!            │       │                  ├─ no answer, connection lost, stream full: again, before its line
//!            └ given back               ├─ no stream, not allowed: paused, and probed until an operator mends it
//!              once settled             └─ too large, no subject: rejected for good
//! ```
//!
//! **Subject.** A fixed one, or a [template](NatsSubject) with attributes and members of the event:
//! `orders.{subject}.{type}`.
//!
//! **Order.** Up to [`concurrency`](NatsOutput::concurrency) publishes are under way, of one
//! line never more than one ([`Requests`]), so events stand in their stream in order, through
//! retries too.
//!
//! **Repeats.** A publish without an answer may have taken effect, and is repeated with the same
//! `Nats-Msg-Id`: the event's source, its id and the subject, which a restart does not change. The
//! server stores one of the two, if they come within the stream's `duplicate_window`, two minutes
//! by default. Two different events with the same source and id are one by the rules of
//! CloudEvents, and so for the server.
//!
//! **Refusals.** A message that is too large for the server or the stream is **rejected**, and so
//! is an event that the template cannot make a subject of. An error that an operator has to correct
//! **pauses** the output: a stream that is missing or sealed, a subject that this user may not
//! publish to. With a template, an event is rejected if no stream takes its subject but a stream
//! takes others of the template.
//!
//! **Bounds.** At most 16,384 events and 32 MiB are accepted and not settled. An event that is
//! larger passes alone.

mod dead_letters;
mod message;
mod refusal;
mod target;

use std::fmt;

use greenroom_bus::sink::{
    SinkError,
    remote::{RemoteDriver, RemoteSink, Requests, SinkRoom},
};

pub use self::dead_letters::NatsDeadLetters;
use self::target::NatsTarget;
use crate::{connection::Connection, options::NatsOutput};
pub use crate::{
    options::NatsSinkMode,
    subject::{BadSubject, NatsSubject},
};

/// Of the publishes of one connection, the client has so many under way at most.
pub(crate) const MOST_CONCURRENCY: usize = 4_096;

/// The limit on the bytes of accepted, unsettled events.
const ROOM_BYTES: usize = 32 * 1024 * 1024;

/// And at most this many events.
const ROOM_EVENTS: usize = 16_384;

/// Publishes each event to a stream. When dropped, it refuses all unsettled events.
pub struct NatsSink {
    requests: Requests<NatsTarget>,
}

impl NatsSink {
    /// Connects. Events are published on the runtime that this is called on. The stream need not
    /// exist yet: the sink pauses until it does.
    ///
    /// # Errors
    /// An option cannot be used, no server answers in the time that it gives, or it refuses
    /// the credentials.
    ///
    /// # Cancel safety
    /// A dropped future has published nothing.
    pub async fn open(output: NatsOutput) -> Result<Self, SinkError> {
        if !(1..=MOST_CONCURRENCY).contains(&output.concurrency) {
            let why = format!("`concurrency` is from 1 to {MOST_CONCURRENCY}");
            return Err(SinkError::new(format!("nats:{}", output.subject), why));
        }
        Ok(Self { requests: requests(output, false).await? })
    }
}

/// Publishes by these options.
async fn requests(
    output: NatsOutput,
    rejects_nothing: bool,
) -> Result<Requests<NatsTarget>, SinkError> {
    let name = format!("nats:{}", output.subject);
    let connection =
        Connection::open(&output.server()).await.map_err(|why| SinkError::new(&name, why))?;
    let target = NatsTarget { name, connection, output, rejects_nothing };
    Requests::begin(target, SinkRoom::new(ROOM_BYTES, ROOM_EVENTS))
}

impl RemoteSink for NatsSink {
    type Driver = Requests<NatsTarget>;

    fn driver(&self) -> &Self::Driver {
        &self.requests
    }
}

impl fmt::Debug for NatsSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsSink").field("name", &self.requests.describe()).finish_non_exhaustive()
    }
}
