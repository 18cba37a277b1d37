//! The future of a send.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::{Address, core::Urgency, parcel::Parcel, permits::Refused};
use crate::{NotAccepted, SendError};

/// What [`Address::send`] returns: resolves once the message is queued.
///
/// Written by hand, so that a message is moved from here straight into its place in the queue; what happens rarely, waiting,
/// is in a box.
#[must_use = "nothing is sent before the future is polled"]
pub struct Sending<'a, M, R, E> {
    address: &'a Address<M, R, E>,
    parcel: Parcel<M, R, E>,
    waiting: Option<Waiting<'a, M, R, E>>,
}

type Waiting<'a, M, R, E> =
    Pin<Box<dyn Future<Output = (Parcel<M, R, E>, Result<(), NotAccepted>)> + Send + 'a>>;

/// Nothing in it is pinned but the box.
impl<M, R, E> Unpin for Sending<'_, M, R, E> {}

impl<'a, M: Send, R: Send, E: Send> Sending<'a, M, R, E> {
    #[inline]
    pub(super) fn new(address: &'a Address<M, R, E>, message: M) -> Self {
        Self { address, parcel: Parcel::new(message, None), waiting: None }
    }

    #[cold]
    fn wait(&mut self, refused: Refused) -> &mut Waiting<'a, M, R, E> {
        let (address, mut parcel) = (self.address, self.parcel.lend());
        self.waiting.insert(Box::pin(async move {
            let pushed = address.wait_and_push(&mut parcel, refused).await;
            (parcel, pushed)
        }))
    }
}

impl<'a, M: Send, R: Send, E: Send> Future for Sending<'a, M, R, E> {
    type Output = Result<(), SendError<M>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let waiting = match &mut this.waiting {
            Some(waiting) => waiting,
            None => {
                let door = &this.address.door;
                match door.try_push(&mut this.parcel, this.address.sender, Urgency::CanStepAside) {
                    Ok(()) => return Poll::Ready(Ok(())),
                    Err(refused) => this.wait(refused),
                }
            }
        };
        let (parcel, pushed) = ready!(waiting.as_mut().poll(cx));
        let address = this.address;
        Poll::Ready(pushed.map_err(|why| address.refuse(parcel, why)))
    }
}

impl<M, R, E> fmt::Debug for Sending<'_, M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").field("waiting", &self.waiting.is_some()).finish_non_exhaustive()
    }
}
