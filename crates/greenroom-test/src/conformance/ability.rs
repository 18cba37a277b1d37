//! The abilities of a connector.

use std::fmt;

greenroom_bus::spelled! {
    as_str:
    /// An ability that a connector has, or [lacks](super::Connector::lacks).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Ability {
        /// A source that is opened later on the same place gives the events that were not
        /// acknowledged.
        Replays = "to give again what was not acknowledged",
        /// It keeps its positions: that source skips events that were acknowledged and committed.
        KeepsPositions = "to keep its positions",
        /// Its partitions are read and paused individually.
        Partitions = "to have several partitions",
        /// Partitions can be taken away from it and given back:
        /// [`Place::revoke`](super::Place::revoke).
        Revokes = "to have partitions taken away",
        /// Its places can hold records that are no events.
        HoldsMalformed = "to hold what is no event",
        /// Its places can have positions that are never given.
        HasGaps = "to have gaps among its positions",
        /// A source also gives events that are published while it reads the place.
        IsLive = "to give what is published while it is read",
    }
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
