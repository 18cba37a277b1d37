//! Which shards want a worker, and which of them a worker keeps to.

use std::time::Duration;

use super::{QUICK, Wake};
use crate::sync::Ordering;

/// The bit of a keyed pool's shares in the map of ready shards: such a pool has half as many
/// shards.
const SHARES: usize = 63;

impl Wake {
    /// Marks that something in the line of a share may start: a worker should look. Called under
    /// the lock of the shares, like `clear_shares`.
    pub fn mark_shares(&self) {
        self.mark(SHARES);
    }

    /// Marks that nothing in the lines of shares may start.
    pub fn clear_shares(&self) {
        self.clear(SHARES);
    }

    /// Marks that a worker should look at this shard.
    #[inline]
    pub fn mark(&self, shard: usize) {
        let bit = 1 << shard;
        // A cleared bit is not seen as set. The worker that clears it holds the lock of the shard's
        // inbox (`clear`), or takes it afterwards. If the worker had the lock before the caller,
        // the caller sees the bit cleared; otherwise the worker finds what the caller queued.
        if self.ready.load(Ordering::Relaxed) & bit == 0 {
            self.ready.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Marks that workers should look at each shard with a bit here.
    #[inline]
    pub fn mark_all(&self, shards: u64) {
        if self.ready.load(Ordering::Relaxed) & shards != shards {
            self.ready.fetch_or(shards, Ordering::AcqRel);
        }
    }

    /// Takes the first ready shard at or behind `cursor`, wrapping around.
    #[inline]
    pub fn claim(&self, cursor: u32) -> Option<usize> {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if ready == 0 {
                return None;
            }
            let shard = (ready.rotate_right(cursor).trailing_zeros() + cursor) % 64;
            let bit = 1 << shard;
            if self.ready.fetch_and(!bit, Ordering::AcqRel) & bit != 0 {
                return Some(shard as usize);
            }
        }
    }

    /// Like `claim`, if handlers usually wait: the shard that this thread visits. Its bit stays
    /// set.
    #[inline]
    pub fn near(&self) -> Option<usize> {
        let ready = self.ready.load(Ordering::Acquire);
        (ready != 0).then(|| self.aside.visits.next(ready))
    }

    /// If handlers usually wait: true if the shard belongs to this thread.
    #[inline]
    pub fn is_own(&self, shard: usize) -> bool {
        self.aside.visits.is_own(shard)
    }

    /// Forgets the visits of threads.
    pub fn end_visits(&self) {
        self.aside.visits.end();
    }

    /// Marks that there are urgent messages in this shard. Called under the lock of their queue.
    #[inline]
    pub fn set_urgent(&self, shard: usize) {
        // Pairs with the loads in `has_urgent` and `urgent_shards`. A worker that misses it takes a
        // normal message first.
        self.signs.urgent.fetch_or(1 << shard, Ordering::SeqCst);
    }

    /// Marks that there are none any more. Called under the lock of the shard's inbox and, with
    /// keys, that of its outbox.
    #[inline]
    pub fn clear_urgent(&self, shard: usize) {
        // Pairs with the `fetch_or` in `set_urgent`, by the locks: no bit is cleared over an
        // urgent message.
        self.signs.urgent.fetch_and(!(1 << shard), Ordering::SeqCst);
    }

    /// True if urgent messages wait somewhere.
    #[inline]
    pub fn has_urgent(&self) -> bool {
        self.signs.urgent.load(Ordering::Relaxed) != 0
    }

    /// True if urgent messages wait in this shard.
    #[inline]
    pub fn has_urgent_at(&self, shard: usize) -> bool {
        self.urgent_shards() & (1 << shard) != 0
    }

    /// The shards with urgent messages.
    #[inline]
    pub fn urgent_shards(&self) -> u64 {
        self.signs.urgent.load(Ordering::Acquire)
    }

    /// Takes this shard off the ready ones. Returns false if it was not among them.
    #[inline]
    pub fn claim_this(&self, shard: usize) -> bool {
        let bit = 1 << shard;
        self.ready.load(Ordering::Acquire) & bit != 0
            && self.ready.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Marks that this shard is empty. For pools without keys; called under the lock of the shard's
    /// inbox.
    #[inline]
    pub fn clear(&self, shard: usize) {
        let bit = 1 << shard;
        if self.ready.load(Ordering::Relaxed) & bit != 0 {
            self.ready.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Finds the first ready shard at or behind `cursor`, wrapping around: one that no worker keeps
    /// to (true), or, if there is none and the caller may `join`, any (false). Its bit stays set.
    #[inline]
    pub fn acquire_affinity(&self, cursor: u32, join: bool) -> Option<(usize, bool)> {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if self.waits() && ready != 0 {
                return Some((self.aside.visits.next(ready), false));
            }
            let free = ready & !self.affinity.load(Ordering::Acquire);
            let shards = match free {
                0 if join || !self.is_quick() => ready,
                free => free,
            };
            if shards == 0 {
                return None;
            }
            let shard = (shards.rotate_right(cursor).trailing_zeros() + cursor) % 64;
            if free == 0 {
                return Some((shard as usize, false));
            }
            let bit = 1 << shard;
            if self.affinity.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
                return Some((shard as usize, true));
            }
        }
    }

    /// Leaves a shard to which only the caller had the affinity.
    #[inline]
    pub fn release_affinity(&self, shard: usize) {
        self.affinity.fetch_and(!(1 << shard), Ordering::AcqRel);
    }

    /// True if work is ready that no worker is about to do, and a worker could be woken for it. A
    /// guess that costs a few loads.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.wants_attention()
            && self.awake.load(Ordering::Relaxed) < self.limit
            && self.idle_count.load(Ordering::Relaxed) > 0
    }

    /// True if no worker keeps to a ready shard, or another one could join there.
    #[inline]
    pub(super) fn wants_attention(&self) -> bool {
        let ready = self.ready.load(Ordering::Relaxed);
        ready != 0 && (ready & !self.affinity.load(Ordering::Relaxed) != 0 || !self.is_quick())
    }

    /// True if handlers return within [`QUICK`].
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.signs.quick.load(Ordering::Relaxed)
    }

    /// Notes how long a handler took, as the average of a few.
    #[inline]
    pub fn note_pace(&self, each: Duration) {
        self.set_quick(each < QUICK);
    }

    /// Sets whether handlers are assumed to be quick.
    pub fn set_quick(&self, quick: bool) {
        if quick != self.is_quick() {
            self.signs.quick.store(quick, Ordering::Relaxed);
        }
    }

    /// True if handlers usually wait for something.
    #[inline]
    pub fn waits(&self) -> bool {
        self.signs.waits.load(Ordering::Relaxed)
    }

    /// Sets whether handlers usually wait for something.
    #[cold]
    pub fn set_waits(&self, waits: bool) {
        self.signs.waits.store(waits, Ordering::Relaxed);
        if waits {
            self.set_quick(false);
        }
    }

    /// True if a worker should look at this shard.
    #[inline]
    pub fn is_ready_at(&self, shard: usize) -> bool {
        self.ready.load(Ordering::Acquire) & (1 << shard) != 0
    }

    /// True if a worker should look at a shard that no worker keeps to.
    #[inline]
    pub fn is_any_free(&self) -> bool {
        self.ready.load(Ordering::Relaxed) & !self.affinity.load(Ordering::Relaxed) != 0
    }

    /// True if a worker should look at a shard.
    #[inline]
    pub fn any_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// The number of shards that workers should look at.
    #[inline]
    pub fn ready_shards(&self) -> u32 {
        self.ready.load(Ordering::Relaxed).count_ones()
    }
}
