//! The keys with the most work, in fixed memory.
//!
//! "Space-Saving" (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k
//! Elements in Data Streams, ICDT 2005): a table of a few keys. A new key replaces the one with the
//! lowest figure, and takes that over, because it may have had as much before. So a figure is never
//! too small, and too large by at most [`HotKey::at_most_too_large`]; a key with more than a 64th
//! of the total is in the table.
//!
//! Its input is the messages whose times are measured anyway, each with the number that it
//! represents, so figures are estimates. Keys are distinguished by their hashes here: one pair in
//! four billion shares an entry.

use std::{any::Any, sync::Arc, time::Duration};

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;

/// Keys in a table.
const KEPT: usize = 64;

/// One measured message in this many is fed in, if all are measured.
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
    /// The most by which that may be too large.
    pub at_most_too_large: T,
}

/// By number of messages, and by time in hand.
#[derive(Debug, Default)]
pub(crate) struct Sketch {
    tables: Mutex<(HotTable, HotTable)>,
}

/// A key of any type: the sketch is one type for all pools.
type AnyKey = Arc<dyn Any + Send + Sync>;

#[derive(Debug, Default)]
struct HotTable {
    kept: Vec<KeptKey>,
}

#[derive(Debug)]
struct KeptKey {
    hash: u32,
    key: AnyKey,
    amount: u64,
    error: u64,
}

impl HotTable {
    /// Returns a key that has lost its place.
    fn add(&mut self, hash: u32, key: &AnyKey, amount: u64) -> Option<AnyKey> {
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

    /// The keys with the most, each with its amount and the most by which that may be too large.
    fn most(&self, most: usize) -> Vec<(AnyKey, u64, u64)> {
        let mut kept: Vec<_> = self.kept.iter().collect();
        kept.sort_by_key(|kept| std::cmp::Reverse(kept.amount));
        let hot = |kept: &KeptKey| (kept.key.clone(), kept.amount, kept.error);
        kept.into_iter().take(most).map(hot).collect()
    }
}

impl Drop for HotTable {
    fn drop(&mut self) {
        self.kept.drain(..).for_each(|kept| discard(kept.key));
    }
}

impl Sketch {
    /// Adds a number of handled messages of a key, and their total time.
    pub(crate) fn feed(&self, hash: u32, key: AnyKey, messages: u64, took: Duration) {
        let mut tables = self.tables.lock();
        let (by_count, by_time) = &mut *tables;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let lost = (by_count.add(hash, &key, messages), by_time.add(hash, &key, nanos));
        drop(tables);
        discard((lost, key));
    }

    pub(crate) fn by_count<K: Send + Sync + 'static>(&self, most: usize) -> Vec<HotKey<K, u64>> {
        let most = self.tables.lock().0.most(most);
        hot_keys(most, |messages| messages)
    }

    pub(crate) fn by_time<K: Send + Sync + 'static>(
        &self,
        most: usize,
    ) -> Vec<HotKey<K, Duration>> {
        let most = self.tables.lock().1.most(most);
        hot_keys(most, Duration::from_nanos)
    }

    /// A key with this hash, if there is one in the table.
    pub(crate) fn find<K: Send + Sync + 'static>(&self, hash: u32) -> Option<Arc<K>> {
        let tables = self.tables.lock();
        let mut kept = tables.0.kept.iter().chain(&tables.1.kept);
        kept.find(|kept| kept.hash == hash)?.key.clone().downcast().ok()
    }
}

/// The keys of this type, which is the type of all keys that a pool has fed.
fn hot_keys<K: Send + Sync + 'static, T>(
    most: Vec<(AnyKey, u64, u64)>,
    unit: fn(u64) -> T,
) -> Vec<HotKey<K, T>> {
    let typed = most.into_iter().filter_map(|(key, amount, error)| {
        let (amount, at_most_too_large) = (unit(amount), unit(error));
        Some(HotKey { key: key.downcast().ok()?, amount, at_most_too_large })
    });
    typed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k11_the_hottest_keys_are_found_among_very_many_in_fixed_memory() {
        let sketch = Sketch::default();
        for round in 0..20_000_u32 {
            let hot = round % 3;
            sketch.feed(hot, Arc::new(hot), 1, Duration::from_millis(u64::from(3 - hot)));
            sketch.feed(100 + round, Arc::new(100 + round), 1, Duration::from_micros(1));
        }
        let count: Vec<_> = sketch.by_count::<u32>(3).iter().map(|hot| *hot.key).collect();
        assert!((0..3).all(|hot| count.contains(&hot)), "{count:?}");
        let time: Vec<_> = sketch.by_time::<u32>(3).iter().map(|hot| *hot.key).collect();
        assert_eq!(time, [0, 1, 2]);
        for hot in sketch.by_count::<u32>(KEPT) {
            assert!(hot.amount > hot.at_most_too_large, "{hot:?}");
            let real = if *hot.key < 3 { 6_666..=6_667 } else { 1..=1 };
            assert!(
                real.contains(&(hot.amount - hot.at_most_too_large)) || hot.at_most_too_large > 0
            );
            assert!(
                hot.amount >= *real.start() && hot.amount - hot.at_most_too_large <= *real.end()
            );
        }
        assert_eq!(sketch.by_count::<u32>(usize::MAX).len(), KEPT);
    }
}
