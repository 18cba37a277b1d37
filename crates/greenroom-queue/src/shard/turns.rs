//! How often a sender lets other tasks run.

/// How often a sender lets other tasks run. Otherwise workers that share its thread would get their
/// turn only when the pool is full, and find every message gone from the caches. The more messages
/// wait in its shard, the shorter the sender's turn, until stepping aside takes it longer than the
/// handling of its messages takes workers that only just keep up.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// The number of messages that may wait in a shard that keeps up well.
    pub(super) well: u32,
}

/// Waiting messages of this many bytes in total are assumed to be still in the caches of a core;
/// other messages may need half of those.
const BYTES_IN_CACHES: usize = 1024 * 1024;

/// At least this many messages may wait, however large they are: stepping aside has a price.
const FEWEST: usize = 8;

impl Turns {
    /// For shards that are filled by one sender each.
    pub const OF_A_SENDER: Self = Self { well: 128 };
    /// For shards by key: every sender fills all of them.
    pub const OF_KEYS: Self = Self { well: 64 };

    /// For messages of this size: large ones are out of the caches sooner.
    pub const fn of_messages_of(self, bytes: usize) -> Self {
        let fit = match BYTES_IN_CACHES.checked_div(bytes) {
            Some(..FEWEST) => FEWEST,
            Some(fit) => fit,
            None => return self,
        };
        if fit < self.well as usize { Self { well: fit as u32 } } else { self }
    }

    /// True if the sender of this message, one of `accepted`, should let others run before the next
    /// one.
    #[inline]
    pub(super) fn is_over(self, accepted: u64, backlog: usize) -> bool {
        let well = self.well as usize;
        accepted.is_multiple_of(self.span(backlog))
            && backlog >= well
            && (backlog >= 2 * well || accepted.is_multiple_of(128))
    }

    /// With this backlog, one in this many messages may end the turn.
    #[inline]
    pub(super) fn span(self, backlog: usize) -> u64 {
        if backlog >= 8 * self.well as usize { 4 } else { 16 }
    }

    /// The number of further messages that cannot end the turn, whatever is taken in between.
    #[inline]
    pub(super) fn rest(self, accepted: u64, backlog: usize) -> u64 {
        let until = |span: u64| span - 1 - accepted % span;
        let Some(shallow) = (2 * self.well as usize).checked_sub(backlog + 1) else {
            return until(self.span(backlog));
        };
        // After this many more, every 16th message ends the turn instead of every 128th.
        let shallow = shallow as u64;
        until(128).min(shallow + 15 - (accepted + shallow) % 16)
    }
}
