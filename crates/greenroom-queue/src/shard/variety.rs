//! Whether a queue has messages of different keys.

/// Whether a queue has messages of different keys. It goes by their hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Variety {
    /// The hash of the message that was queued last.
    pub(super) hash: u32,
    /// True if not all messages have that hash.
    pub(super) is_mixed: bool,
}

impl Variety {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note(&mut self, hash: u32) {
        self.is_mixed |= hash != self.hash;
        self.hash = hash;
    }

    /// Starts over for messages that are queued from now on. If the next message has another key
    /// than the last one, the queue looks mixed although it is not.
    #[inline]
    pub(super) fn begin(&mut self) -> Self {
        std::mem::replace(self, Self { is_mixed: false, ..*self })
    }

    #[inline]
    pub(super) fn and(mut self, behind: Self) -> Self {
        self.note(behind.hash);
        self.is_mixed |= behind.is_mixed;
        self
    }

    #[inline]
    pub(super) fn is_only(self, hash: u32) -> bool {
        !self.is_mixed && self.hash == hash
    }
}
