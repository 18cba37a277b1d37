//! The task of a worker whose work others may poll in its place.

use std::{
    future::Future,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{in_place::Place, seat::Seat};

/// The task of a worker whose work others may poll in its place.
pub(crate) struct Task {
    seat: Arc<Seat>,
    number: u64,
}

impl Task {
    /// Does this work in this slot.
    pub(crate) fn new(seat: &Arc<Seat>, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let number = seat.bench.begin(Box::pin(work));
        Self { seat: seat.clone(), number }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut work = match self.seat.bench.come(self.number) {
            Place::Here(work, _) => work,
            Place::Away { .. } => return Poll::Pending,
            Place::Done(Some(panic)) => resume_unwind(panic),
            Place::Done(None) | Place::Nobody => return Poll::Ready(()),
        };
        if work.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // No other polls the task then: it has not called.
        let back = self.seat.bench.put_back(self.number, work, cx.waker().clone());
        debug_assert!(matches!(back, Ok(None)));
        Poll::Pending
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.seat.bench.leave(self.number));
    }
}
