//! What a connector can do, or not.

use std::fmt;

/// What a connector can do, or [lacks](super::Connector::lacks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// A source that is opened later on the same place gives what was not acknowledged.
    Replays,
    /// It keeps its positions: that source does not give what was acknowledged and committed.
    KeepsPositions,
    /// Its partitions are read, and paused, each by itself.
    Partitions,
    /// Partitions can be taken away from it and given back:
    /// [`Place::revoke`](super::Place::revoke).
    Revokes,
    /// Its places can hold what is no event.
    HoldsMalformed,
    /// Its places can have positions that are never given.
    HasGaps,
    /// What is published while a source reads the place is given by that source.
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
