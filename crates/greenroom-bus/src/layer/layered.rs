//! A handler in its layers: a handler as any other.

use std::{sync::Arc, time::Duration};

use tokio::sync::Mutex;

use super::{
    batch,
    passage::Passage,
    request::{Request, result},
    stack::Stack,
    way::{HandlerOfWorker, Way},
};
use crate::{
    BoxFuture,
    event::Event,
    handler::{
        Attempt, CrashLoop, FailureKind, Handler, HandlerFactory, HandlerResult, Handling,
        Settlement,
    },
    settlement::{Ack, Refusal, Settle, Settled, Watch},
};

pub(super) struct LayeredFactory {
    inner: Arc<dyn HandlerFactory>,
    stack: Arc<Stack>,
}

impl LayeredFactory {
    pub(super) fn new(inner: Arc<dyn HandlerFactory>, stack: Stack) -> Self {
        Self { inner, stack: Arc::new(stack) }
    }
}

impl HandlerFactory for LayeredFactory {
    fn build(&self, worker: usize) -> Result<Box<dyn Handler>, String> {
        let inner = Arc::new(Mutex::new(self.inner.build(worker)?));
        Ok(Box::new(Layered { inner, stack: self.stack.clone(), passages: Vec::new() }))
    }

    fn restarts(&self) -> u64 {
        self.inner.restarts()
    }

    fn crashes(&self) -> u64 {
        self.inner.crashes()
    }

    fn crash_loop(&self) -> Option<CrashLoop> {
        self.inner.crash_loop()
    }

    fn unanswered(&self) -> u64 {
        self.inner.unanswered()
    }

    fn watches_settlement(&self) -> bool {
        true
    }

    fn sends_fence(&self) -> bool {
        self.inner.sends_fence()
    }

    fn settles(&self) -> bool {
        self.inner.settles()
    }
}

struct Layered {
    inner: HandlerOfWorker,
    stack: Arc<Stack>,
    /// How far each attempt of the last call has come.
    passages: Vec<Arc<Passage>>,
}

impl Handler for Layered {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(self.through(event, attempt, None)))
    }

    /// A layer that succeeds in the handler's place settles the event by that.
    fn handle_and_settle<'a>(
        &'a mut self,
        event: &'a Event,
        attempt: &'a Attempt,
        settlement: Settlement,
    ) -> Handling<'a> {
        Handling::Later(Box::pin(self.through(event, attempt, Some(settlement))))
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        Box::pin(async move {
            let (events, own): (Vec<_>, Vec<_>) = events
                .iter()
                .map(|(event, attempt)| {
                    let (event, own) = watched(event);
                    ((event, attempt.clone()), own)
                })
                .unzip();
            self.passages.clear();
            self.passages.resize_with(events.len(), Arc::default);
            let results = batch::hold(&self.stack, &self.inner, events, &self.passages).await;
            for (own, result) in own.into_iter().zip(&results) {
                settle(own, result);
            }
            results
        })
    }

    fn gave_result(&self, place: usize) -> bool {
        self.passages.get(place).is_some_and(|passage| passage.is_answered())
    }

    fn stop(&mut self, patience: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.inner.lock().await.stop(patience).await })
    }
}

impl Layered {
    async fn through(
        &mut self,
        event: &Event,
        attempt: &Attempt,
        settlement: Option<Settlement>,
    ) -> HandlerResult {
        let (event, watched) = watched(event);
        let passage = Arc::<Passage>::default();
        self.passages.clear();
        self.passages.push(passage.clone());
        let way = Way::Alone(self.inner.clone(), settlement.clone());
        let request = Request { event, attempt: attempt.clone(), way, passage: passage.clone() };
        let result = result(self.stack.call(request).await);
        if let Some(settlement) = settlement
            && result.is_ok()
            && !passage.is_handed_over()
        {
            settlement.acknowledge();
        }
        settle(watched, &result);
        result
    }
}

/// A layer can always observe how the event of an attempt is settled. Without an engine that
/// settles it, the attempt is the settlement.
fn watched(event: &Event) -> (Event, Option<Ack>) {
    if event.local::<Watch>().is_some() {
        return (event.clone(), None);
    }
    let own = Ack::new(Nobody);
    (event.clone().with_local(own.watch()), Some(own))
}

struct Nobody;

impl Settle for Nobody {
    fn settled(&self, _how: Settled) {}
}

fn settle(own: Option<Ack>, result: &HandlerResult) {
    let Some(own) = own else { return };
    match result {
        Ok(_) => own.confirm(),
        Err(failure) if failure.kind == FailureKind::Reject => own.confirm(),
        Err(_) => own.refuse(Refusal::Dropped),
    }
}
