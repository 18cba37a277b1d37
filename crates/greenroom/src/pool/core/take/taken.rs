//! A message taken from a shard, and the number that may be taken in a row.

use greenroom_queue::{lock::Locked, wake::Wake};

use crate::pool::{
    core::{OutboxOf, Queued},
    worker::in_flight::state::Source,
};

/// Messages that one worker takes from a shard before it lets the runtime run other tasks.
pub(super) const BUDGET: u32 = 64;

/// Like `BUDGET`, if handlers are quick: enough that workers keep up with several senders on their
/// thread, and that a shard with a hot key does not fall behind the others, which have as many
/// turns and few messages.
const QUICK_BUDGET: u32 = 512;

/// Messages of one key in a row while others are ready (K04).
pub(crate) const QUOTA: u32 = 16;

pub(crate) type TakenMessage<A, K> = Option<(Source, Queued<A, K>)>;

pub(crate) type Outboxed<'a, A, K> = Locked<'a, OutboxOf<A, K>>;

/// The most messages of a run.
pub(crate) fn budget(wake: &Wake) -> u32 {
    if wake.is_quick() { QUICK_BUDGET } else { BUDGET }
}
