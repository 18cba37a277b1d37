//! What a build without the feature `nats` makes of it: a configuration that was checked has none.

use std::sync::Arc;

use greenroom_bus::{
    sink::Sink,
    source::{InputSetup, Source},
};
use greenroom_config::At;

use super::{NatsInput, NatsOutput};
use crate::config::lacking::lacking;

pub(super) fn reach_input(_: &NatsInput, _: &mut At<'_>) {}

pub(super) async fn source(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("nats").unwrap_or_default())
}

pub(super) async fn looking(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("nats").unwrap_or_default())
}

pub(super) fn reach_output(_: &NatsOutput, _: &mut At<'_>) {}

pub(super) async fn sink(_: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    Err(lacking("nats").unwrap_or_default())
}

impl super::NatsLetters {
    pub(crate) fn reach(&self, _: &mut At<'_>) {}
}
