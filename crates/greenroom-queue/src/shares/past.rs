//! The time in hand of the busiest shares that are no longer in memory.
//!
//! A share whose only key is in hand again and again is forgotten in between, and may still have
//! had most of the time. So the time of the busiest is kept, by Metwally's Space-Saving ("Efficient
//! computation of frequent and top-k elements in data streams", ICDT 2005): a share that has had
//! more than one part in [`KEPT`] of the forgotten time is kept. The others count as having had no
//! time.

use std::{collections::HashMap, hash::Hash};

/// The number of shares that are kept.
const KEPT: usize = 64;

/// The busiest shares that are not in memory.
pub(super) struct Past<S> {
    places: HashMap<S, usize, foldhash::fast::RandomState>,
    kept: Vec<KeptShare<S>>,
    /// No kept share has less time.
    floor: u64,
    /// The place at which a share with no more than that was last found.
    last: usize,
}

struct KeptShare<S> {
    name: S,
    /// Its time, plus an upper bound of what it had before it was kept.
    most: u64,
    /// That upper bound.
    before: u64,
}

impl<S: Hash + Eq + Clone> Past<S> {
    pub(super) fn new() -> Self {
        Self { places: HashMap::default(), kept: Vec::new(), floor: 0, last: 0 }
    }

    /// The time of this share, in nanoseconds.
    pub(super) fn time(&self, name: &S) -> u64 {
        let kept = self.places.get(name).and_then(|place| self.kept.get(*place));
        kept.map_or(0, |kept| kept.most - kept.before)
    }

    /// Keeps the total time of a share that is being forgotten.
    pub(super) fn keep(&mut self, name: &S, time: u64) {
        let known = self.places.get(name).and_then(|place| self.kept.get_mut(*place));
        if let Some(kept) = known {
            kept.most = kept.before.saturating_add(time);
            return;
        }
        if time == 0 {
            return;
        }
        if self.kept.len() < KEPT {
            self.places.insert(name.clone(), self.kept.len());
            self.kept.push(KeptShare { name: name.clone(), most: time, before: 0 });
            return;
        }
        let place = self.least();
        let before = self.floor;
        let kept = KeptShare { name: name.clone(), most: before.saturating_add(time), before };
        if let Some(least) = self.kept.get_mut(place) {
            self.places.remove(&least.name);
            self.places.insert(name.clone(), place);
            *least = kept;
        }
    }

    /// The place of a share with the least time.
    fn least(&mut self) -> usize {
        let is_least = |place: &usize| self.kept[*place].most <= self.floor;
        let found = (self.last..self.kept.len()).chain(0..self.last).find(is_least);
        let found = found.unwrap_or_else(|| {
            let all = self.kept.iter().enumerate().min_by_key(|(_, kept)| kept.most);
            let (place, most) = all.map_or((0, 0), |(place, kept)| (place, kept.most));
            self.floor = most;
            place
        });
        self.last = found;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Past};

    #[test]
    fn q11_the_time_of_the_busiest_is_kept_whatever_else_comes_and_goes() {
        let mut past: Past<u32> = Past::new();
        let mut had = 0;
        for other in 100..10_000 {
            past.keep(&other, 2);
            had += 1;
            let before = past.time(&7);
            past.keep(&7, before + 1);
        }
        assert_eq!((past.time(&7), past.kept.len(), past.places.len()), (had, KEPT, KEPT));
        assert!(past.time(&100) == 0 && past.time(&9_999) == 2, "of the others, the last are");
    }
}
