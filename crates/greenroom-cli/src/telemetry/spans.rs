//! Spans of deliveries in OTLP form, with OpenTelemetry's names for message consumers and
//! CloudEvents.

use std::sync::Arc;

use bytes::Bytes;
use greenroom_bus::{
    event::{ExtensionValue, TRACESTATE, TraceContext},
    trace::{Part, Recorder, Span},
};
use opentelemetry_proto::tonic::{
    common::v1::{InstrumentationScope, KeyValue},
    resource::v1::Resource,
    trace::v1::{
        self as otlp, Status,
        span::{Link, SpanKind},
        status::StatusCode,
    },
};
use prost::Message;

use super::{
    queue::Queue,
    values::{nanos, scope, text, whole},
};

/// The flag of W3C Trace Context that a span is recorded, and those of OTLP that say whether its
/// parent is of another process.
const SAMPLED: u32 = 0x001;
const KNOWS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The longest error to send.
const LONGEST: usize = 1_024;

/// Passes spans to their queue.
pub(super) struct Spans {
    /// Each in its encoded form: the memory of the original is freed at once, so that a worker's
    /// next event reuses it. When originals were kept until sent, a few thousand spans a second
    /// slowed all allocations of the workers.
    pub(super) queue: Arc<Queue<Bytes>>,
    /// The share of deliveries that begin a trace.
    pub(super) sample: f64,
    /// Whether the key of an event and its subject are included.
    pub(super) keys: bool,
}

impl Recorder for Spans {
    fn begins_trace(&self) -> bool {
        self.sample >= 1.0 || (self.sample > 0.0 && rand::random::<f64>() < self.sample)
    }

    fn record(&self, span: &Span<'_>) {
        self.queue.push(self.span(span).encode_to_vec().into());
    }
}

impl Spans {
    fn span(&self, span: &Span<'_>) -> otlp::Span {
        let TraceContext { trace_id, span_id, .. } = span.context;
        let (verb, kind, links) = match span.part {
            Part::Attempt(..) => ("process", SpanKind::Consumer, span.producer),
            _ => ("wait", SpanKind::Internal, None),
        };
        // The wait is a child of the producer's span, an attempt a child of the wait.
        let remote = if span.parent == span.producer { IS_REMOTE } else { 0 };
        let parent = span.parent.map(|parent| parent.span_id.to_be_bytes().to_vec());
        let state = match span.event.extension(TRACESTATE) {
            Some(ExtensionValue::Text(state)) if span.producer.is_some() => state.to_string(),
            _ => String::new(),
        };
        otlp::Span {
            trace_id: trace_id.to_be_bytes().to_vec(),
            span_id: span_id.to_be_bytes().to_vec(),
            trace_state: state,
            flags: SAMPLED | span.parent.map_or(0, |_| KNOWS_REMOTE | remote),
            parent_span_id: parent.unwrap_or_default(),
            name: format!("{verb} {}", span.handler),
            kind: kind.into(),
            start_time_unix_nano: nanos(span.began),
            end_time_unix_nano: nanos(span.ended),
            attributes: self.attributes(span, verb),
            links: links.map(link).into_iter().collect(),
            status: status(span),
            ..otlp::Span::default()
        }
    }

    fn attributes(&self, span: &Span<'_>, verb: &str) -> Vec<KeyValue> {
        let event = span.event;
        let mut all = Vec::with_capacity(16);
        all.extend([
            text("messaging.system", "greenroom"),
            text("messaging.operation.name", verb),
            text("messaging.destination.name", span.input),
            text("messaging.message.id", event.id()),
            text("cloudevents.event_id", event.id()),
            text("cloudevents.event_source", event.source()),
            text("cloudevents.event_type", event.ty()),
            text("greenroom.handler", span.handler.as_str()),
            text("greenroom.pool", span.pool.as_str()),
        ]);
        if self.keys {
            all.extend(
                event.subject().map(|subject| text("cloudevents.event_subject", &**subject)),
            );
            all.extend(span.key.map(|key| text("greenroom.key", key)));
        }
        if let Part::Attempt(attempt, outcome) = &span.part {
            let class = outcome.class();
            all.extend([
                text("messaging.operation.type", "process"),
                whole("greenroom.attempt", attempt.number),
                whole("greenroom.worker", i64::try_from(attempt.worker).unwrap_or(i64::MAX)),
                text("greenroom.outcome", class.unwrap_or("handled")),
            ]);
            let share = attempt.share.as_ref().filter(|_| self.keys);
            all.extend(share.map(|share| text("greenroom.share", &**share)));
            all.extend(class.map(|class| text("error.type", class)));
        }
        all
    }
}

