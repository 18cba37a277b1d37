//! The configuration of an engine, apart from its router, and the errors of a build.

use std::time::Duration;

use greenroom_config::{count, duration, options, units::DAY_MS, word, words};

use super::control::change::ChangeError;
use crate::router::RouterError;

words! {
    /// The treatment of an event that no handler takes. Default: it becomes a dead letter.
    pub enum NoHandler {
        /// It becomes a dead letter.
        DeadLetter = "dead_letter",
        /// It is acknowledged and counted.
        Ignore = "ignore",
        /// It is refused to its source.
        Refuse = "refuse",
    }
}

words! {
    /// Whose failures make an outage.
    pub enum OutagePer {
        /// Those of all events of a handler.
        Handler = "handler",
        /// Those of each share by itself.
        Share = "share",
    }
}

options! {
    /// In an outage, attempts are not counted and no event becomes a dead letter: events wait, and
    /// one at a time probes.
    #[derive(Copy, Eq)]
    pub struct OutageConfig = "outage" {
        /// This many failed attempts in a row, of at least two events, are an outage.
        failures: u32 = count(2..=1_000_000).default("20");
        /// A time with only failures, of at least two events, that is an outage.
        window: Duration = duration(1..=DAY_MS).default("10s");
        /// Whose failures are an outage: those of all events of a `handler`, or those of each
        /// `share` (docs/shares.md). With `share`, the other shares go on, and the handler is in
        /// outage only if most of the shares with attempts are.
        per: OutagePer = word().default("handler");
        /// How long a run waits, after all inputs have ended, for a handler in outage, for an
        /// output that fails or is paused (counted from the last event that it stored or rejected,
        /// if that is later), and for a store that cannot give dead letters for a replay. Then it
        /// gives up: the rest is refused, exit code 3.
        limit: Duration = duration(1..=DAY_MS).default("5m");
    }
}

impl Default for OutageConfig {
    fn default() -> Self {
        let (window, limit) = (Duration::from_secs(10), Duration::from_secs(300));
        Self { failures: 20, window, per: OutagePer::Handler, limit }
    }
}

words! {
    /// The events that a stop ([`Control::drain`](super::Control::drain)) waits for.
    pub enum Finish {
        /// Events that handlers have in hand. Waiting events are given back, or refused if their
        /// input stores no positions.
        InHand = "in_hand",
        /// All events that were read.
        All = "all",
    }
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
    /// Inputs, outputs, or limits of shares that cannot be as they are named.
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
    /// Shares are named for a pool that does not exist.
    #[error("shares are named for the pool {0:?}, which does not exist")]
    NoSuchPool(String),
    /// A pool could not be started.
    #[error(transparent)]
    Spawn(#[from] greenroom::SpawnError),
}
