//! Lanes that a worker may take.

use std::collections::VecDeque;

use crate::lanes::LaneId;

/// Lanes that no worker owns, in the order in which they became ready.
#[derive(Default)]
pub struct ReadyLanes {
    pub(super) all: VecDeque<LaneId>,
    /// Those of them with an urgent message, which come before the others and before the queue. A
    /// lane that was ready when its first urgent message came stands in both lists; a worker that
    /// takes it from one leaves a meaningless name in the other.
    pub(super) urgent: VecDeque<LaneId>,
    /// Whether the next worker looks at the queue before the ready lanes: they take turns.
    pub queue_first: bool,
}
