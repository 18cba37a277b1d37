//! Layers around handlers, without an engine.

mod batches;
mod breaker;
mod deduplication;
mod order;
mod supplied;
#[cfg(feature = "json-schema")]
mod validation;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::*;
use crate::{
    BoxFuture,
    event::Event,
    handler::{
        Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling, Outputs,
        samples::{attempt, settle},
    },
};

type Run = dyn Fn(Event) -> BoxFuture<'static, HandlerResult> + Send + Sync;

/// A handler from a closure.
#[derive(Clone)]
struct Closure(Arc<Run>);

impl HandlerFactory for Closure {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Closure {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later((self.0)(event.clone()))
    }
}

fn handler<F>(run: impl Fn(Event) -> F + Send + Sync + 'static) -> Arc<dyn HandlerFactory>
where
    F: Future<Output = HandlerResult> + Send + 'static,
{
    Arc::new(Closure(Arc::new(move |event| Box::pin(run(event)))))
}

/// Answers what its events' subjects say.
fn obedient() -> Arc<dyn HandlerFactory> {
    handler(|event| async move {
        match event.subject().map(|subject| &**subject) {
            None => Ok(Outputs::Same),
            Some("reject") => Err(Failure::reject("no")),
            Some("park") => Err(Failure::new(FailureKind::Park, "you decide")),
            Some("released") => Err(Failure::new(FailureKind::Released, "not now")),
            Some("never") => std::future::pending().await,
            Some("panic") => panic!("as it was asked to"),
            Some(_) => Err(Failure::retry("not yet")),
        }
    })
}

fn event(id: impl ToString) -> Event {
    Event::builder(id.to_string(), "/test", "t").build().unwrap()
}

/// An event for an obedient handler.
fn order(id: impl ToString, subject: &str) -> Event {
    Event::builder(id.to_string(), "/test", "t").subject(subject).build().unwrap()
}

async fn make(handler: &mut Box<dyn Handler>, event: &Event) -> HandlerResult {
    settle(handler.handle(event, &attempt())).await
}

fn kind(result: HandlerResult) -> Option<FailureKind> {
    result.err().map(|failure| failure.kind)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What is done around an attempt, as a closure that is told its name and may answer.
#[derive(Clone)]
struct Before<F>(F);

impl<F> Around for Before<F>
where
    F: Fn(&mut Request) -> Result<(), HandlerResult> + Send + 'static,
{
    type Pass = ();

    fn before(&self, request: &mut Request) -> Result<(), HandlerResult> {
        (self.0)(request)
    }
}

impl<F: Clone, S> Layer<S> for Before<F>
where
    Self: Around,
{
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn logged(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}
