//! The shard that a worker looks at first if handlers usually wait.
//!
//! If handlers usually wait, each message is the last that its worker takes in a row, and another
//! worker takes the next one. If each worker of a thread went to another shard, it would find the
//! lock, the queue and the messages of every shard in the caches of another core. So a thread
//! *visits* a shard: its workers take a few dozen messages there, one after the other, before they
//! move to the next ready shard.
//!
//! A worker that took a message with a key returns to the same shard to close the lane of that key.
//! So a thread keeps to the same shards: each shard belongs to the thread that came to it last, and
//! a thread goes to another thread's shard only if none of its own is ready. A faster thread
//! empties its own shards sooner, and so takes over more of the others.
//!
//! A visit is a hint and owns nothing: the shard that is looked at first changes which worker takes
//! a message, never whether one does. Now and then a thread goes to another thread's shard anyway,
//! because that thread may have moved to other work. The watchdog [ends all visits](Visits::end)
//! with each of its ticks.

use crate::sync::{
    AtomicU8, AtomicU64, AtomicUsize, Ordering, Visit, set_visit, thread_byte, tuned, visit,
};

/// Messages of a visit, minus one: enough to make use of what was fetched from another core, and
/// few enough that other shards wait for only some microseconds.
const LENGTH: u32 = 32;

/// One visit in this many is to a shard of another thread: few enough that threads seldom meet, and
/// enough that no shard waits for long.
const ABROAD: usize = tuned(64, 2) as usize;

/// The owner of a shard that no thread has come to.
const NOBODY: u8 = 0;

/// The most shards that a pool has.
const SHARDS: usize = tuned(64, 2) as usize;

/// The visits of the threads of a pool.
pub struct Visits {
    /// A bit for each shard that some thread visits.
    visited: AtomicU64,
    /// The approximate number of visits so far: not every thread sees those of others at once.
    visits: AtomicUsize,
    /// The thread that each shard belongs to. One byte each, because every actor has this table.
    owners: [AtomicU8; SHARDS],
}

impl Visits {
    /// A state in which no thread visits a shard.
    pub fn new() -> Self {
        Self {
            visited: AtomicU64::new(0),
            visits: AtomicUsize::new(0),
            owners: std::array::from_fn(|_| AtomicU8::new(NOBODY)),
        }
    }

    /// True if the shard belongs to this thread.
    #[inline]
    pub fn is_own(&self, shard: usize) -> bool {
        self.owner(shard).load(Ordering::Relaxed) == thread_byte()
    }

    /// The shard to look at first, among those with a bit in `ready`: at least one must be set.
    #[inline]
    pub fn next(&self, ready: u64) -> usize {
        let last = visit();
        let (is_of_this, here) = (last.of == self.place(), 1_u64 << last.shard);
        let stays = is_of_this && last.left > 0 && ready & here != 0;
        if stays && self.is_own(last.shard as usize) {
            set_visit(Visit { left: last.left - 1, ..last });
            // Only if a second message is taken: the first may be the only one.
            if last.left == LENGTH {
                self.visited.fetch_or(here, Ordering::Relaxed);
            }
            return last.shard as usize;
        }
        self.go_on(ready, is_of_this.then_some(last.shard))
    }

    /// Moves to the next shard: preferably to one that belongs to no other thread, then to one that
    /// no other thread visits, then to any.
    fn go_on(&self, ready: u64, last: Option<u32>) -> usize {
        let free = ready & !self.leave(last);
        let visits = self.visits.load(Ordering::Relaxed).wrapping_add(1);
        self.visits.store(visits, Ordering::Relaxed);
        // A thread that comes from another pool starts at a place other than its last one.
        let from = last.map_or(visits as u32, |last| last + 1) % 64;
        let own = [thread_byte(), NOBODY];
        let preferred = match visits.is_multiple_of(ABROAD) {
            true => self.first_that(from, free, |owner| !own.contains(&owner)),
            false => self.first_that(from, ready, |owner| own.contains(&owner)),
        };
        let shard = preferred
            .or_else(|| first_from(from, free))
            .or_else(|| first_from(from, ready))
            .unwrap_or(0);
        if !self.is_own(shard as usize) {
            self.owner(shard as usize).store(thread_byte(), Ordering::Relaxed);
        }
        set_visit(Visit { of: self.place(), shard, left: LENGTH });
        shard as usize
    }

    /// Ends the visit to the last shard. Returns the shards that are still visited.
    fn leave(&self, last: Option<u32>) -> u64 {
        let visited = self.visited.load(Ordering::Relaxed);
        let here = last.map_or(0, |last| 1 << last);
        if visited & here != 0 {
            self.visited.fetch_and(!here, Ordering::Relaxed);
        }
        visited & !here
    }

