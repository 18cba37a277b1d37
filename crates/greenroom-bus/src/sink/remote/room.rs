//! Room for accepted, unsettled events, and the end of a sink.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError, watch};

use crate::{event::Event, sink::SinkError};

/// Room for accepted, unsettled events, first come, first served; and how the sink has ended.
#[derive(Debug)]
pub struct SinkRoom {
    most: usize,
    /// Each event takes at least this much.
    least: usize,
    /// One permit is one byte. Closed when nothing is delivered any more.
    room: Arc<Semaphore>,
    ended: watch::Sender<bool>,
    failure: Mutex<Option<SinkError>>,
}

impl SinkRoom {
    /// Room for this many bytes, and for this many events.
    pub fn new(bytes: usize, events: usize) -> Self {
        Self {
            most: bytes,
            least: bytes / events,
            room: Arc::new(Semaphore::new(bytes)),
            ended: watch::Sender::new(false),
            failure: Mutex::default(),
        }
    }

    /// An event that is larger than all room takes the whole of it, and so passes alone.
    fn size(&self, event: &Event) -> u32 {
        let bytes = event.approximate_bytes().clamp(self.least, self.most);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Room for this event; `None` if there is none now.
    ///
    /// # Errors
    /// Nothing is delivered any more.
    pub(super) fn try_enter(
        &self,
        event: &Event,
    ) -> Result<Option<OwnedSemaphorePermit>, TryAcquireError> {
        match self.room.clone().try_acquire_many_owned(self.size(event)) {
            Err(TryAcquireError::NoPermits) => Ok(None),
            room => room.map(Some),
        }
    }

    /// Waits for room for this event.
    ///
    /// # Errors
    /// Nothing is delivered any more.
    pub(super) async fn enter(&self, event: &Event) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.room.clone().acquire_many_owned(self.size(event)).await
    }

    /// All that was accepted is settled, or refused, and nothing is accepted any more.
    pub fn end(&self) {
        self.room.close();
        self.ended.send_replace(true);
    }

    /// Waits for [that](Self::end).
    ///
    /// # Errors
    /// Why unstored events are refused.
    pub async fn ended(&self) -> Result<(), SinkError> {
        // The sender lives in here, so the wait cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        self.failure().map_or(Ok(()), Err)
    }

    /// Nothing can be delivered any more. The first reason counts.
    pub fn fail(&self, why: SinkError) {
        self.failure.lock().get_or_insert(why);
    }

    /// Why nothing can be delivered any more.
    pub fn failure(&self) -> Option<SinkError> {
        self.failure.lock().clone()
    }
}
