//! How often a sender lets others run.

/// How often a sender lets others run: workers that share its thread would otherwise get their turn
/// only when the pool is full, and find every message gone from the caches. The more wait in its
/// shard, the shorter its turn, until stepping aside takes it longer than handling its messages
/// takes workers that only just keep up.
#[derive(Debug, Clone, Copy)]
pub struct Turns {
    /// So many messages wait in a shard that gets on well.
    pub(super) well: u32,
}

/// Waiting messages of so many bytes are taken to be in the caches of a core still; others may need
/// half of these.
const BYTES_IN_CACHES: usize = 1024 * 1024;

/// Messages that wait well, however large they are: stepping aside is not for free.
const FEWEST: usize = 8;

impl Turns {
    /// One sender fills one shard.
    pub const OF_A_SENDER: Self = Self { well: 128 };
    /// Every sender fills all shards, by key.
    pub const OF_KEYS: Self = Self { well: 64 };

    /// Large messages are out of the caches sooner.
    pub const fn of_messages_of(self, bytes: usize) -> Self {
        let fit = match BYTES_IN_CACHES.checked_div(bytes) {
            Some(..FEWEST) => FEWEST,
            Some(fit) => fit,
            None => return self,
        };
        if fit < self.well as usize { Self { well: fit as u32 } } else { self }
    }

    /// True when the sender of this message, one of `accepted`, should let others run
    /// before the next.
    #[inline]
    pub(super) fn is_over(self, accepted: u64, backlog: usize) -> bool {
        let well = self.well as usize;
        accepted.is_multiple_of(self.span(backlog))
            && backlog >= well
            && (backlog >= 2 * well || accepted.is_multiple_of(128))
    }

    /// While as many wait, one message in so many may end the turn.
    #[inline]
    pub(super) fn span(self, backlog: usize) -> u64 {
        if backlog >= 8 * self.well as usize { 4 } else { 16 }
    }

    /// How many messages more cannot end the turn, whatever is taken in between.
    #[inline]
    pub(super) fn rest(self, accepted: u64, backlog: usize) -> u64 {
        let until = |span: u64| span - 1 - accepted % span;
        let Some(shallow) = (2 * self.well as usize).checked_sub(backlog + 1) else {
            return until(self.span(backlog));
        };
        // So many more are queued before every 16th ends it, and not only every 128th.
        let shallow = shallow as u64;
        until(128).min(shallow + 15 - (accepted + shallow) % 16)
    }
}
