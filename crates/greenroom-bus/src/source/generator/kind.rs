//! The generator as an input of a configuration.

use greenroom_config::{At, Listing};

use super::{GeneratorOptions, GeneratorSource};
use crate::{
    BoxFuture,
    source::{InputKind, InputSetup, OpenInput, RecordShape, Source, input},
};

/// Its line in the registry.
pub const INPUT: Listing<dyn InputKind> =
    input::<GeneratorOptions>("generator", "Makes up events, the same ones for the same seed.")
        .start("{ count: 1000, types: [order.changed] }");

impl GeneratorOptions {
    pub(super) fn checked(self, at: &mut At<'_>) -> Option<Self> {
        if self.keys == 1 {
            let text = "with a single key there is nothing to be uneven";
            at.useless("zipf", text, "leave `zipf` out, or raise `keys`");
        }
        for (index, ty) in self.types.iter().enumerate().filter(|(_, ty)| ty.contains('*')) {
            let text = format!("events are made of the type `{ty}` as it stands: it is no pattern");
            at.useless(&format!("types.{index}"), text, "name the types one by one");
        }
        Some(self)
    }

    fn source(&self) -> Result<GeneratorSource, String> {
        GeneratorSource::new(self.clone()).map_err(|error| error.to_string())
    }
}

impl InputKind for GeneratorOptions {
    fn record(&self) -> Option<RecordShape> {
        None
    }

    fn keeps_positions(&self) -> bool {
        false
    }

    fn types<'a>(&'a self, _: Option<&'a str>) -> Option<Vec<&'a str>> {
        Some(self.types.iter().map(String::as_str).collect())
    }

    fn open<'a>(&'a self, _: &'a InputSetup) -> BoxFuture<'a, Result<OpenInput, String>> {
        Box::pin(async { self.source().map(OpenInput::reads) })
    }

    fn look<'a>(&'a self, _: &'a InputSetup) -> BoxFuture<'a, Result<Box<dyn Source>, String>> {
        Box::pin(async { self.source().map(|source| Box::new(source) as _) })
    }
}
