//! The future of a send.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use greenroom_queue::{permits::Refused, urgency::Urgency};

use crate::{
    Class, NotAccepted, SendError,
    pool::{Address, outgoing::Outgoing},
};

/// The future of [`Address::send`]: resolves once the message is queued.
///
/// Written by hand, so that a message is moved from here straight into its place in the queue.
/// Waiting is rare, and is boxed.
#[must_use = "nothing is sent before the future is polled"]
pub struct Sending<'a, M, R, E> {
    address: &'a Address<M, R, E>,
    /// Present until it is queued, or waits.
    message: Option<M>,
    waiting: Option<WaitingSend<'a, M, R, E>>,
}

type WaitingSend<'a, M, R, E> =
    Pin<Box<dyn Future<Output = (Outgoing<M, R, E>, Result<(), NotAccepted>)> + Send + 'a>>;

impl<M: Send, R: Send, E: Send> Address<M, R, E> {
    /// Queues a message, waiting for room. Waiting senders are served first come, first served.
    ///
    /// # Errors
    /// The message, if the pool has stopped or has no workers left, if its key is parked and has no
    /// room for more, or if it has no key in a pool that requires one.
    ///
    /// # Cancel safety
    /// A dropped future has either queued the message or done nothing; the message is dropped with
    /// it in that case. To keep it, use [`reserve`](Self::reserve).
    #[inline]
    pub fn send(&self, message: M) -> Sending<'_, M, R, E> {
        Sending::new(self, message)
    }
}

/// Nothing in it is pinned except the box.
impl<M, R, E> Unpin for Sending<'_, M, R, E> {}

impl<'a, M: Send, R: Send, E: Send> Sending<'a, M, R, E> {
    #[inline]
    pub(super) fn new(address: &'a Address<M, R, E>, message: M) -> Self {
        Self { address, message: Some(message), waiting: None }
    }

    #[cold]
    fn refused(
        &mut self,
        refused: Refused,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), SendError<M>>> {
        let (address, message) = (self.address, self.message.take());
        let mut payload = Outgoing { message, extra: None, class: Class::Normal };
        let waiting: WaitingSend<'a, M, R, E> = Box::pin(async move {
            let pushed = address.wait_and_push(&mut payload, refused).await;
            (payload, pushed)
        });
        self.waiting = Some(waiting);
        self.wait(cx)
    }

    #[cold]
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SendError<M>>> {
        let Some(waiting) = &mut self.waiting else { return Poll::Ready(Ok(())) };
        let (payload, pushed) = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        Poll::Ready(pushed.map_err(|why| self.address.refuse(payload, why)))
    }
}

impl<M: Send, R: Send, E: Send> Future for Sending<'_, M, R, E> {
    type Output = Result<(), SendError<M>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.waiting.is_some() {
            return this.wait(cx);
        }
        assert!(this.message.is_some(), "a send is polled again although it is done");
        let (vtable, sender) = (&this.address.vtable, this.address.place());
        match vtable.try_send(&mut this.message, sender, Urgency::CanStepAside) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(refused) => this.refused(refused, cx),
        }
    }
}

impl_debug!([M, R, E] Sending<'_, M, R, E>, |this| waiting: this.waiting.is_some());
