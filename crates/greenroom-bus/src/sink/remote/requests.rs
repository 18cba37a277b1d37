//! A driver for targets that answer each request.

use std::sync::{Arc, atomic::Ordering};

use tokio::{runtime::Handle, sync::OwnedSemaphorePermit, task::AbortHandle};

use super::{
    RemoteDriver, driver, room::SinkRoom, shared::Shared, target::Remote, waiting::WaitingEvent,
};
use crate::{
    settlement::Ack,
    sink::{Outgoing, SinkError, Trouble},
};

/// Delivers events by requests, several at once, to a target that answers each. When dropped, it
/// refuses all unsettled events.
///
/// **Order.** The next event of a [line](Outgoing::line) is sent once the previous one is settled,
/// so they arrive in order, through retries too. An event that waits for its retry is part of no
/// request, so others continue. With a concurrency of 1, all events arrive in the order of
/// acceptance, and all wait for a retry.
///
/// **Batches.** A batch that fails for now is sent again unchanged. From the third time on it is
/// split in halves, so that in the end an event that causes the failure blocks no other. A batch
/// that is rejected is sent again event by event.
pub struct Requests<R: Remote> {
    shared: Arc<Shared<R>>,
    driver: AbortHandle,
}

impl<R: Remote> Requests<R> {
    /// Delivers to this target. Its requests run on the runtime that this is called on.
    ///
    /// # Errors
    /// There is no runtime.
    pub fn begin(remote: R, room: SinkRoom) -> Result<Self, SinkError> {
        let runtime = Handle::try_current().map_err(|_| {
            SinkError::new(remote.describe(), "make it on a tokio runtime: it needs one")
        })?;
        let shared = Arc::new(Shared::new(remote, room));
        let driver = runtime.spawn(driver::drive(shared.clone())).abort_handle();
        Ok(Self { shared, driver })
    }

    /// The target.
    pub fn remote(&self) -> &R {
        &self.shared.remote
    }

    /// Takes an event that needs no room and has no line.
    pub fn take(&self, kept: R::Kept, ack: Ack) {
        self.shared.push(WaitingEvent::new(kept, None, ack, 0));
    }

    /// Its waits were meant for another configuration: it tries at once.
    pub fn begin_anew(&self) {
        self.shared.gate.begin_anew();
        self.shared.hurry(true);
    }
}

impl<R: Remote> Drop for Requests<R> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl<R: Remote> RemoteDriver for Requests<R> {
    fn describe(&self) -> String {
        self.remote().describe()
    }

    fn room(&self) -> &SinkRoom {
        &self.shared.room
    }

    fn push(&self, Outgoing { event, line, fence, ack, .. }: Outgoing, room: OwnedSemaphorePermit) {
        let bytes = event.approximate_bytes();
        let kept = self.remote().keep(event, fence);
        self.shared
            .push(WaitingEvent { _room: Some(room), ..WaitingEvent::new(kept, line, ack, bytes) });
    }

    fn finish(&self) {
        self.shared.finish();
    }

    fn trouble(&self) -> Option<Trouble> {
        let mut trouble = self.shared.gate.trouble()?;
        // The connection is retried automatically, and yet an operator has to correct it.
        trouble.paused |= self.remote().is_refused();
        Some(trouble)
    }

    fn resume(&self) -> bool {
        let resumed = self.shared.gate.resume();
        if resumed {
            self.shared.hurry(true);
        }
        resumed
    }

    fn unanswered(&self) -> u64 {
        self.shared.unanswered.load(Ordering::Relaxed)
    }
}
