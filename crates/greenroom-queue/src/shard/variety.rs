//! Whether messages of different keys lie in a queue.

/// Whether messages of different keys lie in a queue. Goes by the hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Variety {
    /// Of the message that was queued last.
    pub(super) hash: u32,
    /// Not all of them have that.
    pub(super) is_mixed: bool,
}

impl Variety {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn note(&mut self, hash: u32) {
        self.is_mixed |= hash != self.hash;
        self.hash = hash;
    }

    /// For messages that are queued from here on. If the next is of another key than the last, the
    /// queue looks mixed although it is not.
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
