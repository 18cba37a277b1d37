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

use super::{NatsInput, NatsLetters, NatsOutput};

fn lacking<T>() -> Result<T, String> {
    Err("this build has no client of NATS".to_owned())
}

pub(super) async fn source(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    lacking()
}

pub(super) async fn looking(_: &NatsInput, _: &InputSetup) -> Result<Box<dyn Source>, String> {
    lacking()
}

pub(super) async fn sink(_: &NatsOutput) -> Result<Arc<dyn Sink>, String> {
    lacking()
}

pub(super) async fn letters(_: &NatsLetters) -> Result<Arc<dyn DeadLetterStore>, String> {
    lacking()
}

pub(super) fn redrive(
    _: &NatsLetters,
    _: LetterChoice,
    _: &[InputOfLetters<'_>],
    _: &mut dyn FnMut(&Redriven),
) -> Result<Redriven, String> {
    lacking()
}
