//! Spans of deliveries, for exporters of traces (O06).
//!
//! ```text
//! producer ──traceparent──▶ event ──▶ waiting ──┬──▶ attempt 1 (failed)
//!                                               └──▶ attempt 2 ──traceparent──▶ what is made of it
//! ```
//!
//! An engine that has a [`Recorder`]
//! ([`EngineBuilder::record`](crate::engine::EngineBuilder::record)) decides once for each
//! delivery, before its first attempt, whether it is recorded: the event's `traceparent` decides,
//! or, if there is none, the recorder, which then begins a trace. A recorded delivery has a span
//! for the time from when it was taken to its first attempt, and one for each attempt. Handlers see
//! the event with the attempt's span as its `traceparent`, and their results inherit that.
//!
//! Why a trait, and no `tracing` spans: a subscriber is called for every span of every attempt, and
//! the data that it needs (ids, the parent, the time at which an event was taken) goes through
//! fields and an extension of the span. A recorder decides one bit per delivery and gets finished
//! spans, by reference. A delivery that is not recorded costs a look for `traceparent` and the
//! recorder's answer; an engine without a recorder, one branch. Programs that have
//! `tracing-opentelemetry` get a span per attempt from the layer [`Traced`](crate::layer::Traced)
//! instead.

use std::time::SystemTime;

use crate::{
    event::{Event, TraceContext},
    handler::{Attempt, Failure, FailureKind},
    name::Name,
};

/// Takes spans. Workers call it between two events: it must neither wait nor take long, and must
/// not panic.
pub trait Recorder: Send + Sync + 'static {
    /// Whether to begin a trace with a delivery whose event is in none. Asked once for each, and
    /// again after an attempt that was not recorded and had no answer, such as a panic.
    fn begins_trace(&self) -> bool;

    /// A span has ended.
    fn record(&self, span: &Span<'_>);
}

/// A part of a delivery that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Span<'a> {
    /// Its part of the delivery.
    pub part: Part<'a>,
    /// The span itself. Always sampled.
    pub context: TraceContext,
    /// Its parent, within its trace: the span of waiting for an attempt, and the producer's for
    /// that. `None` if the trace begins with it.
    pub parent: Option<TraceContext>,
    /// The span that the event came with.
    pub producer: Option<TraceContext>,
    /// When it began.
    pub began: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// The event, as it was taken.
    pub event: &'a Event,
    /// The name of its input.
    pub input: &'a str,
    /// The pool that handles it.
    pub pool: Name,
    /// The handler's name.
    pub handler: Name,
    /// The key by which its handler keeps order, if any.
    pub key: Option<&'a str>,
}

/// The part of a delivery that a span covers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Part<'a> {
    /// From when the event was taken from its source to the begin of its first attempt.
    Waiting,
    /// One attempt, and its outcome.
    Attempt(Attempt, Outcome<'a>),
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The event is handled.
    Handled,
    /// It failed.
    Failed(&'a Failure),
    /// The handler panicked.
    Panicked,
    /// It was dropped before it had an answer: the run was stopped.
    Dropped,
}

impl Outcome<'_> {
    /// The class of the failure, one of a few words (`error.type` of OpenTelemetry); `None` for an
    /// event that is handled.
    pub fn class(&self) -> Option<&'static str> {
        Some(match self {
            Self::Handled => return None,
            Self::Panicked => "panic",
            Self::Dropped => "dropped",
            Self::Failed(failure) => match failure.kind {
                FailureKind::Retry { .. } => "retry",
                FailureKind::Timeout => "timeout",
                FailureKind::Reject => "reject",
                FailureKind::LoopbackFull => "loopback_full",
                FailureKind::Fatal => "fatal",
                FailureKind::Park => "park",
                FailureKind::HoldShare { .. } => "hold_share",
                FailureKind::PauseShare => "pause_share",
                FailureKind::Crash => "crash",
                FailureKind::Released => "released",
                FailureKind::Pause => "pause",
                FailureKind::Broken => "broken",
            },
        })
    }

    /// The error, in words; `None` for an event that is handled.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Handled => None,
            Self::Failed(failure) => Some(&failure.error),
            Self::Panicked => Some("the handler panicked"),
            Self::Dropped => Some("the run was stopped before the attempt had an answer"),
        }
    }
}
