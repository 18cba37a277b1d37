//! A span per attempt.

use std::task::{Context, Poll};

use tower::{Layer, Service};
use tracing::{Instrument, instrument::Instrumented};

use super::Request;
use crate::event::{CORRELATION_ID, Event, ExtensionValue, TRACEPARENT};

/// Runs each attempt in a span `event` of [`tracing`], at level `INFO`, with the fields `type`,
/// `id`, `source`, `pool`, `handler`, `worker`, `attempt`, and `correlation`, `traceparent` and
/// `trace_id` if the event has them. Without a subscriber at that level, an attempt costs one
/// check.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traced;

impl<S> Layer<S> for Traced {
    type Service = TracedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TracedService { inner }
    }
}

/// The service of [`Traced`].
#[derive(Debug, Clone)]
pub struct TracedService<S> {
    inner: S,
}

impl<S: Service<Request>> Service<Request> for TracedService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Request { event, attempt, .. } = &request;
        let span = tracing::info_span!(
            "event",
            r#type = event.ty(),
            id = event.id(),
            source = event.source(),
            pool = &*attempt.pool,
            handler = &*attempt.handler,
            worker = attempt.worker,
            attempt = attempt.number,
            correlation = text(event, CORRELATION_ID),
            traceparent = text(event, TRACEPARENT),
            trace_id = event.trace_id(),
        );
        let inner = span.in_scope(|| self.inner.call(request));
        inner.instrument(span)
    }
}

fn text<'a>(event: &'a Event, name: &str) -> Option<&'a str> {
    match event.extension(name)? {
        ExtensionValue::Text(text) => Some(text),
        _ => None,
    }
}
