//! The shards that may have unused permits: a sender that finds no permit searches only those.
//!
//! In a pool that stays full, each refused sender then reads one word instead of taking a lock for
//! each shard.
//!
//! # Why no shard is missed
//! A shard is noted under the lock of its inbox, *before* the same critical section reserves
//! permits for it or checks whether a sender waits. The searcher first announces that it waits, or
//! finds no permit; *then* it takes all notes, and after that the permits of these shards, under
//! their locks. A fence separates the two steps on each side, so one of the two sees the other: the
//! sender sees that another one waits, or the searcher sees the note. If the note was already set,
//! no fence is needed: its searcher takes this lock later, or took it earlier, in which case the
//! note would not have been set.

use crate::sync::{AtomicU64, Ordering, fence};

/// One bit for each shard.
#[derive(Debug)]
pub struct CreditMap(AtomicU64);

impl CreditMap {
    /// A map with no shard noted.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Notes that permits may be put into this shard. The caller holds the lock of its inbox until
    /// they are in.
    #[inline]
    pub fn note(&self, shard: usize) {
        let bit = 1 << shard;
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
            // Pairs with the fence in `reclaim`: the searcher sees this note, or the sender sees in
            // `take_known` that there is a waiter or no permit left. Otherwise credit stays unused
            // in a pool that reports itself full.
            fence(Ordering::SeqCst);
        }
    }

    /// Adds up the permits that `take` removes from each noted shard. Only one caller at a time: it
    /// must not finish while another one is still on its way to a shard.
    pub fn reclaim(&self, mut take: impl FnMut(usize) -> u64) -> u64 {
        // Pairs with the fence in `note`: the caller has raised `starved`, or found no permit,
        // before.
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
