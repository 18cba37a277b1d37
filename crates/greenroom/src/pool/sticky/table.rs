//! The planned worker of each table slot: no messages, no locks and no clock.

use std::collections::{BTreeMap, BTreeSet};

/// The table slot has no worker.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The plan. Shares never differ by more than one, except because of the order in which workers
/// came and went.
pub(crate) struct Table {
    /// The worker by tag. A tag is a table slot, counted from 1: 0 is for messages without a key.
    to: Vec<u32>,
    /// The tags of each worker: the inverse of `to`.
    shares: BTreeMap<u32, Vec<u32>>,
    /// Workers by their number of tags. Kept in step with `shares`.
    by_size: BTreeSet<(usize, u32)>,
}

impl Table {
    /// Deals `slots` table slots out to the workers `0..workers` in turn.
    pub(crate) fn new(slots: usize, workers: usize) -> Self {
        let mut table =
            Self { to: vec![NOBODY; slots + 1], shares: BTreeMap::new(), by_size: BTreeSet::new() };
        for worker in 0..workers as u32 {
            table.set_share(worker, Vec::new());
        }
        if workers > 0 {
            for worker in 0..workers as u32 {
                let share: Vec<u32> =
                    (worker as usize + 1..=slots).step_by(workers).map(|tag| tag as u32).collect();
                share.iter().for_each(|tag| table.to[*tag as usize] = worker);
                table.set_share(worker, share);
            }
        }
        table
    }

    /// The planned worker of a tag.
    pub(crate) fn to(&self, tag: u32) -> u32 {
        self.to[tag as usize]
    }

    pub(crate) fn is_member(&self, worker: u32) -> bool {
        self.shares.contains_key(&worker)
    }

    /// A worker takes its share from the workers with the most tags. Returns the tags that have
    /// moved, sorted; none if it was already there.
    pub(crate) fn join(&mut self, worker: u32) -> Vec<u32> {
        if self.is_member(worker) {
            return Vec::new();
        }
        let slots = self.to.len() - 1;
        let mut share: Vec<u32> = match self.shares.len() {
            0 => (1..=slots as u32).collect(),
            others => (0..slots / (others + 1)).filter_map(|_| self.take_from_fullest()).collect(),
        };
        share.sort_unstable();
        share.iter().for_each(|tag| self.to[*tag as usize] = worker);
        self.set_share(worker, share.clone());
        share
    }

    /// A worker's share goes to the workers with the fewest tags. Returns the tags that have moved,
    /// sorted.
    pub(crate) fn leave(&mut self, worker: u32) -> Vec<u32> {
        let Some(share) = self.shares.remove(&worker) else { return Vec::new() };
        self.by_size.remove(&(share.len(), worker));
        share.iter().for_each(|tag| self.give_to_emptiest(*tag));
        share
    }

    fn take_from_fullest(&mut self) -> Option<u32> {
        let (_, fullest) = *self.by_size.last()?;
        let mut share = self.take_share(fullest);
        let tag = share.pop();
        self.set_share(fullest, share);
        tag
    }

    fn give_to_emptiest(&mut self, tag: u32) {
        let emptiest = self.by_size.first().map_or(NOBODY, |(_, worker)| *worker);
        self.to[tag as usize] = emptiest;
        if emptiest != NOBODY {
            let mut share = self.take_share(emptiest);
            share.push(tag);
            self.set_share(emptiest, share);
        }
    }

    fn take_share(&mut self, worker: u32) -> Vec<u32> {
        let share = self.shares.get_mut(&worker).map(std::mem::take).unwrap_or_default();
        self.by_size.remove(&(share.len(), worker));
        share
    }

    fn set_share(&mut self, worker: u32, share: Vec<u32>) {
        if let Some(before) = self.shares.get(&worker) {
            self.by_size.remove(&(before.len(), worker));
        }
        self.by_size.insert((share.len(), worker));
        self.shares.insert(worker, share);
    }
}

#[cfg(test)]
mod tests {
    use super::{NOBODY, Table};

    const SLOTS: usize = 4_096;

    fn shares(table: &Table) -> Vec<usize> {
        table.shares.values().map(Vec::len).collect()
    }

    fn is_even(table: &Table) -> bool {
        let shares = shares(table);
        let (most, least) = (shares.iter().max(), shares.iter().min());
        most.zip(least).is_none_or(|(most, least)| most - least <= 1)
    }

    fn is_consistent(table: &Table) -> bool {
        let of =
            |worker: u32| (1..=SLOTS as u32).filter(move |tag| table.to(*tag) == worker).count();
        table.shares.iter().all(|(worker, share)| share.len() == of(*worker))
            && table.by_size.len() == table.shares.len()
    }

    #[test]
    fn t02_a_worker_that_joins_or_leaves_moves_its_own_share_and_nothing_else() {
        let mut table = Table::new(SLOTS, 7);
        let before = table.to.clone();
        let moved = table.join(7);
        assert_eq!(moved.len(), SLOTS / 8);
        for tag in 1..=SLOTS as u32 {
            let expected = if moved.contains(&tag) { 7 } else { before[tag as usize] };
            assert_eq!(table.to(tag), expected);
        }
        let before = table.to.clone();
        let moved = table.leave(3);
        assert!(moved.len() <= SLOTS / 8 + 1);
        for tag in 1..=SLOTS as u32 {
            assert_eq!(moved.contains(&tag), before[tag as usize] == 3);
            assert_eq!(moved.contains(&tag), table.to(tag) != before[tag as usize]);
        }
        assert!(is_even(&table) && is_consistent(&table));
    }

    #[test]
    fn t02_shares_stay_even_whoever_comes_and_goes() {
        let mut table = Table::new(SLOTS, 0);
        assert_eq!(table.to(1), NOBODY);
        let mut chance = 42_u64;
        for _ in 0..2_000 {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let worker = (chance >> 40) as u32 % 40;
            match chance >> 63 {
                0 => table.join(worker),
                _ => table.leave(worker),
            };
            assert!(is_even(&table), "{:?}", shares(&table));
        }
        assert!(is_consistent(&table));
        (0..40).for_each(|worker| drop(table.leave(worker)));
        assert!((1..=SLOTS as u32).all(|tag| table.to(tag) == NOBODY));
        assert_eq!(table.join(5).len(), SLOTS);
    }

    #[test]
    fn a_table_may_have_fewer_slots_than_there_are_workers() {
        let mut table = Table::new(2, 2);
        assert_eq!(table.join(2), []);
        assert_eq!(table.leave(0), [1]);
        assert_eq!(table.to(1), 2);
    }
}
