//! Whether a delivery is recorded, which is decided once (O06).

use crate::{
    event::{Event, TraceContext},
    trace::Recorder,
};

/// The decision about a delivery.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Recording {
    /// Nothing yet.
    #[default]
    Undecided,
    No,
    Yes(Trace),
}

/// Where the attempts of a delivery belong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trace {
    /// Their parent.
    pub(super) waiting: TraceContext,
    /// The span that the event came with.
    pub(super) producer: Option<TraceContext>,
}

impl Trace {
    /// Of a delivery that is recorded: as its producer says, or else the recorder.
    pub(super) fn begun(recorder: &dyn Recorder, event: &Event) -> Option<Self> {
        let producer = event.trace_context();
        let sampled = producer.map_or_else(|| recorder.begins_trace(), |found| found.sampled);
        if !sampled {
            return None;
        }
        let trace_id =
            producer.map_or_else(|| rand::random::<u128>().max(1), |found| found.trace_id);
        let waiting = TraceContext { trace_id, span_id: span_id(), sampled };
        Some(Self { waiting, producer })
    }
}

/// Of a new span.
pub(super) fn span_id() -> u64 {
    rand::random::<u64>().max(1)
}
