//! The contract of a sink: it accepts events in order, stores them, and only then confirms them.

pub mod file;
pub(crate) mod line_writer;
pub(crate) mod lock;
pub(crate) mod storage;

use crate::{BoxFuture, event::Event, name::Name, settlement::Ack};

/// Where events go.
pub trait Sink: Send + Sync + 'static {
    /// What reports and logs call this sink, for example `file:done.ndjson`.
    fn describe(&self) -> String;

    /// Takes an event without waiting, or gives it back because there is no room.
    /// Events are stored in the order in which they were accepted.
    ///
    /// # Errors
    /// The event, untouched, when the sink is full.
    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing>;

    /// Waits for room, then takes the event.
    ///
    /// # Cancel safety
    /// A dropped future has dropped the event, whose [`Ack`] refuses it.
    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()>;

    /// Stores and confirms all that was accepted. Nothing may be accepted afterwards.
    ///
    /// # Errors
    /// What could not be stored (it was refused), in words for an operator.
    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Why the sink cannot store any more, once that has happened: the engine then stops its inputs.
    fn failure(&self) -> Option<SinkError>;

    /// Looks whether what it writes to is still in its place, and opens it anew where it is not:
    /// after files were rotated. Never waits; what comes of it is told as a failure or a remark.
    fn reopen(&self) {}

    /// What happened to what it writes to that somebody should know, in words: for example that it
    /// was rotated.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// An event on its way out.
#[derive(Debug)]
pub struct Outgoing {
    /// The event.
    pub event: Event,
    /// The pool that handled it.
    pub pool: Name,
    /// The attempt that handled it; 1 for the first.
    pub attempt: u32,
    /// Confirmed by the sink when the event is stored; dropped, it refuses.
    pub ack: Ack,
}

/// A sink that cannot store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{sink}: {reason}")]
#[non_exhaustive]
pub struct SinkError {
    /// [`Sink::describe`].
    pub sink: String,
    /// What happened, and what to do next.
    pub reason: String,
}

impl SinkError {
    /// An error of the sink with this description.
    pub fn new(sink: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { sink: sink.into(), reason: reason.into() }
    }
}
