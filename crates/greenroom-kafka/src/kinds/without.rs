//! What a build without the feature `client` opens: nothing. A program refuses such options before.

use std::sync::Arc;

use greenroom_bus::{
    dead_letter::{
        DeadLetterStore,
        redrive::{InputOfLetters, LetterChoice, Redriven},
    },
    sink::Sink,
    source::{InputSetup, Source},
};
use greenroom_config::At;

use super::{KafkaInput, KafkaLetters, KafkaOutput};

fn lacking<T>() -> Result<T, String> {
    Err("this build has no client of Kafka".to_owned())
}

pub(super) fn reach_input(_: &KafkaInput, _: &mut At<'_>) {}

pub(super) fn reach_output(_: &KafkaOutput, _: &mut At<'_>) {}

pub(super) fn reach_letters(_: &KafkaLetters, _: &mut At<'_>) {}

pub(super) fn source(_: &KafkaInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    lacking()
}

pub(super) fn looking(_: &KafkaInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    lacking()
}

pub(super) fn sink(_: &KafkaOutput) -> Result<Arc<dyn Sink>, String> {
    lacking()
}

pub(super) fn letters(_: &KafkaLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    lacking()
}

pub(super) fn redrive(
    _: &KafkaLetters,
    _: LetterChoice,
    _: &[InputOfLetters<'_>],
    _: &mut dyn FnMut(&Redriven),
) -> Result<Redriven, String> {
    lacking()
}
