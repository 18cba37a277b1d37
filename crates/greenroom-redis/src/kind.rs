//! The input `redis` of a configuration.

use greenroom_bus::{
    BoxFuture, by_client,
    kind::are_readable,
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, input},
};
use greenroom_config::{At, Listing};

use crate::options::RedisInput;

/// The entry in the registry of kinds.
pub const INPUT: Listing<dyn InputKind> =
    input::<RedisInput>("redis", "Reads Redis streams as a member of a consumer group.");

impl InputKind for RedisInput {
    fn record(&self) -> Option<RecordShape> {
        let parts = &["pointer", "header", "key", "topic", "time"];
        Some(RecordShape { one: "an entry", parts })
    }

    fn lacks(&self, part: &str) -> Option<(&'static str, &'static str)> {
        (part == "key" && self.key.is_none()).then_some((
            "an entry of this input has no key",
            "say what the key of an entry is: `redis: { key: { field: customer } }`",
        ))
    }

    fn keeps_positions(&self) -> bool {
        true
    }

    fn reach(&self, at: &mut At<'_>) {
        let files = self.tls.iter().flat_map(|tls| tls.files());
        are_readable(&mut at.inside("tls"), files);
    }

    fn open<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async {
            by_client!("Redis", setup => {
                let (input, records) = (self.clone(), setup.records.clone());
                crate::source::RedisSource::open(input, records).await.map(OpenInput::reads)
            })
        })
    }

    fn look<'a>(&'a self, setup: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async {
            by_client!("Redis", setup => {
                let looking = crate::source::RedisLooking::open(self, setup.records.clone()).await;
                looking.map(|looking| Box::new(looking) as _)
            })
        })
    }

    fn looked(&self) -> Option<&'static str> {
        Some(
            "no group was joined: entries of streams were read that no consumer of the group has read",
        )
    }
}
