//! A worker's rounds: how much it has taken in a row, and where it looks next.

use std::time::Instant;

use greenroom_queue::entry::URGENT_RUN;

/// One run in this many is timed, with two clock reads.
const RUNS_PER_TIMING: u32 = 8;

/// A worker's rounds: how much it has taken in a row, and where it looks next.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The number of urgent messages taken in a row, while there are some.
    pub(super) urgent: u32,
    /// The number of messages taken in a row from its own mailbox.
    pub(super) mail: u32,
    /// The number of messages taken in this run without keys, after the first.
    pub(super) run: u32,
    /// The most that there may be.
    pub(super) longest_run: u32,
    /// The number of runs begun.
    pub(super) timed: u32,
    /// The number of runs in a row in the shard that it keeps to.
    pub(super) runs: u32,
    /// The number of messages of this run whose handlers have waited, before the last one.
    pub(crate) waits: u32,
    /// The shard that it looks at first.
    pub(super) cursor: u32,
    /// It was woken for no particular shard, and may join another worker at one.
    pub(crate) join: bool,
    /// How many more times it looks first where a key yielded, whatever it finds.
    pub(super) looks_back: u8,
    /// The time when the run began, if it is timed.
    pub(super) timed_since: Option<Instant>,
}

impl Rounds {
    /// Workers start at different shards.
    pub(super) fn new(worker: usize) -> Self {
        Self { cursor: worker as u32 % 64, ..Self::default() }
    }

    /// True after a run of urgent messages.
    pub(super) fn is_normal_due(&self) -> bool {
        self.urgent >= URGENT_RUN
    }

    /// True for one run in a few, or one message that was handed to this worker.
    #[inline]
    pub(crate) fn times_this(&mut self) -> bool {
        let times = self.timed.is_multiple_of(RUNS_PER_TIMING);
        self.timed = self.timed.wrapping_add(1);
        times
    }
}
