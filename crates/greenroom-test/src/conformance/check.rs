//! The checks, and what each needs.

use std::fmt;

use super::ability::Ability;

/// What is checked of a connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The events of a key are given in the order in which they were published.
    OrderPerKey,
    /// Every event is done in the end: in a run that nothing disturbs, and after a crash with one
    /// event stuck.
    NoLoss,
    /// After a crash only that is given again which was open, or acknowledged since the last commit
    /// began.
    BoundedRepeats,
    /// What is paused gives nothing, by level: paused twice is resumed once. Others go on.
    PauseAndResume,
    /// What is no event becomes a dead letter, with its bytes, and keeps nothing else from being
    /// handled.
    MalformedEvents,
    /// A stop in the middle of the work ends; whatever was given is settled, and given again where
    /// it was refused.
    ShutdownUnderLoad,
    /// After an orderly end the next source goes on: nothing is lost, and nothing that was done is
    /// given again.
    Restart,
    /// Positions that are never given hold up no commit.
    Gaps,
    /// What is taken away is given up at once, and done once it is back; others go on.
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

    /// What a connector has to be able to do for it to be applicable.
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
