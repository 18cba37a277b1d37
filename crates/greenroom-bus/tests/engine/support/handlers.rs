//! Handlers from closures.

use std::{future::Future, sync::Arc, time::Duration};

use greenroom_bus::{
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, HandlerResult, Handling, Outputs},
};

type Run = Arc<dyn Fn(Event, u32) -> Handling<'static> + Send + Sync>;

struct Closure(Run);

impl HandlerFactory for Closure {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Self(self.0.clone())))
    }
}

impl Handler for Closure {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        (self.0)(event.clone(), attempt.number)
    }
}

/// Handles each event (with the number of the attempt) as the closure's future does.
pub(crate) fn handle<F>(
    run: impl Fn(Event, u32) -> F + Send + Sync + 'static,
) -> Arc<dyn HandlerFactory>
where
    F: Future<Output = HandlerResult> + Send + 'static,
{
    Arc::new(Closure(Arc::new(move |event, attempt| {
        Handling::Later(Box::pin(run(event, attempt)))
    })))
}

/// Handles each event without an await.
pub(crate) fn answer(
    run: impl Fn(Event, u32) -> HandlerResult + Send + Sync + 'static,
) -> Arc<dyn HandlerFactory> {
    Arc::new(Closure(Arc::new(move |event, attempt| Handling::Done(run(event, attempt)))))
}

/// Passes every event on.
pub(crate) fn pass() -> Arc<dyn HandlerFactory> {
    answer(|_, _| Ok(Outputs::Same))
}

/// Passes every event on after this long.
pub(crate) fn slow(latency: Duration) -> Arc<dyn HandlerFactory> {
    handle(move |_, _| async move {
        tokio::time::sleep(latency).await;
        Ok(Outputs::Same)
    })
}

/// Suspends for ever.
pub(crate) fn never() -> Arc<dyn HandlerFactory> {
    handle(|_, _| std::future::pending())
}
