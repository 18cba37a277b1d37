//! A batch goes through the layers: each event by itself. Those that have passed meet inside.
//!
//! ```text
//! event 1 ──▶ layers ──▶ place 1 ┐
//! event 2 ──▶ layers ──▶ place 2 ├──▶ `handle_all` of what stands in front, in order ──▶ back through the layers
//! event 3 ──▶ layers ·· waits    ┘        event 3 follows when it has come through
//! ```
//!
//! No event waits for one behind it: a layer that admits one at a time would never admit the
//! second. And no event overtakes: events behind one that is to be retried are given back
//! unstarted.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use tracing::{Instrument, Span};

use super::{
    meeting::{BatchArrival, Meeting, released},
    passage::Passage,
    request::{Request, result},
    stack::Stack,
    way::{HandlerOfWorker, Way},
};
use crate::{
    BoxFuture,
    event::Event,
    handler::{Attempt, HandlerResult, is_to_be_tried_again},
};

/// One event on its way through the layers and back.
enum Call<'a> {
    Under(BoxFuture<'a, HandlerResult>),
    Back(HandlerResult),
}

impl Call<'_> {
    fn poll(&mut self, task: &mut Context<'_>) {
        if let Self::Under(future) = self
            && let Poll::Ready(result) = future.as_mut().poll(task)
        {
            *self = Self::Back(result);
        }
    }

    fn is_back(&self) -> bool {
        matches!(self, Self::Back(_))
    }
}

/// Makes an attempt at each event of a batch, whose way is noted at its place: a result for each,
/// in order.
///
/// # Cancel safety
/// Dropping the future drops every attempt, in whichever layer it is, and the handler at its await.
pub(super) async fn hold(
    stack: &Stack,
    handler: &HandlerOfWorker,
    events: Vec<(Event, Attempt)>,
    passages: &[Arc<Passage>],
) -> Vec<HandlerResult> {
    let meeting = Arc::new(Meeting::new(events.len()));
    let call = |(place, (event, attempt))| {
        let (way, passage) = (Way::Together(meeting.clone(), place), passages[place].clone());
        let request = Request { event, attempt, way, passage };
        Call::Under(Box::pin(async move { result(stack.call(request).await) }))
    };
    let mut calls: Vec<Call<'_>> = events.into_iter().enumerate().map(call).collect();
    loop {
        let next = poll_fn(|task| next_in_line(&mut calls, &meeting, task)).await;
        if next.is_empty() {
            break;
        }
        let (places, arrivals) = next.into_iter().unzip();
        handle_together(handler, arrivals, places, &mut calls).await;
    }
    calls.into_iter().map(back).collect()
}

fn back(call: Call<'_>) -> HandlerResult {
    match call {
        Call::Back(result) => result,
        Call::Under(_) => released("it was not attempted"),
    }
}

/// The events that have arrived and whose predecessors have all arrived; none if all have returned.
fn next_in_line(
    calls: &mut [Call<'_>],
    meeting: &Meeting,
    task: &mut Context<'_>,
) -> Poll<Vec<(usize, BatchArrival)>> {
    calls.iter_mut().for_each(|call| call.poll(task));
    let mut next = Vec::new();
    for place in 0..calls.len() {
        match &calls[place] {
            Call::Back(result) if is_to_be_tried_again(result) => {
                if next.is_empty() {
                    give_back(&mut calls[place + 1..]);
                }
                break;
            }
            Call::Back(_) => {}
            Call::Under(_) if meeting.has_come(place) => {
                next.extend(meeting.take(place).map(|arrival| (place, arrival)));
            }
            Call::Under(_) => {
                return if next.is_empty() { Poll::Pending } else { Poll::Ready(next) };
            }
        }
    }
    Poll::Ready(next)
}

/// Events behind one that is to be retried must not be handled before it.
fn give_back(behind: &mut [Call<'_>]) {
    for call in behind.iter_mut().filter(|call| !call.is_back()) {
        *call = Call::Back(released("an event before it failed"));
    }
}

/// Passes the events that have arrived to the handler, while their layers keep running: a layer
/// that gives up in between (a time limit) drops the handler once all of them have given up.
async fn handle_together(
    handler: &HandlerOfWorker,
    arrivals: Vec<BatchArrival>,
    places: Vec<usize>,
    calls: &mut [Call<'_>],
) {
    let span = arrivals.first().map_or_else(Span::none, |arrival| arrival.span.clone());
    let mut handling = pin!(handle(handler, arrivals).instrument(span));
    poll_fn(|task| {
        let handled = handling.as_mut().poll(task);
        calls.iter_mut().for_each(|call| call.poll(task));
        let all_back = places.iter().all(|place| calls[*place].is_back());
        if all_back { Poll::Ready(()) } else { handled }
    })
    .await;
}

async fn handle(handler: &HandlerOfWorker, arrivals: Vec<BatchArrival>) {
    let results = {
        let events: Vec<_> =
            arrivals.iter().map(|arrival| (&arrival.event, arrival.attempt.clone())).collect();
        let mut handler = handler.lock().await;
        let results = handler.handle_all(&events).await;
        for (place, arrival) in arrivals.iter().enumerate() {
            arrival.passage.answered(handler.gave_result(place));
        }
        results
    };
    for (arrival, result) in arrivals.into_iter().zip(results) {
        // An attempt that is gone by now has a result.
        let _ = arrival.result.send(result);
    }
}