/// A link to the span in which an event was made.
fn link(producer: TraceContext) -> Link {
    Link {
        trace_id: producer.trace_id.to_be_bytes().to_vec(),
        span_id: producer.span_id.to_be_bytes().to_vec(),
        flags: SAMPLED | KNOWS_REMOTE | IS_REMOTE,
        ..Link::default()
    }
}

/// The error of a failed attempt. Otherwise none, as OpenTelemetry requires.
fn status(span: &Span<'_>) -> Option<Status> {
    let Part::Attempt(_, outcome) = span.part else { return None };
    let error = outcome.error()?;
    let message = error[..error.floor_char_boundary(LONGEST)].to_owned();
    Some(Status { message, code: StatusCode::Error.into() })
}

/// An `ExportTraceServiceRequest` whose spans are already encoded: a message and bytes have the
/// same wire format.
#[derive(Clone, PartialEq, Message)]
struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<OfResource>,
}

/// `ResourceSpans`.
#[derive(Clone, PartialEq, Message)]
struct OfResource {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<OfScope>,
}

/// `ScopeSpans`.
#[derive(Clone, PartialEq, Message)]
struct OfScope {
    #[prost(message, optional, tag = "1")]
    scope: Option<InstrumentationScope>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    spans: Vec<Bytes>,
}

/// A request with these spans, each encoded.
pub(super) fn request(resource: Resource, spans: Vec<Bytes>) -> impl Message {
    let scope_spans = vec![OfScope { scope: scope(), spans }];
    ExportRequest { resource_spans: vec![OfResource { resource: Some(resource), scope_spans }] }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        collector::trace::v1::ExportTraceServiceRequest,
        trace::v1::{ResourceSpans, ScopeSpans},
    };

    use super::*;
    use crate::telemetry::counts::{Signal, SignalCounts};

    #[test]
    fn o06_a_request_holds_its_spans_in_their_scope_and_resource() {
        let span = |name: &str| otlp::Span { name: name.into(), ..otlp::Span::default() };
        let spans = ["a", "b"].map(span);
        let resource = Resource { dropped_attributes_count: 7, ..Resource::default() };
        let encoded = spans.iter().map(|span| span.encode_to_vec().into()).collect();
        let scope_spans = ScopeSpans { scope: scope(), spans: spans.into(), ..Default::default() };
        let of = ResourceSpans {
            resource: Some(resource.clone()),
            scope_spans: vec![scope_spans],
            ..Default::default()
        };
        let sent = ExportTraceServiceRequest::decode(&*request(resource, encoded).encode_to_vec())
            .unwrap();
        assert_eq!(sent, ExportTraceServiceRequest { resource_spans: vec![of] });
    }

    #[test]
    fn o06_the_share_of_traces_that_begin_is_the_one_that_is_asked_for() {
        let begun = |sample| {
            let queue = Arc::new(Queue::new(Signal::Traces, Arc::<SignalCounts>::default()));
            let spans = Spans { queue, sample, keys: true };
            (0..20_000).filter(|_| spans.begins_trace()).count()
        };
        assert_eq!((begun(0.0), begun(1.0)), (0, 20_000));
        // Five standard deviations to either side.
        assert!((1_788..2_212).contains(&begun(0.1)), "{}", begun(0.1));
    }
}
