//! What a build without the feature `kafka` makes of it: a configuration that was checked has none.

use std::sync::Arc;

use greenroom_bus::{
    sink::Sink,
    source::{InputSetup, Source},
};
use greenroom_config::At;

use super::{KafkaInput, KafkaOutput};
use crate::config::lacking::lacking;

pub(super) fn reach_input(_: &KafkaInput, _: &mut At<'_>) {}

pub(super) fn source(_: &KafkaInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("kafka").unwrap_or_default())
}

pub(super) fn looking(_: &KafkaInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    Err(lacking("kafka").unwrap_or_default())
}

pub(super) fn reach_output(_: &KafkaOutput, _: &mut At<'_>) {}

pub(super) fn sink(_: &KafkaOutput) -> Result<Arc<dyn Sink>, String> {
    Err(lacking("kafka").unwrap_or_default())
}

impl super::KafkaLetters {
    pub(crate) fn reach(&self, _: &mut At<'_>) {}
}
