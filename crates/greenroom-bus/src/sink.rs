//! The contract of a sink: it accepts events in order, stores them, and only then confirms them.

pub mod file;
pub mod http;
mod kind;
pub(crate) mod line_writer;
pub(crate) mod lock;
pub mod remote;
pub(crate) mod rotate;
mod stand_in;
pub(crate) mod storage;

use std::time::Duration;

use crate::{BoxFuture, event::Event, name::Name, settlement::Ack};

pub use kind::{OpenOutput, OutputKind, output};
pub use rotate::{Rotate, is_rotated_name, rotated_name};

/// Where events go.
pub trait Sink: Send + Sync + 'static {
    /// Its name in reports and logs, for example `file:done.ndjson`.
    fn describe(&self) -> String;

    /// Takes an event without waiting, or gives it back because there is no room. Events are stored
    /// in the order in which they were accepted. Where the sink [is remote](Self::is_remote), those
    /// of one [line](Outgoing::line) are.
    ///
    /// # Errors
    /// The event, untouched, when the sink is full.
    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing>;

    /// Waits for room, then takes the event.
    ///
    /// # Cancel safety
    /// A dropped future has dropped the event, whose [`Ack`] refuses it. An engine drops it if the
    /// sink is removed during the wait, and hands the event to another one.
    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()>;

    /// Stores and confirms all that was accepted. Nothing may be accepted afterwards.
    ///
    /// # Errors
    /// Some events could not be stored (they were refused), in words for an operator.
    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Why the sink cannot store any more, once that has happened: the
    /// engine then stops its inputs.
    fn failure(&self) -> Option<SinkError>;

    /// Whether it delivers to another party. Then it may [reject](Ack::reject) an event for good,
    /// and may have several under way: the engine keeps the data that a dead letter needs, and
    /// names the [line](Outgoing::line) of each event. Temporary failures are retried, in order.
    fn is_remote(&self) -> bool {
        false
    }

    /// Why it makes no progress at present. Nothing is lost: accepted events wait, and once the
    /// sink has no room, workers wait too.
    fn trouble(&self) -> Option<Trouble> {
        None
    }

    /// How often it sent an event again although the first time may have taken effect: after a
    /// timeout, or a lost connection.
    fn unanswered(&self) -> u64 {
        0
    }

    /// An operator declares the cause that [paused](Trouble::paused) it as corrected: it tries
    /// again at once. Returns false if it is not paused.
    fn resume(&self) -> bool {
        false
    }

    /// Checks whether its target file is still in place, and reopens it if not, after a log
    /// rotation. Never waits; the result is reported as a failure or a remark.
    fn reopen(&self) {}

    /// A remark about its target that an operator should know, in words: for example that it was
    /// rotated.
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
    /// For a sink that [is remote](Sink::is_remote): the line of its input, as a number. Events of
    /// one line are ordered among themselves; `None` for an event without order.
    pub line: Option<u64>,
    /// For a sink that is remote: the [fence](crate::handler::Attempt::fence) of its input's
    /// assignment.
    pub fence: Option<u64>,
    /// Confirmed by the sink when the event is stored; dropped, it refuses.
    /// [Rejected](Ack::reject), it says that it never will be.
    pub ack: Ack,
}

/// Why a sink does not get on for now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// True if an operator has to correct it, such as a credential that its target refuses: it
    /// probes now and then. False if it is retried because it may pass by itself.
    pub paused: bool,
    /// For how long.
    pub lasted: Duration,
    /// For how long it has stored and rejected nothing; never longer than it has lasted. This ends
    /// a run: a sink that makes progress with other events is waited for.
    pub idle: Duration,
    /// The last error, in words.
    pub error: String,
}

impl Trouble {
    /// The trouble of a sink that waits for an operator to correct it.
    pub fn paused(lasted: Duration, error: impl Into<String>) -> Self {
        Self { paused: true, lasted, idle: lasted, error: error.into() }
    }

    /// The trouble of a sink that retries.
    pub fn failing(lasted: Duration, error: impl Into<String>) -> Self {
        Self { paused: false, lasted, idle: lasted, error: error.into() }
    }

    /// The trouble of a sink that stored or rejected something this long ago.
    #[must_use]
    pub fn idle_for(self, idle: Duration) -> Self {
        Self { idle: idle.min(self.lasted), ..self }
    }
}

/// A sink that cannot store.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{sink}: {reason}")]
#[non_exhaustive]
pub struct SinkError {
    /// [`Sink::describe`].
    pub sink: String,
    /// The error, and the next step.
    pub reason: String,
}

impl SinkError {
    /// An error of the sink with this description.
    pub fn new(sink: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { sink: sink.into(), reason: reason.into() }
    }
}
