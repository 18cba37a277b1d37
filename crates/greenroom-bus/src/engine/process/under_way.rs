//! The attempts of a recorded delivery, and the spans of it (O06).

use std::{sync::Arc, time::SystemTime};

use tokio::time::Instant;

use super::{
    job::PoolJob,
    recording::{Recording, Trace, span_id},
};
use crate::{
    engine::shared::Shared,
    event::{Event, TraceContext},
    handler::{Attempt, Failure},
    trace::{Outcome, Part, Recorder, Span},
};

/// The attempt of a recorded delivery, under way. Dropped, it has no answer.
pub(crate) struct AttemptUnderWay<'a> {
    recorder: &'a dyn Recorder,
    trace: Trace,
    context: TraceContext,
    attempt: Attempt,
    /// As it was taken.
    event: Event,
    /// As its handler sees it: after the span of this attempt.
    told: Event,
    input: Arc<str>,
    key: Option<Arc<str>>,
    began: SystemTime,
    started: Instant,
    is_answered: bool,
}

impl Drop for AttemptUnderWay<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.record(match std::thread::panicking() {
            true => Outcome::Panicked,
            false => Outcome::Dropped,
        });
    }
}

impl<'a> AttemptUnderWay<'a> {
    /// The attempt that begins now, where its delivery is recorded. That is decided at its first.
    /// In a box, because most attempts have none.
    #[inline]
    pub(crate) fn new(
        shared: &'a Shared,
        job: &mut PoolJob,
        attempt: &Attempt,
    ) -> Option<Box<Self>> {
        let recorder = shared.process.recorder.as_deref()?;
        Self::begun(recorder, shared, job, attempt)
    }

    fn begun(
        recorder: &'a dyn Recorder,
        shared: &Shared,
        job: &mut PoolJob,
        attempt: &Attempt,
    ) -> Option<Box<Self>> {
        let known = job.extras().map_or(Recording::Undecided, |extras| extras.recording);
        let (trace, is_first) = match known {
            Recording::No => return None,
            Recording::Yes(trace) => (trace, false),
            Recording::Undecided => (Trace::begun(recorder, &job.event)?, true),
        };
        let context = TraceContext { span_id: span_id(), ..trace.waiting };
        let under_way = Box::new(Self {
            recorder,
            trace,
            context,
            attempt: attempt.clone(),
            event: job.event.clone(),
            told: job.event.clone().after(context),
            input: shared.inputs.name(job.origin.input),
            key: job.line.as_ref().map(|line| line.key.clone()),
            began: SystemTime::now(),
            started: Instant::now(),
            is_answered: false,
        });
        if is_first {
            job.extras_mut().recording = Recording::Yes(trace);
            under_way.has_waited(job.origin.taken_at);
        }
        Some(under_way)
    }

    /// The event for its handler.
    pub(crate) fn told(&self) -> &Event {
        &self.told
    }

    /// The attempt has ended. After a success, the result is the event as its handler saw it.
    pub(crate) fn ended(mut self: Box<Self>, result: Result<(), &Failure>, job: &mut PoolJob) {
        self.is_answered = true;
        match result {
            Ok(()) => {
                self.record(Outcome::Handled);
                job.event = self.told.clone();
            }
            Err(failure) => self.record(Outcome::Failed(failure)),
        }
    }

    fn has_waited(&self, taken_at: Instant) {
        let waited = self.started.saturating_duration_since(taken_at);
        let taken = self.began.checked_sub(waited).unwrap_or(self.began);
        let Trace { waiting, producer } = self.trace;
        self.tell(Part::Waiting, waiting, producer, (taken, self.began));
    }

    fn record(&self, outcome: Outcome<'_>) {
        let ended = self.began + self.started.elapsed();
        let part = Part::Attempt(self.attempt.clone(), outcome);
        self.tell(part, self.context, Some(self.trace.waiting), (self.began, ended));
    }

    fn tell(
        &self,
        part: Part<'_>,
        context: TraceContext,
        parent: Option<TraceContext>,
        (began, ended): (SystemTime, SystemTime),
    ) {
        self.recorder.record(&Span {
            part,
            context,
            parent,
            producer: self.trace.producer,
            began,
            ended,
            event: &self.event,
            input: &self.input,
            pool: self.attempt.pool,
            handler: self.attempt.handler,
            key: self.key.as_deref(),
        });
    }
}

/// Records that the delivery stays unrecorded: its attempt has failed, and it was not chosen for
/// recording. It is not asked again.
pub(crate) fn stays_unrecorded(shared: &Shared, job: &mut PoolJob) {
    if shared.process.recorder.is_some() {
        job.extras_mut().recording = Recording::No;
    }
}
