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
//! **Order.** Up to [`concurrency`](NatsSinkOptions::concurrency) publishes are under way. Of the
//! events of one [line](greenroom_bus::sink::Outgoing::line), the next is published once the server
//! has stored the one before it, so they stand in their stream in order, through retries too.
//!
//! **Repeats.** A publish without an answer may have taken effect, and is made again with the same
//! `Nats-Msg-Id`: the event's source, its id and the subject, none of which a restart changes. The
//! server stores one of the two, if they come within the stream's `duplicate_window`, which is two
//! minutes unless the stream says otherwise. Two different events with the same source and id are
//! one by the rules of CloudEvents, and so for the server.
//!
//! **Refusals.** A message that is larger than the server or the stream takes is **rejected**, and
//! so is an event of which the template makes no subject. What an operator has to correct
//! **pauses** the output: a stream that is missing or sealed, a subject that this user may not
//! publish to. An event of a template is rejected for a subject that no stream takes, if a stream
//! takes others of that template.
//!
//! **Bounds.** At most 16,384 events and 32 MiB are accepted and not settled. An event that is
//! larger passes alone.

mod attempt;
mod dead_letters;
mod delivery;
mod driver;
mod lines;
mod message;
mod options;
mod refusal;
mod shared;
mod subject;

use std::{fmt, sync::Arc};

use greenroom_bus::{
    BoxFuture,
    sink::{Outgoing, Sink, SinkError, Trouble},
};
use tokio::{
    sync::{OwnedSemaphorePermit, TryAcquireError},
    task::AbortHandle,
};

pub use self::{
    dead_letters::NatsDeadLetters,
    options::{NatsSinkMode, NatsSinkOptions},
    subject::{BadSubject, NatsSubject},
};
use self::{lines::Waiting, message::Message, shared::Shared};
use crate::{connection::Connection, server::NatsServer};

/// Publishes each event to a stream.
pub struct NatsSink {
    shared: Arc<Shared>,
    driver: AbortHandle,
}

impl NatsSink {
    /// Connects. Events are published on the runtime that this is called on. The stream need not
    /// exist yet: the sink pauses until it does.
    ///
    /// # Errors
    /// An option cannot be used, no server answers in the time that `server` gives, or it refuses
    /// the credentials.
    ///
    /// # Cancel safety
    /// A dropped future has published nothing.
    pub async fn open(server: &NatsServer, options: NatsSinkOptions) -> Result<Self, SinkError> {
        let name = format!("nats:{}", options.subject);
        let failed = |why| SinkError::new(&name, why);
        options.check().map_err(failed)?;
        let connection = Connection::open(server).await.map_err(failed)?;
        let shared = Arc::new(Shared::new(name, connection, options));
        let driver = tokio::spawn(driver::drive(shared.clone())).abort_handle();
        Ok(Self { shared, driver })
    }

    fn push(&self, outgoing: Outgoing, room: OwnedSemaphorePermit) {
        // By the worker that handled the event, and not by the one driver.
        let message = Message::of(&outgoing.event, &self.shared.options);
        let Outgoing { line, ack, .. } = outgoing;
        self.shared.push(Waiting::new(message, line, ack, Some(room)));
    }
}

impl Drop for NatsSink {
    /// What is not settled is refused.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Sink for NatsSink {
    fn describe(&self) -> String {
        self.shared.name.clone()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        let permits = shared::room_of(&outgoing.event);
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
            let permits = shared::room_of(&outgoing.event);
            if let Ok(room) = self.shared.room.clone().acquire_many_owned(permits).await {
                self.push(outgoing, room);
            }
        })
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.shared.finish();
        Box::pin(self.shared.finished())
    }

    fn failure(&self) -> Option<SinkError> {
        self.shared.failure()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<Trouble> {
        self.shared.trouble()
    }

    fn unanswered(&self) -> u64 {
        self.shared.unanswered()
    }

    fn resume(&self) -> bool {
        self.shared.resume()
    }
}

impl fmt::Debug for NatsSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsSink").field("name", &self.shared.name).finish_non_exhaustive()
    }
}
