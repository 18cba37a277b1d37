//! Events that the program itself hands over (B04).

use greenroom_bus::{
    BoxFuture,
    source::{
        Source,
        memory::{MemoryInput, MemorySource, channel},
    },
};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Check, Clock, Connector, Item, Place, not_applicable},
};

conformance!(of_the_program: Memory);

/// More than any check publishes: nobody reads before the source is opened.
const CAPACITY: usize = 4_000;

struct Memory;

impl Connector for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Replays | Ability::KeepsPositions => {
                Some("whoever delivers an event hears how it ended, and nothing is kept")
            }
            Ability::Partitions | Ability::Revokes => Some("a queue is one partition"),
            Ability::HoldsMalformed => Some("it is given events, which are well-formed"),
            Ability::HasGaps => Some("its positions count what it was given"),
            Ability::IsLive => None,
        }
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        let (input, source) = channel("conformance", CAPACITY);
        Ok(Box::new(Queue { input, source: Some(source) }))
    }
}

/// A queue is read once.
struct Queue {
    input: MemoryInput,
    source: Option<MemorySource>,
}

impl Place for Queue {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            for item in items {
                let Body::Event(event) = &item.body else { return Err("no event".to_owned()) };
                self.input.send(event.clone()).await.map_err(|error| error.to_string())?;
            }
            Ok(())
        })
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        let source = self.source.take().map(|source| Box::new(source) as _);
        Box::pin(std::future::ready(source.ok_or_else(|| "it was read before".to_owned())))
    }
}

#[test]
fn v01_what_a_queue_in_memory_cannot_do_is_told() {
    let told = Check::ALL.map(|check| (check, not_applicable(&Memory, check)));
    let told: Vec<_> = told.into_iter().filter(|(_, why)| why.is_some()).collect();
    let not = [
        Check::BoundedRepeats,
        Check::MalformedEvents,
        Check::Restart,
        Check::Gaps,
        Check::RevokeDuringLoad,
    ];
    assert_eq!(told.iter().map(|(check, _)| *check).collect::<Vec<_>>(), not);
}
