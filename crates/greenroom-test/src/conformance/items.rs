//! The items that a check publishes.

use greenroom_bus::{
    event::{Event, EventError},
    source::{Partition, generator::zipf::Chance},
};

use super::connector::{Body, Item};

/// Partitions of a connector that has several.
pub(super) const PARTITIONS: u32 = 3;

/// Keys of each partition.
const KEYS: usize = 12;

/// Makes events whose ids rise from 1, with keys that stay in their partitions.
pub(super) struct Items {
    chance: Chance,
    partitions: u32,
    /// Events made so far.
    made: u64,
}

impl Items {
    pub(super) fn new(seed: u64, partitions: u32) -> Self {
        Self { chance: Chance::new(seed), partitions, made: 0 }
    }

    /// This many events.
    pub(super) fn events(&mut self, count: usize) -> Result<Vec<Item>, String> {
        let all = self.partitions;
        (0..count).map(|_| self.event(all)).collect()
    }

    /// This many events, about every third one after an item that `other` makes from a number.
    pub(super) fn mixed(
        &mut self,
        count: usize,
        other: impl Fn(u64) -> Body,
    ) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        for event in self.events(count)? {
            if self.chance.below(3) == 0 {
                self.made += 1;
                items.push(Item { partition: event.partition, body: other(self.made) });
            }
            items.push(event);
        }
        Ok(items)
    }

    fn event(&mut self, partitions: u32) -> Result<Item, String> {
        self.made += 1;
        let partition = self.chance.below(partitions as usize);
        let key = format!("key-{partition}-{}", self.chance.below(KEYS));
        let event = build(self.made, &key).map_err(|error| error.to_string())?;
        Ok(Item { partition: Partition(partition as u32), body: Body::Event(event) })
    }
}

fn build(number: u64, key: &str) -> Result<Event, EventError> {
    Event::builder(number.to_string(), "conformance", "made").subject(key).build()
}
