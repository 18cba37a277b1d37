//! Partitions of topics, and their numbers.

use std::{collections::BTreeMap, fmt, sync::Arc};

use greenroom_bus::source::Partition;

/// A partition of a topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
}

impl Place {
    pub(super) fn new(topic: &str, partition: i32) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.partition)
    }
}

/// Numbers for the engine. Those of a source with a single topic are Kafka's; of others, partitions
/// are numbered as they are first assigned, and keep their numbers while the source runs.
pub(super) struct Numbers {
    single: Option<String>,
    known: BTreeMap<Place, Partition>,
}

/// Where numbers that are not Kafka's begin for a source that had a single topic at first.
const BEHIND_SINGLE: u32 = 1 << 20;

impl Numbers {
    pub(super) fn new(topics: &[String]) -> Self {
        let single = match topics {
            [topic] if !topic.starts_with('^') => Some(topic.clone()),
            _ => None,
        };
        Self { single, known: BTreeMap::new() }
    }

    pub(super) fn of(&mut self, place: &Place) -> Partition {
        if self.single.as_deref() == Some(&*place.topic) {
            return Partition(place.partition.unsigned_abs());
        }
        let first = if self.single.is_some() { BEHIND_SINGLE } else { 0 };
        let next = Partition(first + self.known.len() as u32);
        *self.known.entry(place.clone()).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d15_the_partitions_of_a_single_topic_keep_their_numbers() {
        let mut numbers = Numbers::new(&["a".to_owned()]);
        assert_eq!(numbers.of(&Place::new("a", 7)), Partition(7));
        assert_eq!(numbers.of(&Place::new("b", 7)), Partition(BEHIND_SINGLE));
        let mut numbers = Numbers::new(&["^a".to_owned()]);
        let numbered = [("a1", 3), ("a2", 3), ("a1", 3), ("a1", 4)]
            .map(|(topic, partition)| numbers.of(&Place::new(topic, partition)).0);
        assert_eq!(numbered, [0, 1, 0, 2]);
    }
}
