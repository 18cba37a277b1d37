//! The configuration of an engine, apart from its router, and the errors of a build.

use std::time::Duration;

use super::control::change::ChangeError;
use crate::router::RouterError;

/// The treatment of an event that has no handler, or that every matcher refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoHandler {
    /// It becomes a dead letter.
    #[default]
    DeadLetter,
    /// It is acknowledged and counted.
    Ignore,
    /// It is refused.
    Refuse,
}

/// When a handler is taken to be in outage rather than fed bad events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageConfig {
    /// Failed attempts in a row, over at least two events; 20 by default.
    pub failures: u32,
    /// Or failures only, over at least two events, for this long; 10 s by default.
    pub window: Duration,
    /// How long a run whose inputs have ended waits for a handler in outage; for an output that
    /// fails or is paused, from the last event that it stored or rejected; and for a store of dead
    /// letters that cannot give any for a replay; 5 min by default.
    pub limit: Duration,
}

impl Default for OutageConfig {
    fn default() -> Self {
        Self { failures: 20, window: Duration::from_secs(10), limit: Duration::from_secs(300) }
    }
}

/// The events that a stop ([`Control::drain`](super::Control::drain)) waits for. The rest is given
/// back by an input that keeps its positions, so that it is delivered again; for other inputs it is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Finish {
    /// Events that handlers have in hand; for inputs that keep no positions, all events taken.
    #[default]
    ByInput,
    /// Events that handlers have in hand.
    InHand,
    /// All that was taken.
    All,
}

/// An engine that cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is nothing to read.
    #[error("there is no input: name at least one")]
    NoInput,
    /// There is no place for dead letters.
    #[error("there is no place for dead letters: name one")]
    NoDeadLetters,
    /// Inputs or outputs that cannot be as they are named.
    #[error(transparent)]
    Ends(ChangeError),
    /// Pools and handlers that cannot be as they are named.
    #[error(transparent)]
    Router(#[from] RouterError),
    /// A handler may send back more than there is room for.
    #[error(
        "the handler {handler:?} may send {declared} events back for one, and there is room for {room}: raise the room"
    )]
    LoopbackTooSmall {
        /// The handler.
        handler: String,
        /// The declared number.
        declared: usize,
        /// The available room.
        room: usize,
    },
    /// A handler may send events back, and there is no way back.
    #[error("the handler {0:?} may send events back, and the engine has no loopback")]
    NoLoopback(String),
    /// A pool could not be started.
    #[error(transparent)]
    Spawn(#[from] greenroom::SpawnError),
}
