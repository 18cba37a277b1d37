//! Every attempt, as it begins and ends, and the order that it has to keep.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use greenroom_bus::{
    BoxFuture,
    event::{Event, OrderBy},
    handler::{Effect, Failure, Outputs},
    layer::{BoxError, Layer, Request, Service},
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::chaos::{Chaos, Mishap};

/// An attempt at an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenAttempt {
    /// The id of the event.
    pub id: String,
    /// Its key.
    pub key: Option<String>,
    /// The handler.
    pub handler: String,
    /// 1 for the first attempt. An event that is delivered again starts over.
    pub number: u32,
    /// When it began, from the start of the run, in virtual time.
    pub began: Duration,
    /// How it ended.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptEnd {
    /// The event was handled.
    Handled,
    /// It failed, by itself or by chaos.
    Failed,
    /// It was dropped: by a limit of time, a panic, or a stop.
    Dropped,
}

/// The events of a run, and all attempts at them.
pub(super) struct Watch {
    order_by: OrderBy,
    /// Their number among the events of their key, by source and id.
    numbers: HashMap<(String, String), usize>,
    started: Instant,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    attempts: Vec<SeenAttempt>,
    /// The event in hand, by handler and key.
    in_hand: HashMap<(String, String), String>,
    /// The highest number that began, by handler and key, with its id.
    last: HashMap<(String, String), (usize, String)>,
    begun: HashSet<(String, String, usize)>,
    disorder: Vec<String>,
}

impl Watch {
    pub(super) fn new(events: &[Event], order_by: OrderBy) -> Self {
        let mut of_key: HashMap<Arc<str>, usize> = HashMap::new();
        let mut numbers = HashMap::new();
        for event in events {
            if let Ok(Some(key)) = order_by.key(event) {
                let number = of_key.entry(key).or_default();
                *number += 1;
                numbers.insert(name(event), *number);
            }
        }
        Self { order_by, numbers, started: Instant::now(), seen: Mutex::default() }
    }

    pub(super) fn attempts(&self) -> Vec<SeenAttempt> {
        self.seen.lock().attempts.clone()
    }

    pub(super) fn disorder(&self) -> Vec<String> {
        self.seen.lock().disorder.clone()
    }

    fn begin(self: &Arc<Self>, request: &Request) -> Underway {
        let Request { event, attempt, .. } = request;
        let key = self.order_by.key(event).ok().flatten().map(|key| key.to_string());
        let handler = attempt.handler.to_string();
        let mut seen = self.seen.lock();
        let place = seen.attempts.len();
        seen.attempts.push(SeenAttempt {
            id: event.id().to_owned(),
            key: key.clone(),
            handler: handler.clone(),
            number: attempt.number,
            began: self.started.elapsed(),
            end: AttemptEnd::Dropped,
        });
        let line = key.map(|key| (handler, key));
        // An event that came back in is not one of those of the broker.
        if let (Some(line), Some(number)) = (&line, self.numbers.get(&name(event))) {
            seen.check(line, event.id(), *number);
        }
        drop(seen);
        Underway { watch: self.clone(), place, line }
    }
}

fn name(event: &Event) -> (String, String) {
    (event.source().to_owned(), event.id().to_owned())
}

impl Seen {
    fn check(&mut self, line: &(String, String), id: &str, number: usize) {
        let (handler, key) = line;
        if let Some(other) = self.in_hand.insert(line.clone(), id.to_owned()) {
            self.disorder.push(format!(
                "{id} of key {key} began at `{handler}` while {other} of that key was in hand"
            ));
        }
        let is_new = self.begun.insert((handler.clone(), key.clone(), number));
        let last = self.last.entry(line.clone()).or_default();
        if is_new && number < last.0 {
            let (_, other) = last.clone();
            self.disorder.push(format!("{id} of key {key} began at `{handler}` after {other}"));
        } else if number > last.0 {
            *last = (number, id.to_owned());
        }
    }
}

/// An attempt, until it ends or is dropped.
struct Underway {
    watch: Arc<Watch>,
    place: usize,
    line: Option<(String, String)>,
}

impl Underway {
    fn end(&self, end: AttemptEnd) {
        self.watch.seen.lock().attempts[self.place].end = end;
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            self.watch.seen.lock().in_hand.remove(line);
        }
    }
}

/// Notes every attempt, and disturbs it.
#[derive(Clone)]
pub(super) struct WatchLayer {
    watch: Arc<Watch>,
    chaos: Option<Chaos>,
}

impl WatchLayer {
    pub(super) fn new(watch: &Arc<Watch>, chaos: Option<Chaos>) -> Self {
        Self { watch: watch.clone(), chaos }
    }
}

impl<S> Layer<S> for WatchLayer {
    type Service = WatchService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WatchService { layer: self.clone(), inner }
    }
}

pub(super) struct WatchService<S> {
    layer: WatchLayer,
    inner: S,
}

impl<S> Service<Request> for WatchService<S>
where
    S: Service<Request, Response = Outputs>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Outputs;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outputs, BoxError>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task).map_err(Into::into)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let WatchLayer { watch, chaos } = &self.layer;
        let attempt = &request.attempt;
        let fate = chaos
            .map(|chaos| chaos.fate(attempt.handler.as_str(), request.event.id(), attempt.number));
        let underway = watch.begin(&request);
        // The handler is not asked before this is polled.
        let handled = self.inner.call(request);
        Box::pin(async move {
            let mishap = fate.map_or(Mishap::None, |fate| fate.mishap);
            if let Some(fate) = fate {
                sleep(fate.delay).await;
            }
            let result = match mishap {
                Mishap::Fails => Err(Failure::retry("chaos").into()),
                Mishap::None => handled.await.map_err(Into::into),
                Mishap::LosesAnswer => {
                    let result = handled.await.map_err(Into::into);
                    let lost = Failure::retry("chaos lost the answer");
                    result.and(Err(lost.with_effect(Effect::Unknown).into()))
                }
            };
            let end = if result.is_ok() { AttemptEnd::Handled } else { AttemptEnd::Failed };
            underway.end(end);
            result
        })
    }
}
