//! Events from a seed (B04): it gives its own.

use greenroom_bus::{
    BoxFuture,
    source::{
        Partition, Pull, Source, SourceError, Taken,
        generator::{GeneratorOptions, GeneratorSource, Rate},
    },
};
use greenroom_test::{
    conformance,
    conformance::{Ability, Body, Check, Clock, Connector, Item, Place, not_applicable},
};

conformance!(as_fast_as_it_is_read: Generator { rate: None });
conformance!(at_a_rate: Generator { rate: Some(5_000.0) });

#[derive(Clone, Copy)]
struct Generator {
    rate: Option<f64>,
}

impl Generator {
    fn source(self, count: u64) -> Result<GeneratorSource, SourceError> {
        let rate = self.rate;
        let options = GeneratorOptions {
            count: Some(count),
            keys: 30,
            zipf: 0.8,
            rate: rate.map(|per_second| Rate { per_second }),
            ..Default::default()
        };
        GeneratorSource::new(options)
    }
}

impl Connector for Generator {
    fn name(&self) -> String {
        "generator".to_owned()
    }

    fn lacks(&self, ability: Ability) -> Option<&'static str> {
        match ability {
            Ability::Replays | Ability::KeepsPositions => Some("it begins anew in each run"),
            Ability::Partitions | Ability::Revokes => Some("a generator is one partition"),
            Ability::HoldsMalformed | Ability::HasGaps => Some("it makes its own events"),
            Ability::IsLive => Some("how many it makes is said when it is made"),
        }
    }

    fn clock(&self) -> Clock {
        Clock::Virtual
    }

    /// What another generator with the same seed makes.
    fn items(&self, wanted: Vec<Item>) -> Vec<Item> {
        let unhurried = Self { rate: None };
        let Ok(mut source) = unhurried.source(wanted.len() as u64) else { return Vec::new() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut taken = Vec::new();
        runtime.block_on(async { while source.pull(&mut taken).await.unwrap() == Pull::More {} });
        let item = |taken: Taken| {
            Some(Item { partition: Partition::ONLY, body: Body::Event(taken.event.ok()?) })
        };
        taken.into_iter().filter_map(item).collect()
    }

    fn place(&self) -> Result<Box<dyn Place>, String> {
        Ok(Box::new(Seeded { generator: *self, count: 0 }))
    }
}

struct Seeded {
    generator: Generator,
    count: u64,
}

impl Place for Seeded {
    fn publish<'a>(&'a mut self, items: &'a [Item]) -> BoxFuture<'a, Result<(), String>> {
        self.count += items.len() as u64;
        Box::pin(std::future::ready(Ok(())))
    }

    fn open<'a>(&'a mut self) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        let source = self.generator.source(self.count);
        let source = source.map(|source| Box::new(source) as _).map_err(|error| error.to_string());
        Box::pin(std::future::ready(source))
    }
}

#[test]
fn v01_what_a_generator_cannot_do_is_told() {
    let told = Check::ALL.map(|check| (check, not_applicable(&Generator { rate: None }, check)));
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
