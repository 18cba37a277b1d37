//! The task of a worker whose work others may poll in its place.

use std::{
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::in_place::WorkState;
use crate::pool::membership::slot_state::SlotState;

/// The task of a worker whose work others may poll in its place.
pub(crate) struct Task {
    slot_state: Arc<SlotState>,
    number: u64,
}

impl Task {
    /// Does this work in this slot.
    pub(crate) fn new(
        slot_state: &Arc<SlotState>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let number = slot_state.work.begin(Box::pin(work));
        Self { slot_state: slot_state.clone(), number }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut work = match self.slot_state.work.come(self.number) {
            WorkState::Here(work, _) => work,
            WorkState::Away { .. } => return Poll::Pending,
            WorkState::Done(Some(panic)) => resume_unwind(panic),
            WorkState::Done(None) | WorkState::Nobody => return Poll::Ready(()),
        };
        if work.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // No other polls the task then: it has not called.
        let back = self.slot_state.work.put_back(self.number, work, cx.waker().clone());
        debug_assert!(matches!(back, Ok(None)));
        Poll::Pending
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.slot_state.work.leave(self.number));
    }
}
