//! Lanes that a worker may take.

use std::collections::VecDeque;

use crate::lanes::LaneId;

/// Lanes that no worker owns, in the order in which they became ready.
#[derive(Default)]
pub struct ReadyLanes {
    pub(super) all: VecDeque<LaneId>,
    /// Those with an urgent message, which come before the others and before the queue. A lane that
    /// was already ready when its first urgent message came is in both lists; a worker that takes
    /// it from one list leaves a stale name in the other.
    pub(super) urgent: VecDeque<LaneId>,
    /// True if the next worker looks at the queue before the ready lanes: they take turns.
    pub queue_first: bool,
}
