//! Which shards may have unused permits, so that a sender that finds none looks at those
//! shards only.
//!
//! In a pool that stays full, each refused sender then looks at one word instead of taking a lock
//! for each shard.
//!
//! # Why none is overlooked
//! A shard is noted under the lock of its inbox, *before* the same hold reserves permits for it or
//! looks whether a sender waits. The searcher first says that it waits, or finds no permit; *then*
//! it takes all notes out, and after that the permits of these shards, under their locks. A fence
//! separates the two steps on each side, so one of the two sees the other: the sender sees that
//! another waits, or the searcher sees the note. A note that was found in place needs no fence: its
//! searcher takes this lock later, or took it before, and then the note was not found.

use crate::sync::{AtomicU64, Ordering, fence};

/// One bit for each shard.
#[derive(Debug)]
pub struct CreditMap(AtomicU64);

impl CreditMap {
    /// No shard is noted.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Permits may be put into this shard. The caller has locked its inbox, and keeps it locked
    /// until they are in.
    #[inline]
    pub fn note(&self, shard: usize) {
        let bit = 1 << shard;
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
            // Pairs with the fence in `reclaim`: the searcher sees this note, or the sender sees
            // in `take_known` that a waiter is there or no permit is left. Otherwise credit lies
            // unused in a pool that is called full.
            fence(Ordering::SeqCst);
        }
    }

    /// Takes out what `take` finds in each noted shard. One caller at a time: it must not end while
    /// another one is still on the way to a shard.
    pub fn reclaim(&self, mut take: impl FnMut(usize) -> u64) -> u64 {
        // Pairs with the fence in `note`: the caller has raised `starved`, or found no
        // permit, before.
        fence(Ordering::SeqCst);
        let mut noted = self.0.swap(0, Ordering::Relaxed);
        let mut taken = 0;
        while noted != 0 {
            taken += take(noted.trailing_zeros() as usize);
            noted &= noted - 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_that_got_permits_are_looked_at_and_once() {
        let map = CreditMap::new();
        for shard in [5, 63, 5, 0] {
            map.note(shard);
        }
        let mut seen = Vec::new();
        let mut look = |shard| {
            seen.push(shard);
            shard as u64
        };
        assert_eq!((map.reclaim(&mut look), map.reclaim(&mut look)), (68, 0));
        assert_eq!(seen, [0, 5, 63]);
        map.note(5);
        assert_eq!(map.reclaim(|shard| shard as u64), 5);
    }
}
