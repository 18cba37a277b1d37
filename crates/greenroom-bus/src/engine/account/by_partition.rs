//! Of which partitions the events of a key are, for whoever asks why it waits (C13, D15). Only
//! events of inputs with several partitions are counted; the others do not come here.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::order_audit::LineId;
use crate::source::Partition;

/// How many events of a line are not settled, of each partition.
type Counts = Vec<(Partition, u32)>;

/// By the line that they stand in, until they are settled.
#[derive(Debug, Default)]
pub(crate) struct ByPartition {
    lines: Mutex<HashMap<LineId, Counts>>,
}

impl ByPartition {
    /// An event of this line has been taken of this partition.
    pub(crate) fn taken(&self, line: LineId, partition: Partition) {
        let mut lines = self.lines.lock();
        let counts = lines.entry(line).or_default();
        match counts.iter_mut().find(|(known, _)| *known == partition) {
            Some((_, events)) => *events += 1,
            None => counts.push((partition, 1)),
        }
    }

    /// It is settled.
    pub(crate) fn settled(&self, line: LineId, partition: Partition) {
        let mut lines = self.lines.lock();
        let Some(counts) = lines.get_mut(&line) else { return };
        if let Some((_, events)) = counts.iter_mut().find(|(known, _)| *known == partition) {
            *events -= 1;
        }
        counts.retain(|(_, events)| *events > 0);
        if counts.is_empty() {
            lines.remove(&line);
        }
    }

    /// How many events of this line are not settled, in the order of partitions.
    pub(crate) fn of(&self, line: LineId) -> Vec<(Partition, u32)> {
        let mut counts = self.lines.lock().get(&line).cloned().unwrap_or_default();
        counts.sort_unstable();
        counts
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
        assert_eq!(by.of(line), [(Partition(2), 1), (Partition(5), 2)]);
        by.settled(line, Partition(2));
        assert_eq!(by.of(line), [(Partition(5), 2)]);
        by.settled(line, Partition(5));
        by.settled(line, Partition(5));
        assert!(by.of(line).is_empty() && by.lines.lock().is_empty());
    }
}
