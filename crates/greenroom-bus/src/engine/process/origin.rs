//! The origin of an event, which also identifies it.

use tokio::time::Instant;

/// In place of an assignment number, for events without a partition. In an engine that reads inputs
/// these are replayed dead letters and their loopback events.
pub(crate) const NO_ASSIGNMENT: u32 = u32::MAX;

/// The origin of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The place of its input.
    pub(crate) input: u32,
    /// The number of its partition's assignment; for a loopback event, that of the event it was
    /// made of.
    pub(crate) assigned: u32,
    /// Its position there.
    pub(crate) position: u64,
    /// Its number among the events of its input, from 1; 0 if they have no order among them.
    pub(crate) number: u64,
    pub(crate) taken_at: Instant,
}

impl Origin {
    /// Of a dead letter of this input that is handled again.
    pub(crate) fn of_replay(input: u32, number: u64) -> Self {
        Self { input, number, ..Self::of_caller() }
    }

    /// The assignment of its partition, if it has one.
    pub(crate) fn partition(&self) -> Option<u32> {
        (self.assigned != NO_ASSIGNMENT).then_some(self.assigned)
    }

    /// Its identity. A replayed dead letter has no position, but a number.
    ///
    /// All events of a router's callers count as one: their failures are not an outage, in which
    /// each caller would wait for its end. Callers get the error instead, and can retry.
    pub(crate) fn identity(&self) -> OriginId {
        let at = if self.assigned == NO_ASSIGNMENT { self.number } else { self.position };
        OriginId { input: self.input, assigned: self.assigned, at }
    }

    /// Of an event that a caller gave to a router.
    pub(crate) fn of_caller() -> Self {
        Self { input: 0, assigned: NO_ASSIGNMENT, position: 0, number: 0, taken_at: Instant::now() }
    }
}

/// The identity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginId {
    pub(crate) input: u32,
    /// Positions are those of a partition.
    pub(crate) assigned: u32,
    pub(crate) at: u64,
}
