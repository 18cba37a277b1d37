//! The checks, and the abilities that each needs.

use std::fmt;

use super::ability::Ability;

/// A check of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The events of a key are given in the order in which they were published.
    OrderPerKey,
    /// Every event is done in the end: in an undisturbed run, and after a crash with one event
    /// stuck.
    NoLoss,
    /// After a crash, only events are repeated that were open, or acknowledged since the last
    /// commit began.
    BoundedRepeats,
    /// A paused partition gives nothing, by level: one resume ends two pauses. Others continue.
    PauseAndResume,
    /// A record that is no event becomes a dead letter with its bytes, and blocks nothing else.
    MalformedEvents,
    /// A stop in the middle of the work ends; every given event is settled, and given again if it
    /// was refused.
    ShutdownUnderLoad,
    /// After an orderly end the next source continues: nothing is lost, and no finished event is
    /// given again.
    Restart,
    /// Positions that are never given do not hold up commits.
    Gaps,
    /// A revoked partition is released at once, and finished once it is back; others continue.
    RevokeDuringLoad,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OrderPerKey,
        Self::NoLoss,
        Self::BoundedRepeats,
        Self::PauseAndResume,
        Self::MalformedEvents,
        Self::ShutdownUnderLoad,
        Self::Restart,
        Self::Gaps,
        Self::RevokeDuringLoad,
    ];

    /// The abilities that a connector needs for the check to apply.
    pub fn needs(self) -> &'static [Ability] {
        match self {
            Self::OrderPerKey | Self::NoLoss | Self::PauseAndResume | Self::ShutdownUnderLoad => {
                &[]
            }
            Self::BoundedRepeats => &[Ability::Replays, Ability::KeepsPositions],
            Self::MalformedEvents => &[Ability::HoldsMalformed],
            Self::Restart => &[Ability::Replays],
            Self::Gaps => &[Ability::HasGaps],
            Self::RevokeDuringLoad => &[Ability::Partitions, Ability::Revokes],
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OrderPerKey => "order per key",
            Self::NoLoss => "no loss",
            Self::BoundedRepeats => "bounded repeats",
            Self::PauseAndResume => "pause and resume",
            Self::MalformedEvents => "malformed events",
            Self::ShutdownUnderLoad => "shutdown under load",
            Self::Restart => "restart",
            Self::Gaps => "gaps",
            Self::RevokeDuringLoad => "revoke during load",
        })
    }
}
