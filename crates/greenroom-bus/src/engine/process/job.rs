//! An event on its way through a pool, and how an attempt at it failed.

use std::{sync::Arc, time::Duration};

use greenroom::{Address, Backoff};
use tokio::time::Instant;

use super::{loopback::Reserved, produced::Produced, tries::Tries};
use crate::{
    engine::account::order_audit::Line,
    event::Event,
    handler::{Failure, Settlement},
    settlement::Ack,
};

/// The way into a pool.
pub(crate) type JobAddress = Address<Job, (), BusError>;

/// An event on its way through a pool.
pub(crate) struct Job {
    pub(crate) event: Event,
    /// The place of its handler.
    pub(crate) handler: usize,
    /// The line that it stands in; none for an event without order.
    pub(crate) line: Option<Line>,
    /// Where it came from.
    pub(crate) origin: Origin,
    /// Attempts so far, the one in hand included; not those that its handler gave back unstarted.
    pub(crate) attempts: u32,
    /// Its settlement; dropped with the job, it refuses the event.
    pub(crate) ack: Ack,
    /// Room on the way back for what its handler may send there.
    pub(crate) reserved: Option<Reserved>,
    /// Its attempts that failed.
    pub(crate) tries: Tries,
    /// Why it has parked its key, where it has.
    pub(crate) parked_for: Option<Arc<str>>,
    /// In its handler's hands, where that settles it itself.
    pub(crate) manual: Option<Settlement>,
    /// Who wants to know what its handler makes of it, instead of the outputs.
    pub(crate) produced: Option<Arc<Produced>>,
}

impl Job {
    pub(crate) fn new(
        event: Event,
        handler: usize,
        line: Option<Line>,
        origin: Origin,
        ack: Ack,
    ) -> Self {
        Self {
            event,
            handler,
            line,
            origin,
            attempts: 0,
            ack,
            reserved: None,
            tries: Tries::default(),
            parked_for: None,
            manual: None,
            produced: None,
        }
    }
}

/// Where an event came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The place of its input.
    pub(crate) input: u32,
    /// Its position there.
    pub(crate) position: u64,
    /// Its number among the events of its input, from 1; 0 where they have no order among them.
    pub(crate) number: u64,
    pub(crate) taken_at: Instant,
}

impl Origin {
    /// Of an event that a caller gave to a router.
    pub(crate) fn of_caller() -> Self {
        Self { input: 0, position: 0, number: 0, taken_at: Instant::now() }
    }
}

/// A failed attempt, as the pool's failure policy and dead letters see it.
#[derive(Debug)]
pub(crate) struct BusError {
    pub(crate) failure: Failure,
    /// The handler is in outage: the attempt does not count.
    pub(crate) waits: Option<Duration>,
    /// Between attempts.
    pub(crate) backoff: Backoff,
    /// Attempts that failed and count, this one included.
    pub(crate) failures: u32,
    /// No other is made.
    pub(crate) is_last: bool,
}
