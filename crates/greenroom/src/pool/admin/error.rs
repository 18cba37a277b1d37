//! Why a pool was not changed.

use std::ops::RangeInclusive;

/// Why a pool was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// The pool is stopping or has stopped.
    #[error("the pool is not running")]
    NotRunning,
    /// The size would be outside of the bounds of the pool.
    #[error("{asked} workers are outside of the pool's bounds, {} to {}", bounds.start(), bounds.end())]
    OutOfBounds {
        /// The requested size.
        asked: usize,
        /// The bounds.
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
    /// The pool keeps order per key, which would end if messages were passed on.
    #[error("a pool with order per key cannot adopt: passing messages on would end the order")]
    Ordered,
    /// The slot is not disabled.
    #[error("slot {0} is not disabled")]
    NotDisabled(usize),
    /// The pool would hold no messages, or more than can be counted.
    #[error("a pool cannot hold {asked} messages: 1 to {most} are possible")]
    CapacityOutOfRange {
        /// How many it would hold in total.
        asked: usize,
        /// The maximum.
        most: usize,
    },
    /// The pool was built without limits and without [limits that come
    /// later](crate::PoolBuilder::adjustable_limits), or its limit is adaptive.
    #[error(
        "the pool has no {0} to change: build it with one, or with `adjustable_limits` to set it later"
    )]
    NoSuchLimit(&'static str),
    /// The limit is out of range, in words.
    #[error("{0}")]
    LimitOutOfRange(String),
    /// A setting of the advisor is out of range, in words.
    #[error("{0}")]
    AdvisorOutOfRange(String),
}
