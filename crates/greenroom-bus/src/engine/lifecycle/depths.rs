//! The depth of all pools together, as last seen.

/// Pools looked at in one go. A pool keeps its messages in 64 places that leave the cache when they
/// are not used for a while: looking at hundreds of pools at once would occupy the thread for
/// milliseconds.
const POOLS_PER_LOOK: usize = 16;

/// The depth of each pool at the last look: all of them each time if they are few, otherwise some
/// in turn.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    seen: Vec<u64>,
    next: usize,
}

impl Depths {
    /// Looks at the next few of this many pools. Returns the sum of all depths.
    pub(crate) fn look(&mut self, pools: usize, depth: impl Fn(usize) -> u64) -> u64 {
        self.seen.resize(pools, 0);
        for _ in 0..pools.min(POOLS_PER_LOOK) {
            self.next %= pools;
            self.seen[self.next] = depth(self.next);
            self.next += 1;
        }
        self.seen.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn few_pools_are_all_looked_at_each_time_and_many_in_turn() {
        let (mut few, looks) = (Depths::default(), Cell::new(0));
        let one = |_| {
            looks.set(looks.get() + 1);
            looks.get()
        };
        assert_eq!(few.look(3, one), 1 + 2 + 3);
        assert_eq!(few.look(3, one), 4 + 5 + 6);
        assert_eq!(few.look(0, one), 0);

        let (mut many, looks) = (Depths::default(), Cell::new(0));
        let ones = |_| {
            looks.set(looks.get() + 1);
            1
        };
        let sums: Vec<u64> = (0..4).map(|_| many.look(40, ones)).collect();
        assert_eq!(sums, [16, 32, 40, 40], "each has been looked at after three looks");
        assert_eq!(looks.get(), 64, "and no look is at more than 16");
    }
}
