//! The abilities of a connector.

use std::fmt;

/// An ability that a connector has, or [lacks](super::Connector::lacks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// A source that is opened later on the same place gives the events that were not acknowledged.
    Replays,
    /// It keeps its positions: that source skips events that were acknowledged and committed.
    KeepsPositions,
    /// Its partitions are read and paused individually.
    Partitions,
    /// Partitions can be taken away from it and given back:
    /// [`Place::revoke`](super::Place::revoke).
    Revokes,
    /// Its places can hold records that are no events.
    HoldsMalformed,
    /// Its places can have positions that are never given.
    HasGaps,
    /// A source also gives events that are published while it reads the place.
    IsLive,
}

impl Ability {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Replays,
        Self::KeepsPositions,
        Self::Partitions,
        Self::Revokes,
        Self::HoldsMalformed,
        Self::HasGaps,
        Self::IsLive,
    ];
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Replays => "to give again what was not acknowledged",
            Self::KeepsPositions => "to keep its positions",
            Self::Partitions => "to have several partitions",
            Self::Revokes => "to have partitions taken away",
            Self::HoldsMalformed => "to hold what is no event",
            Self::HasGaps => "to have gaps among its positions",
            Self::IsLive => "to give what is published while it is read",
        })
    }
}
