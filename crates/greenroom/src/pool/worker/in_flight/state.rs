//! The state of a worker: its last source, and whether it is polled.

use greenroom_queue::lanes::LaneId;

/// The source of the message in hand, and what the worker owns because of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// No source any more: the message is separate from all queues.
    None,
    /// The queue of a shard without order; `alone` if the worker has the affinity to it.
    Shared { index: usize, alone: bool },
    /// Like `Shared`, between two runs: no message is in hand.
    BetweenRuns { index: usize, alone: bool },
    /// The head of a keyed shard, with its drain token.
    Head { index: usize, epoch: u64, hash: Option<u32>, run: u32 },
    /// The worker's own mailbox.
    Mailbox,
    /// A lane that this worker runs; `run` messages of it in a row.
    Lane { index: usize, id: LaneId, run: u32 },
}

impl Source {
    /// True if the worker owns a key.
    pub(crate) fn has_key(self) -> bool {
        match self {
            Self::Head { hash, .. } => hash.is_some(),
            Self::Lane { id, .. } => !id.is_keyless(),
            _ => false,
        }
    }
}

/// The result of a look for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A message is in hand.
    InHand,
    /// A message was settled without being handled.
    Skipped,
    /// There is no work, and the worker has no place, or one between two runs.
    Nothing,
}

/// Whether the worker counts as awake, and its state if not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunState {
    Awake,
    /// Polled, but not counted as awake: its handler has waited, as handlers here usually do. Its
    /// only duty is to look for ready work when it parks. Others rely on the workers that count.
    Uncounted,
    /// Awake, and stepping aside once before it parks.
    Searching,
    /// In the idle list, or just taken off it by a waker.
    Parked,
    /// In a suspended handler, or between restarts.
    Suspended,
}
