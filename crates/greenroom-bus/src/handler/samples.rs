//! Events and attempts for the tests of handlers.

use serde_json::value::RawValue;

use super::{Attempt, HandlerResult, Handling};
use crate::event::Event;

/// An event with this id and this JSON data.
pub(super) fn event(id: &str, data: &str) -> Event {
    let data = RawValue::from_string(data.to_owned()).expect("JSON");
    Event::builder(id, "/samples", "sample.made")
        .subject("s")
        .data_raw(data)
        .build()
        .expect("an event")
}

/// A first attempt.
pub(super) fn attempt() -> Attempt {
    Attempt { number: 1, pool: "default".into(), handler: "sample".into(), worker: 0 }
}

/// The result of an attempt, awaited where it has to be.
pub(super) async fn settle(handling: Handling<'_>) -> HandlerResult {
    match handling {
        Handling::Done(result) => result,
        Handling::Later(result) => result.await,
    }
}
