//! The way of one event, as it is told.

use greenroom_bus::handler::Makes;
use serde::Serialize;

/// What happens to an event.
#[derive(Debug, Serialize)]
pub(super) struct Way {
    pub(super) event: SampleEvent,
    pub(super) outcome: Outcome,
    /// What `no_handler` or `handler_rejected` says, where no handler takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) then: Option<&'static str>,
    /// Those that get it.
    pub(super) handlers: Vec<Handled>,
    /// Those that are named for its type and do not get it.
    pub(super) other_handlers: Vec<Other>,
}

/// What the event is known by.
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
    /// A handler that gets it needs a key, which it does not have.
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
    /// Where order is kept.
    pub(super) order_by: Option<String>,
    pub(super) key: Option<String>,
    /// Why there is no key, where it needs one: the event becomes a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_missing: Option<String>,
    pub(super) layers: Vec<&'static str>,
    pub(super) kind: &'static str,
    pub(super) result: Made,
    /// The result comes back in, rather than to go to outputs.
    pub(super) loopback: bool,
    /// Those that get the result.
    pub(super) outputs: Vec<String>,
    /// Those that are for its type and do not get it.
    pub(super) other_outputs: Vec<Other>,
}

/// What a handler makes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Made {
    /// The event as it is.
    Same,
    /// Nothing.
    None,
    /// What it answers with, which is not known. Outputs are those of the event as it is.
    Answer,
}

/// One that does not get it.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub(super) name: String,
    /// It would take it, but for one before it.
    pub(super) shadowed: bool,
    /// Otherwise the first condition that does not hold.
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
