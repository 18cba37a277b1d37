//! Receivers of failed attempts: the program, or the log (R10).

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::time::Instant;

use crate::{
    engine::account::log_limit::LogLimit, event::Event, excerpt::excerpt, handler::FailureKind,
    name::Name,
};

/// A failed attempt, with its event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct FailedEvent<'a> {
    /// The event.
    pub event: &'a Event,
    /// The error, in words. A panic is reported only as a panic: its message is in the log and in
    /// the dead letter.
    pub error: &'a str,
    /// The consequence; `None` for a handler that panicked.
    pub kind: Option<FailureKind>,
    /// The handler.
    pub handler: Name,
    /// Its pool.
    pub pool: Name,
    /// 1 for the first attempt. An attempt that its handler gave back unstarted is not told.
    pub attempt: u32,
    /// The key by which its handler keeps order, if any.
    pub key: Option<&'a str>,
    /// Its source, for example `file:orders.ndjson`.
    pub source: &'a str,
    /// Its position there.
    pub position: u64,
}

/// Receives each failed attempt. It is called by the worker between two attempts, so it must
/// neither block nor take long; a panic is logged, and changes nothing.
pub type OnFailure = Arc<dyn Fn(&FailedEvent<'_>) + Send + Sync>;

/// Reports failures: to the program if it wants to know, otherwise to the log.
#[derive(Default)]
pub(crate) struct Failures {
    on_failure: Option<OnFailure>,
    log: LogLimit,
}

impl Failures {
    pub(crate) fn new(on_failure: Option<OnFailure>) -> Self {
        Self { on_failure, log: LogLimit::default() }
    }

    pub(crate) fn tell(&self, failed: &FailedEvent<'_>) {
        let Some(on_failure) = &self.on_failure else { return self.log(failed) };
        if catch_unwind(AssertUnwindSafe(|| on_failure(failed))).is_err()
            && let Some(left_out) = self.log.line(Instant::now())
        {
            let (id, handler) = (&*excerpt(failed.event.id()), &*failed.handler);
            tracing::error!(
                id,
                trace_id = failed.event.trace_id(),
                handler,
                lines_left_out = left_out,
                "what is told of failures panicked"
            );
        }
    }

    fn log(&self, failed: &FailedEvent<'_>) {
        let Some(left_out) = self.log.line(Instant::now()) else { return };
        let (ty, id) = (&*excerpt(failed.event.ty()), &*excerpt(failed.event.id()));
        let key = failed.key.map(excerpt);
        let key = key.as_deref();
        let (pool, handler, attempt) = (&*failed.pool, &*failed.handler, failed.attempt);
        let error = &*excerpt(failed.error);
        tracing::warn!(
            ty,
            id,
            trace_id = failed.event.trace_id(),
            key,
            pool,
            handler,
            attempt,
            error,
            lines_left_out = left_out,
            "an attempt failed"
        );
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failures").field("told", &self.on_failure.is_some()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event::TRACEPARENT, handler::samples};

    #[test]
    fn o06_the_line_of_a_failed_attempt_has_the_trace_id_of_its_event() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let line = |parent: &str| {
            let event = Event::builder("1", "/s", "t").extension(TRACEPARENT, parent);
            let recorder = samples::Recorder::default();
            tracing::subscriber::with_default(recorder.clone(), || {
                Failures::default().tell(&FailedEvent {
                    event: &event.build().unwrap(),
                    error: "503",
                    kind: Some(FailureKind::Reject),
                    handler: "h".into(),
                    pool: "p".into(),
                    attempt: 1,
                    key: None,
                    source: "file:in",
                    position: 0,
                });
            });
            recorder.lines().concat()
        };
        let told = line(parent);
        let traced = r#"id="1" trace_id="4bf92f3577b34da6a3ce929d0e0e4736""#;
        assert!(told.contains("an attempt failed") && told.contains(traced), "{told}");
        let told = line("00-ab-cd-01");
        assert!(told.contains("an attempt failed") && !told.contains("trace_id"), "{told}");
    }
}
