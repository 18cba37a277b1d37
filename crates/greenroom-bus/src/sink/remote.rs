//! The common part of sinks that deliver to another party: room for accepted events, order of each
//! line, retries, outages, and their end.
//!
//! ```text
//! accept ──room──▶ lines ──request──▶ other side ── stored ──▶ confirmed
//!            ▲       ▲                    │
//!            │       └────────────────────┼─ may pass: again after a backoff, before its line
//!            └ given back                 ├─ an operator has to correct it: paused, and probed
//!              once settled               └─ never: rejected for good
//! ```
//!
//! A sink is a [`RemoteSink`]: it names the [`RemoteDriver`] that carries its events. [`Requests`]
//! is one, for a target that answers each request; the target-specific part is its [`Remote`]. A
//! client that keeps the order itself, such as Kafka's producer, has another driver.

mod delivery;
mod driver;
mod gate;
mod lines;
mod requests;
mod room;
mod shared;
mod target;
mod waiting;

use tokio::sync::OwnedSemaphorePermit;

pub use self::{
    requests::Requests,
    room::SinkRoom,
    target::{Attempted, Batching, Remote, RequestPace, TargetHad},
    waiting::WaitingEvent,
};
use super::{Outgoing, Sink, SinkError, Trouble};
use crate::BoxFuture;

/// A sink that delivers to another party by a driver.
pub trait RemoteSink: Send + Sync + 'static {
    /// The driver that carries its events.
    type Driver: RemoteDriver;

    /// The driver that carries its events.
    fn driver(&self) -> &Self::Driver;
}

/// Carries the events of a [`RemoteSink`]. Its methods correspond to those of the same names of
/// [`Sink`].
pub trait RemoteDriver: Send + Sync + 'static {
    /// The name of the sink in reports and logs.
    fn describe(&self) -> String;

    /// Its room, and how it has ended.
    fn room(&self) -> &SinkRoom;

    /// Takes an event. Its room is given back when the permit is dropped, which is once the event
    /// is settled.
    fn push(&self, outgoing: Outgoing, room: OwnedSemaphorePermit);

    /// Nothing is pushed any more: its room [ends](SinkRoom::end) once all is settled.
    fn finish(&self);

    /// Why it does not get on for now.
    fn trouble(&self) -> Option<Trouble>;

    /// Tries again at once. Returns false if it is not paused.
    fn resume(&self) -> bool;

    /// How many events were sent again that the other side may already have.
    fn unanswered(&self) -> u64 {
        0
    }
}

impl<S: RemoteSink> Sink for S {
    fn describe(&self) -> String {
        self.driver().describe()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        match self.driver().room().try_enter(&outgoing.event) {
            Ok(Some(room)) => self.driver().push(outgoing, room),
            Ok(None) => return Err(outgoing),
            // Dropped, it is refused.
            Err(_) => {}
        }
        Ok(())
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Ok(room) = self.driver().room().enter(&outgoing.event).await {
                self.driver().push(outgoing, room);
            }
        })
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.driver().finish();
        Box::pin(self.driver().room().ended())
    }

    fn failure(&self) -> Option<SinkError> {
        self.driver().room().failure()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn trouble(&self) -> Option<Trouble> {
        self.driver().trouble()
    }

    fn unanswered(&self) -> u64 {
        self.driver().unanswered()
    }

    fn resume(&self) -> bool {
        self.driver().resume()
    }
}

#[cfg(test)]
mod tests;
