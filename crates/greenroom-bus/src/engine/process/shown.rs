//! The events whose handlers wait for something, to be looked at.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use parking_lot::Mutex;

use crate::event::Event;

/// The event in hand of one worker, while its handler waits.
#[derive(Debug, Default)]
pub(crate) struct ShownEvent(Mutex<Option<Event>>);

/// Those of a pool, by the worker's slot.
#[derive(Debug, Default)]
pub(crate) struct ShownEvents(Mutex<Vec<Arc<ShownEvent>>>);

impl ShownEvents {
    /// That of the worker in this slot, which has nothing in hand yet.
    pub(crate) fn of_worker(&self, slot: usize) -> Arc<ShownEvent> {
        let mut all = self.0.lock();
        if all.len() <= slot {
            all.resize_with(slot + 1, Arc::default);
        }
        *all[slot].0.lock() = None;
        all[slot].clone()
    }

    /// The event in hand of the worker in this slot.
    pub(crate) fn event(&self, slot: usize) -> Option<Event> {
        let worker = self.0.lock().get(slot)?.clone();
        worker.0.lock().clone()
    }
}

impl ShownEvent {
    /// Shows the event while the attempt waits. An attempt that is done at its first poll costs
    /// nothing.
    pub(crate) async fn while_waiting<T>(
        &self,
        event: &Event,
        attempt: impl Future<Output = T>,
    ) -> T {
        let mut attempt = pin!(attempt);
        if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(attempt.as_mut().poll(cx))).await {
            return done;
        }
        *self.0.lock() = Some(event.clone());
        let _shown = Shown(self);
        attempt.await
    }
}

/// An event that is shown until its attempt has ended, or is dropped.
struct Shown<'a>(&'a ShownEvent);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
