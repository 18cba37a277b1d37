//! The numbers of partitions, and their names.

use std::{collections::BTreeMap, sync::Arc};

use greenroom_bus::source::{Partition, Place as Where, Places};
use parking_lot::Mutex;

use crate::place::Place;

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

    pub(super) fn number(&mut self, place: &Place) -> Partition {
        if self.single.as_deref() == Some(&*place.topic) {
            return Partition(place.partition.unsigned_abs());
        }
        let first = if self.single.is_some() { BEHIND_SINGLE } else { 0 };
        let next = Partition(first + self.known.len() as u32);
        *self.known.entry(place.clone()).or_insert(next)
    }
}

/// The names of all partitions that were ever assigned, for letters and errors (D06).
pub(super) struct Names {
    /// The source as a whole.
    pub(super) source: Arc<str>,
    pub(super) partitions: Mutex<BTreeMap<Partition, Arc<str>>>,
}

impl Names {
    pub(super) fn new(source: &str) -> Self {
        Self { source: source.into(), partitions: Mutex::default() }
    }

    pub(super) fn is(&self, number: Partition, place: &Place) {
        self.partitions.lock().entry(number).or_insert_with(|| place.source());
    }
}

impl Places for Names {
    fn place(&self, partition: Option<Partition>, position: u64) -> Where {
        let named = partition.and_then(|number| self.partitions.lock().get(&number).cloned());
        Where { source: named.unwrap_or_else(|| self.source.clone()), position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d15_the_partitions_of_a_single_topic_keep_their_numbers() {
        let mut numbers = Numbers::new(&["a".to_owned()]);
        assert_eq!(numbers.number(&Place::new("a", 7)), Partition(7));
        assert_eq!(numbers.number(&Place::new("b", 7)), Partition(BEHIND_SINGLE));
        let mut numbers = Numbers::new(&["^a".to_owned()]);
        let numbered = [("a1", 3), ("a2", 3), ("a1", 3), ("a1", 4)]
            .map(|(topic, partition)| numbers.number(&Place::new(topic, partition)).0);
        assert_eq!(numbered, [0, 1, 0, 2]);
    }

    #[test]
    fn d06_a_letter_names_the_partition_that_its_event_was_in() {
        let names = Names::new("kafka:^a");
        names.is(Partition(4), &Place::new("a1", 3));
        let of = |number: Option<u32>| names.place(number.map(Partition), 17).source;
        assert_eq!(&*of(Some(4)), "kafka:a1/3");
        assert_eq!([&*of(Some(5)), &*of(None)], ["kafka:^a"; 2]);
    }
}
