//! What a build without the feature `nats` makes of it: a configuration that was checked has none.

use greenroom_bus::source::{InputSetup, Source};
use greenroom_config::At;

use super::NatsInput;
use crate::config::lacking::lacking;

pub(super) fn reach_input(_: &NatsInput, _: &mut At<'_>) {}

pub(super) async fn source(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("nats").unwrap_or_default())
}

pub(super) async fn looking(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("nats").unwrap_or_default())
}

impl super::NatsOutput {
    pub(crate) fn reach(&self, _: &mut At<'_>) {}
}

impl super::NatsLetters {
    pub(crate) fn reach(&self, _: &mut At<'_>) {}
}
