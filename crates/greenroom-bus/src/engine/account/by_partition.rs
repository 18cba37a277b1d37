//! The partitions of a key's events, to answer why it waits (C13, D15). Only events of inputs with
//! several partitions are counted; others do not come here.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasherDefault,
};

use parking_lot::Mutex;

use super::order_audit::{Hashed, LineId, PARTS};
use crate::source::Partition;

/// How many events of a line are not settled, of each partition.
type CountsByPartition = HashMap<(LineId, Partition), u32, BuildHasherDefault<Hashed>>;

/// By the line that they stand in, until they are settled.
#[derive(Debug, Default)]
pub(crate) struct ByPartition {
    parts: [Mutex<CountsByPartition>; PARTS],
}

impl ByPartition {
    fn part(&self, line: LineId) -> &Mutex<CountsByPartition> {
        &self.parts[line.part()]
    }

    /// An event of this line has been taken of this partition.
    pub(crate) fn taken(&self, line: LineId, partition: Partition) {
        *self.part(line).lock().entry((line, partition)).or_default() += 1;
    }

    /// It is settled.
    pub(crate) fn settled(&self, line: LineId, partition: Partition) {
        let mut counts = self.part(line).lock();
        let Entry::Occupied(mut events) = counts.entry((line, partition)) else { return };
        *events.get_mut() -= 1;
        if *events.get() == 0 {
            events.remove();
        }
    }

    /// The number of unsettled events of this line, by partition, in order. Scans all lines of a
    /// part, so it is for requests by an operator.
    pub(crate) fn partitions(&self, line: LineId) -> Vec<(Partition, u32)> {
        let counts = self.part(line).lock();
        let of_line = counts.iter().filter(|((of, _), _)| *of == line);
        let mut found: Vec<_> = of_line.map(|((_, of), events)| (*of, *events)).collect();
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::account::order_audit::OrderAudit;

    #[test]
    fn d15_of_a_line_with_several_partitions_it_is_known_how_many_wait_of_each() {
        let (by, line) =
            (ByPartition::default(), OrderAudit::default().line(0, 0, "a".into()).id());
        for partition in [5, 2, 5] {
            by.taken(line, Partition(partition));
        }
        assert_eq!(by.partitions(line), [(Partition(2), 1), (Partition(5), 2)]);
        by.settled(line, Partition(2));
        assert_eq!(by.partitions(line), [(Partition(5), 2)]);
        by.settled(line, Partition(5));
        by.settled(line, Partition(5));
        assert!(by.partitions(line).is_empty() && by.part(line).lock().is_empty());
    }
}
