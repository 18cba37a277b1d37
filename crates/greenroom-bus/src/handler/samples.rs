//! Events and attempts for the tests of handlers.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::{Attempt, HandlerResult, Handling};
use crate::event::Event;

/// An event with this id and this JSON data.
pub(crate) fn event(id: &str, data: &str) -> Event {
    let data = RawValue::from_string(data.to_owned()).expect("JSON");
    Event::builder(id, "/samples", "sample.made")
        .subject("s")
        .data_raw(data)
        .build()
        .expect("an event")
}

/// A first attempt.
pub(crate) fn attempt() -> Attempt {
    let (pool, handler) = ("default".into(), "sample".into());
    Attempt { number: 1, pool, handler, worker: 0, fence: Some(1_764_278_460_000), share: None }
}

/// The result of an attempt, awaited if necessary.
pub(crate) async fn settle(handling: Handling<'_>) -> HandlerResult {
    match handling {
        Handling::Done(result) => result,
        Handling::Later(result) => result.await,
    }
}

/// A log that keeps its lines: each is the level, then the fields as `name=value`.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Fields(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}
