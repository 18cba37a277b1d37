//! The route of one event, for output.

use greenroom_bus::handler::Makes;
use serde::Serialize;

/// The treatment of an event.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    pub(super) event: SampleEvent,
    pub(super) outcome: Outcome,
    /// The value of `no_handler` or `handler_rejected`, if no handler takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) then: Option<&'static str>,
    /// The handlers that get it.
    pub(super) handlers: Vec<Handled>,
    /// The handlers for its type that do not get it.
    pub(super) other_handlers: Vec<Other>,
}

/// The identity of the event.
#[derive(Debug, Serialize)]
pub(super) struct SampleEvent {
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) source: String,
    pub(super) id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// At least one handler gets it.
    Handled,
    NoHandler,
    HandlerRejected,
    /// A handler that gets it needs a key, but it has none.
    KeyMissing,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::NoHandler => "no_handler",
            Self::HandlerRejected => "handler_rejected",
            Self::KeyMissing => "key_missing",
        }
    }
}

/// A handler that gets the event.
#[derive(Debug, Serialize)]
pub(super) struct Handled {
    pub(super) handler: String,
    /// Its type or pattern.
    pub(super) on: String,
    pub(super) fan_out: bool,
    pub(super) pool: String,
    pub(super) workers: usize,
    /// The order, if any.
    pub(super) order_by: Option<String>,
    pub(super) key: Option<String>,
    /// Why there is no key, if the handler needs one: the event becomes a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_missing: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) sharing: Option<Sharing>,
    pub(super) layers: Vec<&'static str>,
    pub(super) kind: &'static str,
    pub(super) result: Made,
    /// The result comes back in, instead of going to outputs.
    pub(super) loopback: bool,
    /// The outputs that get the result.
    pub(super) outputs: Vec<String>,
    /// The outputs for its type that do not get it.
    pub(super) other_outputs: Vec<Other>,
}

/// The share of an event at a handler whose events have one.
#[derive(Debug, Serialize)]
pub(super) struct Sharing {
    pub(super) share_by: String,
    pub(super) share: Option<String>,
}

/// The result of a handler for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Made {
    /// The unchanged event.
    Same,
    /// Nothing.
    None,
    /// Its answer, which is not known. The outputs are those of the unchanged event.
    Answer,
}

/// A handler or an output that does not get it.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub(super) name: String,
    /// It would take it, but another one comes before it.
    pub(super) shadowed: bool,
    /// Otherwise the first condition that it does not meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fails: Option<String>,
}

impl From<Makes> for Made {
    fn from(makes: Makes) -> Self {
        match makes {
            Makes::Nothing => Self::None,
            Makes::Same => Self::Same,
            Makes::Answers => Self::Answer,
        }
    }
}
