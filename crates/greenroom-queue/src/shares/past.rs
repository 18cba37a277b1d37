//! The time in hand of shares that are not in memory any more: of the busiest of them.
//!
//! A share whose only key is in hand again and again is forgotten in between, and still has had
//! most of the time. So the time of the busiest is kept, by Metwally's Space-Saving ("Efficient
//! computation of frequent and top-k elements in data streams", ICDT 2005): a share that has had
//! more than one in [`KEPT`] parts of the forgotten time is there. A share that is not kept has had
//! nothing as far as this knows.

use std::{collections::HashMap, hash::Hash};

/// So many shares are kept.
const KEPT: usize = 64;

/// The busiest shares that are not in memory.
pub(super) struct Past<S> {
    places: HashMap<S, usize, foldhash::fast::RandomState>,
    kept: Vec<KeptShare<S>>,
    /// None has less.
    floor: u64,
    /// Where one that has no more was found last.
    last: usize,
}

struct KeptShare<S> {
    name: S,
    /// Its time, and what it may have had before it was kept.
    most: u64,
    /// That part.
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

    /// The share has had this time by now, and is forgotten.
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

    /// The place of one that has least.
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