    /// The first of these shards, at or behind `from`, whose owner matches.
    fn first_that(&self, from: u32, mut shards: u64, is_such: impl Fn(u8) -> bool) -> Option<u32> {
        loop {
            let shard = first_from(from, shards)?;
            if is_such(self.owner(shard as usize).load(Ordering::Relaxed)) {
                return Some(shard);
            }
            shards &= !(1 << shard);
        }
    }

    /// Ends all visits.
    #[inline]
    pub fn end(&self) {
        if self.visited.load(Ordering::Relaxed) != 0 {
            self.visited.store(0, Ordering::Relaxed);
        }
    }

    /// In models, several shards may share an owner.
    #[inline]
    fn owner(&self, shard: usize) -> &AtomicU8 {
        &self.owners[shard % SHARDS]
    }

    /// The address, which tells the visits of this pool from those of others.
    #[inline]
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The first of these shards at or behind `from`, wrapping around.
#[inline]
fn first_from(from: u32, shards: u64) -> Option<u32> {
    (shards != 0).then(|| (shards.rotate_right(from).trailing_zeros() + from) % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_thread_stays_for_a_visit_and_then_goes_round() {
        let visits = Visits::new();
        let ready = 0b1011;
        let shards: Vec<usize> = (0..3 * (LENGTH + 1)).map(|_| visits.next(ready)).collect();
        let mut stays = shards.chunk_by(|one, other| one == other);
        let lengths: Vec<usize> = stays.by_ref().map(<[usize]>::len).collect();
        assert_eq!(lengths, [LENGTH as usize + 1; 3]);
        let mut visited = [shards[0], shards[40], shards[80]];
        visited.sort_unstable();
        assert_eq!(visited, [0, 1, 3]);
    }

    #[test]
    fn a_shard_that_is_empty_ends_the_visit() {
        let visits = Visits::new();
        let first = visits.next(0b11);
        let other = 1 - first;
        assert_eq!(visits.next(1 << other), other);
    }

    #[test]
    fn threads_go_to_different_shards_where_there_are_some() {
        let visits = Visits::new();
        let twice = || [visits.next(0b11), visits.next(0b11)];
        let first = twice();
        let second = std::thread::scope(|scope| scope.spawn(twice).join().unwrap());
        assert_eq!([first[0] + second[0], first[1] + second[1]], [1, 1]);
        let joined = std::thread::scope(|scope| scope.spawn(twice).join().unwrap());
        assert_eq!(joined[0], joined[1], "all are visited: it joins another, and stays");
    }

    #[test]
    fn a_thread_keeps_to_its_own_shards_as_long_as_one_is_ready() {
        let visits = Visits::new();
        let shards = |ready| -> BTreeSet<usize> {
            (0..8 * (LENGTH + 1)).map(|_| visits.next(ready)).collect()
        };
        assert_eq!(shards(0b0011), BTreeSet::from([0, 1]));
        let others = std::thread::scope(|scope| scope.spawn(|| shards(0b1100)).join().unwrap());
        assert_eq!(others, BTreeSet::from([2, 3]));
        assert_eq!(shards(0b1111), BTreeSet::from([0, 1]));
        assert!(!visits.is_own(2));
        assert_eq!(shards(0b0100), BTreeSet::from([2]), "it is taken over");
        assert!(visits.is_own(2));
        assert_eq!(shards(0b1111), BTreeSet::from([0, 1, 2]));
    }

    #[test]
    fn a_thread_comes_to_shards_of_another_once_in_a_while() {
        let visits = Visits::new();
        std::thread::scope(|scope| {
            scope.spawn(|| visits.next(0b01));
        });
        let visit_of_each = |visits_made: usize| -> BTreeSet<usize> {
            (0..visits_made * (LENGTH as usize + 1)).map(|_| visits.next(0b11)).collect()
        };
        assert_eq!(visit_of_each(ABROAD - 2), BTreeSet::from([1]));
        assert_eq!(visit_of_each(1), BTreeSet::from([0]), "its thread may never come back");
    }

    #[test]
    fn a_shard_that_another_thread_visits_comes_last_until_the_next_tick() {
        let foreign = || {
            let visits = Visits::new();
            std::thread::scope(|scope| {
                scope.spawn(|| [0b10, 0b10, 0b01, 0b01].map(|ready| visits.next(ready)));
            });
            visits
        };
        assert_eq!(foreign().next(0b11), 1);
        let visits = foreign();
        visits.end();
        assert_eq!(visits.next(0b11), 0);
    }

    #[test]
    fn a_thread_of_two_pools_goes_round_in_both() {
        let pools = [Visits::new(), Visits::new()];
        let shards: Vec<_> = (0..8).map(|turn| pools[turn % 2].next(0b1111)).collect();
        for pool in 0..2 {
            let of_pool: BTreeSet<_> = shards.iter().skip(pool).step_by(2).collect();
            assert_eq!(of_pool.len(), 4, "{shards:?}");
        }
    }
}
