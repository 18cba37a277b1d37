//! Which shards may have permits lying unused, so that whoever needs some and finds none looks at
//! those shards only.
//!
//! Where a pool stays full that is the difference between a look at nothing and a lock for each
//! shard, for every sender that is refused.
//!
//! # Why none is overlooked
//! A shard is noted under the lock of its inbox, *before* the same hold reserves permits for it or
//! looks whether somebody waits. Whoever searches has said that it waits, or has found no permit,
//! and takes all notes out *then*, and after that these shards' permits, under their locks. Between
//! the two steps of each stands a fence, so one of the two sees the other: the sender that somebody
//! waits, or the one who searches the note. A note that was found in place needs no fence: who
//! takes it out comes to this lock later, or was here before, and then the note was not found.

use crate::sync::{AtomicU64, Ordering, fence};

/// One bit for each shard.
#[derive(Debug)]
pub(crate) struct CreditMap(AtomicU64);

impl CreditMap {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Permits may be put into this shard, whose inbox the caller has locked and keeps locked until
    /// they are in.
    #[inline]
    pub(crate) fn note(&self, shard: usize) {
        let bit = 1 << shard;
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
            // Pairs with the fence in `reclaim`: the searcher sees this note, or the sender sees in
            // `take_known` that somebody waits or that no permit is left. Otherwise credit lies
            // unused in a pool that is called full.
            fence(Ordering::SeqCst);
        }
    }

    /// Takes out what `take` finds in each shard that was noted. One at a time does this: it must
    /// not end while another one is still on the way to a shard.
    pub(crate) fn reclaim(&self, mut take: impl FnMut(usize) -> u64) -> u64 {
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
