//! Checks, independently of how order is kept, that events of a key leave in the
//! order in which they came.
//!
//! Memory is proportional to pending keys: a key is forgotten with its last pending event.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, BuildHasherDefault, Hash, Hasher},
    num::NonZeroU64,
    sync::Arc,
};

use parking_lot::Mutex;

/// The line of an event: its input, its handler and its key. Hashed once, because lines are looked
/// up several times for each event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderLine {
    id: LineId,
    pub(crate) input: u32,
    pub(crate) handler: u32,
    pub(crate) key: Arc<str>,
}

/// The hash of a line, by which the audit knows it: to compare a key that has left the caches costs
/// more than all else that is done here. Two lines of one hash would be taken for one; with 100,000
/// of them pending, the odds of that are one to four thousand million.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LineId(NonZeroU64);

impl LineId {
    /// Which of the parts it is in. The bits in the middle choose: a table looks at those at either
    /// end.
    pub(super) fn part(self) -> usize {
        (self.0.get() >> 32) as usize % PARTS
    }
}

impl OrderLine {
    pub(crate) fn new(input: u32, handler: u32, key: Arc<str>, hasher: &impl BuildHasher) -> Self {
        let hash = hasher.hash_one((input, handler, &*key));
        let id = LineId(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN));
        Self { id, input, handler, key }
    }

    pub(crate) fn id(&self) -> LineId {
        self.id
    }

    /// The same for the same line; two lines share one hardly ever.
    pub(crate) fn number(&self) -> u64 {
        self.id.0.get()
    }
}

impl Hash for OrderLine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.id.0.get());
    }
}

#[derive(Debug)]
struct PendingOrder {
    line: OrderLine,
    events: u32,
    /// The highest number that has left, and the partition of that event, if any.
    last: u64,
    of: Option<u32>,
}

/// The value is a hash already and is used as such, also in a key that holds a partition as well.
#[derive(Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        unreachable!("a line is known by a whole number, not by {bytes:?}");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write_u32(&mut self, partition: u32) {
        // Odd, with its bits spread: neighbours differ at both ends.
        self.0 ^= u64::from(partition).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type OrderLines = HashMap<LineId, PendingOrder, BuildHasherDefault<Hashed>>;

/// Locks are spread over this many parts.
pub(super) const PARTS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct OrderAudit {
    parts: [Mutex<OrderLines>; PARTS],
    hasher: foldhash::quality::RandomState,
}

impl OrderAudit {
    fn part(&self, line: LineId) -> &Mutex<OrderLines> {
        &self.parts[line.part()]
    }

    /// The line of this key.
    pub(crate) fn line(&self, input: u32, handler: usize, key: Arc<str>) -> OrderLine {
        OrderLine::new(input, handler as u32, key, &self.hasher)
    }

    /// An event of this line has been taken.
    pub(crate) fn taken(&self, line: &OrderLine) {
        match self.part(line.id).lock().entry(line.id) {
            Entry::Occupied(mut pending) => pending.get_mut().events += 1,
            Entry::Vacant(place) => {
                place.insert(PendingOrder { line: line.clone(), events: 1, last: 0, of: None });
            }
        }
    }

    /// The event with this number (rising from 1 in its input; 0 if it has no order) leaves, and is
    /// not pending any more. False if a later one has left before it. A key that comes in several
    /// partitions has an order in each, and none among them.
    pub(crate) fn leaves(&self, line: LineId, number: u64, of: Option<u32>) -> bool {
        let mut is_in_order = true;
        self.ends(line, |pending| {
            let is_comparable = of.is_none() || pending.of.is_none() || of == pending.of;
            is_in_order = number == 0 || !is_comparable || number > pending.last;
            pending.last = if is_comparable { pending.last.max(number) } else { number };
            pending.of = of;
        });
        is_in_order
    }

    /// The event is settled without having left.
    pub(crate) fn stays_behind(&self, line: LineId) {
        self.ends(line, |_| {});
    }

    fn ends(&self, line: LineId, look: impl FnOnce(&mut PendingOrder)) {
        let mut lines = self.part(line).lock();
        let Entry::Occupied(mut pending) = lines.entry(line) else { return };
        look(pending.get_mut());
        pending.get_mut().events -= 1;
        let forgotten = (pending.get().events == 0).then(|| pending.remove());
        if lines.is_empty() && lines.capacity() > 1_024 {
            lines.shrink_to_fit();
        }
        drop(lines);
        drop(forgotten);
    }

    /// The line that is known by this, while events of it are pending.
    pub(crate) fn find(&self, line: LineId) -> Option<OrderLine> {
        self.part(line).lock().get(&line).map(|pending| pending.line.clone())
    }

    /// How many events of this line were taken, have not left, and are not settled. `None` if there
    /// are none.
    pub(crate) fn pending(&self, line: &OrderLine) -> Option<u32> {
        self.part(line.id).lock().get(&line.id).map(|pending| pending.events)
    }

    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.parts.iter().map(|part| part.lock().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str) -> OrderLine {
        OrderLine::new(0, 0, key.into(), &foldhash::quality::FixedState::default())
    }

    #[test]
    fn o11_two_swapped_events_are_out_of_order() {
        let audit = OrderAudit::default();
        for _ in 0..3 {
            audit.taken(&line("a"));
        }
        assert!(audit.leaves(line("a").id(), 1, None));
        assert!(audit.leaves(line("a").id(), 3, None));
        assert!(!audit.leaves(line("a").id(), 2, None));
    }

    #[test]
    fn o11_a_key_of_two_partitions_has_an_order_in_each_and_none_among_them() {
        let audit = OrderAudit::default();
        for _ in 0..5 {
            audit.taken(&line("a"));
        }
        assert!(audit.leaves(line("a").id(), 3, Some(1)));
        assert!(audit.leaves(line("a").id(), 1, Some(2)));
        assert!(audit.leaves(line("a").id(), 4, Some(2)));
        assert!(!audit.leaves(line("a").id(), 2, Some(2)));
    }

    #[test]
    fn lines_do_not_mix_and_are_forgotten_with_their_last_event() {
        let audit = OrderAudit::default();
        audit.taken(&line("a"));
        audit.taken(&line("b"));
        assert!(audit.leaves(line("b").id(), 2, None));
        assert_eq!(audit.remembered(), 1);
        audit.stays_behind(line("a").id());
        assert_eq!(audit.remembered(), 0);
    }
}

#[cfg(test)]
mod engine_tests;
