//! Which shard a worker looks at first, if handlers usually wait.
//!
//! There each message is the last that its worker takes in a row, and another worker takes the
//! next. If each worker of a thread went to another shard, it would find the lock, the queue and
//! the messages of every shard in the caches of another core. So a thread *visits* a shard: its
//! workers take a few dozen messages there, one after the other, before they go on to the next
//! shard that is ready. Other threads go to other shards as long as there are any.
//!
//! A visit is a hint, and owns nothing: the shard that is looked at first changes which worker
//! takes a message, never whether one does. The watchdog [ends all visits](Visits::end) with each
//! of its ticks, so that no shard is left to a thread that has turned to something else.

use crate::sync::{AtomicU64, Ordering, Visit, set_visit, this_thread, visit};

/// Messages of a visit, and one: enough that what is fetched from another core is used, and few
/// enough that other shards wait for some microseconds.
const LENGTH: u32 = 32;

/// A bit for each shard that a thread visits.
pub struct Visits(AtomicU64);

impl Visits {
    /// No thread visits a shard.
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The shard to look at first, of those with a bit in `ready`: at least one.
    #[inline]
    pub fn next(&self, ready: u64) -> usize {
        let last = visit();
        let (is_own, here) = (last.of == self.place(), 1_u64 << last.shard);
        if is_own && last.left > 0 && ready & here != 0 {
            set_visit(Visit { left: last.left - 1, ..last });
            // If a second message is taken: the first may be all there is.
            if last.left == LENGTH {
                self.0.fetch_or(here, Ordering::Relaxed);
            }
            return last.shard as usize;
        }
        self.go_on(ready, is_own.then_some(last))
    }

    /// Goes on to the next shard, to one that no other thread visits if there is one.
    fn go_on(&self, ready: u64, last: Option<Visit>) -> usize {
        let mut visited = self.0.load(Ordering::Relaxed);
        if let Some(last) = last {
            let here = 1 << last.shard;
            if visited & here != 0 {
                self.0.fetch_and(!here, Ordering::Relaxed);
                visited &= !here;
            }
        }
        let from = match ready & !visited {
            0 => ready,
            free => free,
        };
        let behind = last.map_or(this_thread() as u32 >> 6, |last| last.shard + 1) % 64;
        let shard = (from.rotate_right(behind).trailing_zeros() + behind) % 64;
        set_visit(Visit { of: self.place(), shard, left: LENGTH });
        shard as usize
    }

    /// No thread visits any shard.
    #[inline]
    pub fn end(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Its address, to tell the visits of one pool from those of others.
    #[inline]
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[cfg(test)]
mod tests {
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
        let third = std::thread::scope(|scope| scope.spawn(twice).join().unwrap());
        assert!(third[0] < 2, "all are visited: it joins others");
    }

    #[test]
    fn what_another_thread_has_left_is_visited_once_the_watchdog_has_looked() {
        let visits = Visits::new();
        std::thread::scope(|scope| {
            scope.spawn(|| [visits.next(0b01), visits.next(0b01)]);
        });
        let stays = |times| (0..times).all(|_| visits.next(0b11) == 1);
        assert!(stays(4 * LENGTH), "another thread is at the first one");
        visits.end();
        assert!(!stays(LENGTH + 1));
    }
}
