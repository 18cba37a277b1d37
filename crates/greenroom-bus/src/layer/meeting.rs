//! Where the events of a batch meet on the inside of the layers.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tracing::Span;

use super::passage::Passage;
use crate::{
    event::Event,
    handler::{Attempt, Failure, FailureKind, HandlerResult},
};

/// Where the events of a batch meet.
pub(super) struct Meeting {
    /// The waiting arrivals, by place.
    places: Mutex<Vec<Option<BatchArrival>>>,
}

/// An event that has come through the layers.
pub(super) struct BatchArrival {
    pub(super) event: Event,
    pub(super) attempt: Attempt,
    pub(super) passage: Arc<Passage>,
    /// Dropped, it gives the event back unstarted.
    pub(super) result: oneshot::Sender<HandlerResult>,
    /// The span in which it came.
    pub(super) span: Span,
}

pub(super) fn released(why: &str) -> HandlerResult {
    Err(Failure::new(FailureKind::Released, why))
}

impl Meeting {
    /// For this many events, none of which has arrived.
    pub(super) fn new(events: usize) -> Self {
        Self { places: Mutex::new((0..events).map(|_| None).collect()) }
    }

    /// Takes a place, and waits for the handler's result for the event.
    pub(super) async fn arrive(
        &self,
        place: usize,
        event: Event,
        attempt: Attempt,
        passage: Arc<Passage>,
    ) -> HandlerResult {
        let (tell, told) = oneshot::channel();
        let span = Span::current();
        let arrival = BatchArrival { event, attempt, passage, result: tell, span };
        self.places.lock()[place] = Some(arrival);
        told.await.unwrap_or_else(|_| released("it was not attempted"))
    }

    pub(super) fn has_come(&self, place: usize) -> bool {
        self.places.lock()[place].is_some()
    }

    pub(super) fn take(&self, place: usize) -> Option<BatchArrival> {
        self.places.lock()[place].take()
    }
}
