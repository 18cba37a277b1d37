//! Events that wait for room in a pool, taking turns by partition.
//!
//! ```text
//! partition 1  ─ ─ ─┐
//! partition 2  ─ ─ ─┼─ some of each in turn ─▶ front ─▶ pool
//! partition 3  ─ ─ ─┘
//! ```
//!
//! A source gives a partition in pieces of many events. Handed over in the order in which they
//! came, one piece fills the pool, with events of the few keys that this partition has, and keys of
//! the other partitions wait while workers have nothing to do.

use std::collections::VecDeque;

/// Items of one partition in a turn.
const TURN: usize = 16;

#[derive(Debug)]
pub(crate) struct Rotation<T> {
    /// They go first, in this order.
    front: VecDeque<T>,
    /// Behind them, by partition; the order of each is kept.
    lots: Vec<Lot<T>>,
    /// In all lots.
    in_lots: usize,
    /// The lot that was added to last: the next one is mostly for it, too.
    last: usize,
}

#[derive(Debug)]
struct Lot<T> {
    of: u32,
    items: VecDeque<T>,
}

impl<T> Default for Rotation<T> {
    fn default() -> Self {
        Self { front: VecDeque::new(), lots: Vec::new(), in_lots: 0, last: 0 }
    }
}

impl<T> Rotation<T> {
    pub(crate) fn len(&self) -> usize {
        self.front.len() + self.in_lots
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Behind all that waits of its partition.
    pub(crate) fn push_in_turn(&mut self, of: u32, item: T) {
        if self.lots.get(self.last).is_none_or(|lot| lot.of != of) {
            let known = self.lots.iter().position(|lot| lot.of == of);
            self.last = known.unwrap_or_else(|| {
                // Some of these are of partitions that were taken away.
                self.lots.retain(|lot| !lot.items.is_empty());
                self.lots.push(Lot { of, items: VecDeque::new() });
                self.lots.len() - 1
            });
        }
        self.lots[self.last].items.push_back(item);
        self.in_lots += 1;
    }

    /// Behind all that waits.
    pub(crate) fn push_last(&mut self, item: T) {
        while self.in_lots > 0 {
            self.turn();
        }
        self.front.push_back(item);
    }

    /// Some of each go to the front.
    fn turn(&mut self) {
        let Self { front, lots, in_lots, .. } = self;
        for Lot { items, .. } in lots {
            let count = items.len().min(TURN);
            front.extend(items.drain(..count));
            *in_lots -= count;
        }
    }

    /// The next ones, in order; empty only if nothing waits.
    pub(crate) fn front(&mut self) -> &mut VecDeque<T> {
        if self.front.is_empty() && self.in_lots > 0 {
            self.turn();
        }
        &mut self.front
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.front.iter().chain(self.lots.iter().flat_map(|lot| &lot.items))
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&T) -> bool) {
        self.front.retain(&mut stays);
        self.lots.iter_mut().for_each(|lot| lot.items.retain(&mut stays));
        // A partition that is taken away leaves with all that it had.
        self.lots.retain(|lot| !lot.items.is_empty());
        self.in_lots = self.lots.iter().map(|lot| lot.items.len()).sum();
    }

    /// Takes those out that this says yes to; those of a partition in order.
    pub(crate) fn take_all(&mut self, wanted: impl Fn(&T) -> bool) -> VecDeque<T> {
        let mut taken = VecDeque::new();
        let queues = self.lots.iter_mut().map(|lot| &mut lot.items);
        for queue in std::iter::once(&mut self.front).chain(queues) {
            let (wanted, others) = queue.drain(..).partition(&wanted);
            taken.extend::<VecDeque<T>>(wanted);
            *queue = others;
        }
        self.in_lots = self.lots.iter().map(|lot| lot.items.len()).sum();
        taken
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.in_lots = 0;
        let lots = self.lots.drain(..).flat_map(|lot| lot.items);
        self.front.drain(..).chain(lots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(partition: u32, numbers: std::ops::Range<usize>, into: &mut Rotation<(u32, usize)>) {
        numbers.for_each(|number| into.push_in_turn(partition, (partition, number)));
    }

    fn taken(from: &mut Rotation<(u32, usize)>) -> Vec<(u32, usize)> {
        std::iter::from_fn(|| from.front().pop_front()).collect()
    }

    #[test]
    fn d15_partitions_take_turns_and_each_keeps_its_order() {
        let mut waiting = Rotation::default();
        of(1, 0..1_000, &mut waiting);
        of(2, 0..20, &mut waiting);
        of(3, 0..500, &mut waiting);
        assert_eq!(waiting.len(), 1_520);
        let taken = taken(&mut waiting);
        assert_eq!(taken.len(), 1_520);
        assert!(waiting.is_empty());
        for partition in 1..=3 {
            let numbers =
                taken.iter().filter(|(of, _)| *of == partition).map(|(_, number)| *number);
            assert!(numbers.is_sorted(), "{partition}");
            let first = taken.iter().position(|(of, _)| *of == partition);
            assert_eq!(first, Some((partition as usize - 1) * TURN));
        }
        assert_eq!(taken[3 * TURN..].iter().position(|(of, _)| *of == 3), Some(TURN + 4));
    }

    #[test]
    fn d02_what_is_to_be_last_comes_after_all_that_waits_and_before_what_comes_later() {
        let mut waiting = Rotation::default();
        of(1, 0..100, &mut waiting);
        waiting.push_last((9, 0));
        of(1, 100..200, &mut waiting);
        let taken = taken(&mut waiting);
        assert_eq!(taken[100], (9, 0));
        assert_eq!(taken[101..], (100..200).map(|number| (1, number)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_given_up_or_set_aside_leaves_the_others_in_order() {
        let mut waiting = Rotation::default();
        of(1, 0..40, &mut waiting);
        of(2, 0..40, &mut waiting);
        waiting.front().pop_front();
        let odd = waiting.take_all(|(_, number)| number % 2 == 1);
        assert_eq!(odd.len(), 40);
        let first: Vec<_> = odd.iter().filter(|(of, _)| *of == 1).collect();
        assert!(first.is_sorted());
        waiting.retain(|(of, _)| *of == 2);
        assert_eq!(waiting.len(), waiting.iter().count());
        assert_eq!(waiting.drain().count(), 20);
        assert!(waiting.is_empty());
    }
}
