//! Why a pool was not changed.

use std::ops::RangeInclusive;

/// Why a pool was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The pool is stopping or has stopped.
    #[error("the pool is not running")]
    NotRunning,
    /// The size would be outside of what the pool was set up for.
    #[error("{asked} workers are outside of the pool's bounds, {} to {}", bounds.start(), bounds.end())]
    OutOfBounds {
        /// The size asked for.
        asked: usize,
        /// The bounds that hold.
        bounds: RangeInclusive<usize>,
    },
    /// There is no worker with this slot.
    #[error("the pool has no slot {0}")]
    NoSuchSlot(usize),
    /// The pool has put or adopted no such member.
    #[error("the pool has not adopted this address, or it has left")]
    NotAdopted,
    /// The pool would contain itself.
    #[error("the pool would contain itself")]
    ContainsItself,
    /// The pool keeps order per key, which ends if a message is handed on.
    #[error("a pool with order per key cannot adopt: the order would end with the handing on")]
    Ordered,
    /// The slot is not disabled.
    #[error("slot {0} is not disabled")]
    NotDisabled(usize),
    /// The pool would hold no messages, or more than can be counted.
    #[error("a pool cannot hold {asked} messages: 1 to {most} are possible")]
    CapacityOutOfRange {
        /// How many it would hold in all.
        asked: usize,
        /// The most that are possible.
        most: usize,
    },
    /// The pool was built without limits and without [limits that come
    /// later](crate::PoolBuilder::adjustable_limits), or its limit is adaptive.
    #[error(
        "the pool has no {0} to change: it is built with one, or with `adjustable_limits` where it is to be set later"
    )]
    NoSuchLimit(&'static str),
    /// The limit is out of range, in words.
    #[error("{0}")]
    LimitOutOfRange(String),
    /// A setting of the advisor is out of range, in words.
    #[error("{0}")]
    AdvisorOutOfRange(String),
}
