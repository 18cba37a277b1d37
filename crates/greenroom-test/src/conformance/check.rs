//! The checks, and the abilities that each needs.

use std::fmt;

use super::ability::Ability;

greenroom_bus::spelled! {
    as_str:
    /// A check of a connector.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Check {
        /// The events of a key are given in the order in which they were published.
        OrderPerKey = "order per key",
        /// Every event is done in the end: in an undisturbed run, and after a crash with one event
        /// stuck.
        NoLoss = "no loss",
        /// After a crash, only events are repeated that were open, or acknowledged since the last
        /// commit began.
        BoundedRepeats = "bounded repeats",
        /// A paused partition gives nothing, by level: one resume ends two pauses. Others continue.
        PauseAndResume = "pause and resume",
        /// A record that is no event becomes a dead letter with its bytes, and blocks nothing else.
        MalformedEvents = "malformed events",
        /// A stop in the middle of the work ends; every given event is settled, and given again if
        /// it was refused.
        ShutdownUnderLoad = "shutdown under load",
        /// After an orderly end the next source continues: nothing is lost, and no finished event
        /// is given again.
        Restart = "restart",
        /// Positions that are never given do not hold up commits.
        Gaps = "gaps",
        /// A revoked partition is released at once, and finished once it is back; others continue.
        RevokeDuringLoad = "revoke during load",
    }
}

impl Check {
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
        f.write_str(self.as_str())
    }
}
