//! The keys with the most work, in fixed memory.
//!
//! "Space-Saving" (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k
//! Elements in Data Streams, ICDT 2005): a table of a few keys. A new key replaces the one with the
//! least, and takes over its figure, because it may have had as much before. So a figure is never
//! smaller than what was seen, and too large by at most [`HotKey::at_most_too_large`]; a key with
//! more than a 64th of all is in the table.
//!
//! It is fed with messages whose times are measured anyway, and told for how many each stands,
//! so figures are estimates. Keys are told apart by their hashes here: one pair in four billion
//! shares an entry.

use std::{sync::Arc, time::Duration};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

/// Keys in a table.
const KEPT: usize = 64;

/// One measured message in so many is fed in if all are measured.
pub(crate) const FED: u64 = 8;

/// A key with much work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotKey<K, T> {
    /// The key.
    pub key: Arc<K>,
    /// How many messages of it were handled, or how long they took, since the pool was made:
    /// an estimate.
    pub amount: T,
    /// By how much that may be too large.
    pub at_most_too_large: T,
}

/// By number of messages, and by time in hand.
#[derive(Debug)]
pub(crate) struct Sketch<K> {
    tables: Mutex<(HotTable<K>, HotTable<K>)>,
}

#[derive(Debug)]
struct HotTable<K> {
    kept: Vec<KeptKey<K>>,
}

#[derive(Debug)]
struct KeptKey<K> {
    hash: u32,
    key: Arc<K>,
    amount: u64,
    error: u64,
}

impl<K> HotTable<K> {
    /// Returns a key that has lost its place.
    fn add(&mut self, hash: u32, key: &Arc<K>, amount: u64) -> Option<Arc<K>> {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.hash == hash) {
            kept.amount = kept.amount.saturating_add(amount);
            return None;
        }
        if self.kept.len() < KEPT {
            self.kept.push(KeptKey { hash, key: key.clone(), amount, error: 0 });
            return None;
        }
        let least = self.kept.iter_mut().min_by_key(|kept| kept.amount)?;
        (least.hash, least.error) = (hash, least.amount);
        least.amount = least.amount.saturating_add(amount);
        Some(std::mem::replace(&mut least.key, key.clone()))
    }

    fn most<T>(&self, most: usize, unit: impl Fn(u64) -> T) -> Vec<HotKey<K, T>> {
        let mut kept: Vec<_> = self.kept.iter().collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.amount));
        let hot = |kept: &KeptKey<K>| HotKey {
            key: kept.key.clone(),
            amount: unit(kept.amount),
            at_most_too_large: unit(kept.error),
        };
        kept.into_iter().take(most).map(hot).collect()
    }
}

impl<K> Drop for HotTable<K> {
    fn drop(&mut self) {
        self.kept.drain(..).for_each(|kept| discard(kept.key));
    }
}

impl<K> Sketch<K> {
    pub(crate) fn new() -> Self {
        let table = || HotTable { kept: Vec::new() };
        Self { tables: Mutex::new((table(), table())) }
    }

    /// So many messages of a key were handled, which took so long in all.
    pub(crate) fn feed(&self, hash: u32, key: Arc<K>, messages: u64, took: Duration) {
        let mut tables = self.tables.lock();
        let (by_count, by_time) = &mut *tables;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let lost = (by_count.add(hash, &key, messages), by_time.add(hash, &key, nanos));
        drop(tables);
        discard((lost, key));
    }

    pub(crate) fn by_count(&self, most: usize) -> Vec<HotKey<K, u64>> {
        self.tables.lock().0.most(most, |messages| messages)
    }

    pub(crate) fn by_time(&self, most: usize) -> Vec<HotKey<K, Duration>> {
        self.tables.lock().1.most(most, Duration::from_nanos)
    }

    /// A key with this hash, if there is one in the table.
    pub(crate) fn find(&self, hash: u32) -> Option<Arc<K>> {
        let tables = self.tables.lock();
        let mut kept = tables.0.kept.iter().chain(&tables.1.kept);
        kept.find(|kept| kept.hash == hash).map(|kept| kept.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k11_the_hottest_keys_are_found_among_very_many_in_fixed_memory() {
        let sketch = Sketch::new();
        for round in 0..20_000_u32 {
            let hot = round % 3;
            sketch.feed(hot, Arc::new(hot), 1, Duration::from_millis(u64::from(3 - hot)));
            sketch.feed(100 + round, Arc::new(100 + round), 1, Duration::from_micros(1));
        }
        let count: Vec<_> = sketch.by_count(3).iter().map(|hot| *hot.key).collect();
        assert!((0..3).all(|hot| count.contains(&hot)), "{count:?}");
        let time: Vec<_> = sketch.by_time(3).iter().map(|hot| *hot.key).collect();
        assert_eq!(time, [0, 1, 2]);
        for hot in sketch.by_count(KEPT) {
            assert!(hot.amount > hot.at_most_too_large, "{hot:?}");
            let real = if *hot.key < 3 { 6_666..=6_667 } else { 1..=1 };
            assert!(
                real.contains(&(hot.amount - hot.at_most_too_large)) || hot.at_most_too_large > 0
            );
            assert!(
                hot.amount >= *real.start() && hot.amount - hot.at_most_too_large <= *real.end()
            );
        }
        assert_eq!(sketch.by_count(usize::MAX).len(), KEPT);
    }
}
